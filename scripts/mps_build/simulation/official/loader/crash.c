/* What a crash says: where it was, by the names of the wheel's own symbols. */
#define _GNU_SOURCE
#include "image.h"
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <ucontext.h>
#include <unistd.h>

enum { MOST_FRAMES = 40 };
static const int signals[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT};

static void print_place(const char *what, const void *address) {
    const struct image *image = image_of(address);
    char line[1200];
    uint64_t distance = 0;
    Dl_info info = {0};
    const char *name = image ? symbol_at(image, address, &distance) : NULL, *path = image ? image->path : NULL;
    if (!image && dladdr(address, &info)) {
        path = info.dli_fname, name = info.dli_sname;
        distance = name ? (uint64_t)((char *)address - (char *)info.dli_saddr) : 0;
    }
    const char *file = path && strrchr(path, '/') ? strrchr(path, '/') + 1 : path ? path : "?";
    int size = snprintf(line, sizeof line, "mps-build: %-5s %p %s %.900s + %llu\n", what, address, file, name ? name : "?", (unsigned long long)distance);
    if (write(2, line, (size_t)(size < (int)sizeof line ? size : (int)sizeof line - 1)) < 0) return;
}

static bool is_frame(const uint64_t *frame, const uint64_t *before) {
    return frame > before && !((uint64_t)frame & 7) && (uint64_t)frame - (uint64_t)before < 1 << 24;
}

static void on_crash(int number, siginfo_t *info, void *context) {
    const mcontext_t *machine = &((ucontext_t *)context)->uc_mcontext;
    char line[200];
    signal(number, SIG_DFL);                    /* a second fault, in here, ends the process */
    int size = snprintf(line, sizeof line, "mps-build: %s at address %p, in the macOS wheel's process:\n", strsignal(number), info->si_addr);
    if (write(2, line, (size_t)size) == size) {
        print_place("at", (void *)machine->pc);
        print_place("from", (void *)machine->regs[30]);
        const uint64_t *frame = (void *)machine->regs[29], *before = (void *)(machine->sp - 1);
        for (int i = 0; i < MOST_FRAMES && is_frame(frame, before) && frame[1]; i++, before = frame, frame = (void *)frame[0])
            print_place("from", (void *)frame[1]);
    }
    raise(number);
}

/* A handler that is there already, such as Python's faulthandler, stays. */
void watch_for_crashes(void) {
    for (unsigned i = 0; i < sizeof signals / sizeof *signals; i++) {
        struct sigaction before, ours = {.sa_sigaction = on_crash, .sa_flags = SA_SIGINFO | SA_ONSTACK};
        if (!sigaction(signals[i], NULL, &before) && before.sa_handler == SIG_DFL) sigaction(signals[i], &ours, NULL);
    }
}
