/* Frames by the names of the wheel's own symbols: what a crash says, with operator and selector, and backtrace. */
#define _GNU_SOURCE
#include "image.h"
#include "crash_words.h"
#include <dlfcn.h>
#include <signal.h>
#include <ucontext.h>
#include <unistd.h>

/* --- a crash --- */

enum { MOST_FRAMES = 100 };
static const int signals[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT};
static struct sigaction before[65];
static const char *(*current_operator)(void), *(*current_command)(void);

/* Adds a frame; false where Python's own begin, which name themselves. A return address may be the next function's. */
static bool add_frame(struct crash_words *words, const char *address, bool is_return) {
    struct image *image = image_of(address);
    uint64_t distance;
    Dl_info info = {0};
    const char *name = image ? symbol_at(image, address - is_return, &distance) : NULL, *path = image ? image->path : NULL;
    if (name && *name == '_') name++;           /* of every name of C */
    if (!image && dladdr(address - is_return, &info)) path = info.dli_fname, name = info.dli_sname;
    const char *file = path && strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
    if (file && (!strncmp(file, "python3", 7) || !strncmp(file, "libpython3", 10))) return false;
    return crash_frame(words, name, file);
}

static bool is_frame(const uint64_t *frame, const uint64_t *before) {
    return frame > before && !((uint64_t)frame & 7) && (uint64_t)frame - (uint64_t)before < 1 << 24;
}

static void say(int number, const mcontext_t *machine) {
    struct crash_words words = {0};
    char said[2000];
    bool goes_on = add_frame(&words, (void *)machine->pc, false);
    /* To an object that is none: the selector is still in its register. */
    if (!strcmp(words.last, "objc_msgSend") && machine->regs[1]) snprintf(words.selector, sizeof words.selector, "%.299s", (char *)machine->regs[1]);
    if (goes_on) goes_on = add_frame(&words, (void *)machine->regs[30], true);
    const uint64_t *frame = (void *)machine->regs[29], *last = (void *)(machine->sp - 1);
    for (int i = 0; goes_on && i < MOST_FRAMES && is_frame(frame, last) && frame[1]; i++, last = frame, frame = (void *)frame[0])
        goes_on = add_frame(&words, (void *)frame[1], true);
    size_t size = crash_said(&words, said, sizeof said, number, strsignal(number), current_operator ? current_operator() : NULL,
                             current_command ? current_command() : NULL);
    if (write(STDERR_FILENO, said, size) < 0) return;
}

static void on_crash(int number, siginfo_t *info, void *context) {
    static volatile sig_atomic_t is_said;
    if (!is_said) {                             /* a second fault, in here, is no news */
        is_said = 1;
        say(number, &((ucontext_t *)context)->uc_mcontext);
    }
    /* Then who came before: Python's faulthandler, or the system. */
    const struct sigaction *next = &before[number];
    if (next->sa_flags & SA_SIGINFO) next->sa_sigaction(number, info, context);
    else if (next->sa_handler != SIG_DFL) next->sa_handler(number);
    else signal(number, SIG_DFL), raise(number);
}

void watch_for_crashes(void) {
    /* The software Metal's, where there is one. */
    current_operator = official_symbol("_sim_current_operator");
    current_command = official_symbol("_sim_current_command");
    for (unsigned i = 0; i < sizeof signals / sizeof *signals; i++) {
        struct sigaction ours = {.sa_sigaction = on_crash, .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER};
        struct sigaction *old = &before[signals[i]];
        if (!sigaction(signals[i], NULL, old) && old->sa_handler != SIG_IGN) sigaction(signals[i], &ours, NULL);
    }
}

/* --- backtrace --- */

int darwin_dladdr(const void *address, Dl_info *info);

/* Frames by their pointers: Apple's code keeps them all. */
int darwin_backtrace(void **frames, int most) {
    uint64_t *frame = __builtin_frame_address(0);
    int count = 0;
    for (; frame && count < most && !((uint64_t)frame & 7) && frame[1]; frame = (uint64_t *)frame[0]) {
        frames[count++] = (void *)frame[1];
        if (frame[0] <= (uint64_t)frame) break;
    }
    return count;
}

char **darwin_backtrace_symbols(void *const *frames, int count) {
    char **lines = malloc((size_t)count * (sizeof *lines + 1024));
    for (int i = 0; lines && i < count; i++) {
        Dl_info info;
        char *text = (char *)(lines + count) + 1024 * i;
        lines[i] = text;
        if (!darwin_dladdr(frames[i], &info) || !info.dli_fname) info = (Dl_info){.dli_fname = "?"};
        const char *file = strrchr(info.dli_fname, '/') ? strrchr(info.dli_fname, '/') + 1 : info.dli_fname;
        snprintf(text, 1024, "%-4d%-35s 0x%016lx %.900s + %ld", i, file, (unsigned long)frames[i], info.dli_sname ? info.dli_sname : "?",
                 info.dli_saddr ? (long)((char *)frames[i] - (char *)info.dli_saddr) : 0L);
    }
    return lines;
}
