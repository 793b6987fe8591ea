#define _GNU_SOURCE
#include "machine.h"
#include "runtime.h"
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { MOST_TRIES = 3000, STEP_MICROSECONDS = 20000 };
static const uint64_t MOST_BYTES = 256u << 20;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int server = -1;
static pid_t owner;

static int connected(void) {
    const char *path = getenv("MPS_BUILD_KERNEL_SERVER");
    struct sockaddr_un where = {.sun_family = AF_UNIX};
    /* A child of fork has a connection of its own: two that write to one would mix their words. */
    if (server >= 0 && owner == getpid()) return server;
    if (server >= 0) close(server);
    server = -1;
    if (!path || strlen(path) >= sizeof where.sun_path) return -1;
    strcpy(where.sun_path, path);
    int made = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (made < 0) return -1;
    /* It is started with this process, and may have to begin yet. */
    for (int tries = 0; connect(made, (struct sockaddr *)&where, sizeof where); tries++) {
        if ((errno != ENOENT && errno != ECONNREFUSED) || tries == MOST_TRIES) {
            close(made);
            return -1;
        }
        usleep(STEP_MICROSECONDS);
    }
    owner = getpid();
    return server = made;
}

static int sent(const void *data, uint64_t size) {
    for (const char *at = data; size;) {
        ssize_t done = send(server, at, size, MSG_NOSIGNAL);
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0) return -1;
        at += done, size -= (uint64_t)done;
    }
    return 0;
}

static int heard(void *data, uint64_t size) {
    for (char *at = data; size;) {
        ssize_t done = read(server, at, size);
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0) return -1;
        at += done, size -= (uint64_t)done;
    }
    return 0;
}

int rt_ask(uint32_t what, uint64_t base, const void *data, uint64_t size, struct rt_answer *answer) {
    const uint64_t head[3] = {what, base, size};
    uint64_t sizes[2];
    int failed = -1;
    pthread_mutex_lock(&lock);
    answer->bytes = NULL;
    if (connected() >= 0 && !sent(head, sizeof head) && !sent(data, size) && !heard(sizes, sizeof sizes) &&
        sizes[0] <= MOST_BYTES && sizes[1] <= MOST_BYTES && (answer->bytes = malloc(sizes[0] + sizes[1] + 1))) {
        answer->text_size = sizes[0], answer->data_size = sizes[1];
        failed = heard(answer->bytes, sizes[0] + sizes[1]);
    }
    if (failed && server >= 0) {
        free(answer->bytes);
        close(server);
        server = -1;
    }
    pthread_mutex_unlock(&lock);
    return failed;
}

int rt_run(const struct run *job, struct report *report);
static const int FAULTS[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP};
enum { FAULT_COUNT = sizeof FAULTS / sizeof *FAULTS };
static struct sigaction of_host[64], of_kernels[64];
static __thread int is_kernel;

static void faulted(int number, siginfo_t *info, void *context) {
    const struct sigaction *next = is_kernel ? &of_kernels[number] : &of_host[number];
    if (next->sa_flags & SA_SIGINFO) {
        next->sa_sigaction(number, info, context);
    } else if (next->sa_handler != SIG_DFL && next->sa_handler != SIG_IGN) {
        next->sa_handler(number);
    } else {
        signal(number, SIG_DFL);
        raise(number);
    }
}

void rt_watch(void) {
    struct run nothing = {0};
    struct report said;
    for (int i = 0; i < FAULT_COUNT; i++) sigaction(FAULTS[i], NULL, &of_host[FAULTS[i]]);
    rt_run(&nothing, &said);
    for (int i = 0; i < FAULT_COUNT; i++) {
        struct sigaction ours = {.sa_sigaction = faulted, .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER};
        sigaction(FAULTS[i], &ours, &of_kernels[FAULTS[i]]);
    }
}

int rt_run_watched(const struct run *job, struct report *report) {
    is_kernel = 1;
    const int status = rt_run(job, report);
    is_kernel = 0;
    return status;
}

void rt_flush_code(void *begin, void *end) { __builtin___clear_cache(begin, end); }

void rt_at_end(void (*run)(void)) {
    int (*of_python)(void (*)(void)) = (int (*)(void (*)(void)))dlsym(RTLD_DEFAULT, "Py_AtExit");
    if (of_python) of_python(run);
    atexit(run);
}

void *rt_open(const char *path) {
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) fprintf(stderr, "software Metal: %s\n", dlerror());
    return library;
}

void *rt_found_in(void *library, const char *name) {
    static void *self;
    Dl_info about;
    if (!library && !self && dladdr((void *)&rt_open, &about)) self = dlopen(about.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
    return dlsym(library ? library : self, name);
}
