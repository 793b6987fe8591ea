#define _GNU_SOURCE
#include "machine.h"
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

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
    if (connect(made, (struct sockaddr *)&where, sizeof where)) {
        close(made);
        return -1;
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
