/* Processes, signals, limits and settings. */
#define _GNU_SOURCE
#include "system.h"
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/times.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

/* --- signals: those below are equal but for these; {macOS, Linux} --- */

static const uint8_t signals[][2] = {{7, 0}, {10, SIGBUS}, {12, SIGSYS}, {16, SIGURG}, {17, SIGSTOP}, {18, SIGTSTP}, {19, SIGCONT},
                                     {20, SIGCHLD}, {23, SIGIO}, {29, SIGWINCH}, {30, SIGUSR1}, {31, SIGUSR2}};
enum { SIGNALS = sizeof signals / sizeof *signals };

int linux_signal(int number) {
    for (int i = 0; i < SIGNALS; i++)
        if (signals[i][0] == number) return signals[i][1] ? signals[i][1] : SIGRTMIN;
    return number;
}
int darwin_signal_number(int number) {
    for (int i = 0; i < SIGNALS; i++)
        if (signals[i][1] == number) return signals[i][0];
    return number > 31 ? 7 : number;
}

static void set_of(uint32_t from, sigset_t *to) {
    sigemptyset(to);
    for (int number = 1; number < 32; number++)
        if (from >> (number - 1) & 1) sigaddset(to, linux_signal(number));
}
static uint32_t mask_of(const sigset_t *from) {
    uint32_t mask = 0;
    for (int number = 1; number < 32; number++)
        if (sigismember(from, linux_signal(number)) == 1) mask |= 1u << (number - 1);
    return mask;
}

/* siginfo_t: the same first words in another order. A handler gets the context as Linux has it: only crash reporters
   look into it. */
struct darwin_info { int number, error, code, process; uint32_t user; int status; void *address; uint64_t value; long band; unsigned long pad[7]; };
typedef void (*handler)(int, struct darwin_info *, void *);
static handler handlers[65];

static void deliver(int number, siginfo_t *own, void *context) {
    struct darwin_info info = {.number = darwin_signal_number(number), .error = own->si_errno, .code = own->si_code,
                               .process = own->si_pid, .user = own->si_uid, .address = own->si_addr};
    handler run = __atomic_load_n(&handlers[number], __ATOMIC_ACQUIRE);
    if (run) run(info.number, &info, context);
}

struct darwin_action { handler run; uint32_t mask; int flags; };
static const int action_flags[][2] = {{1, SA_ONSTACK}, {2, SA_RESTART}, {4, (int)SA_RESETHAND}, {8, SA_NOCLDSTOP}, {0x10, SA_NODEFER}, {0x20, SA_NOCLDWAIT}};

int darwin_sigaction(int number, const struct darwin_action *wanted, struct darwin_action *before) {
    int own_number = linux_signal(number);
    struct sigaction own = {0}, old;
    if (own_number < 1 || own_number > 64) return errno = EINVAL, -1;
    handler old_handler = handlers[own_number];
    if (wanted) {
        bool is_function = (uintptr_t)wanted->run > 1;                  /* SIG_DFL, SIG_IGN */
        set_of(wanted->mask, &own.sa_mask);
        for (unsigned i = 0; i < sizeof action_flags / sizeof *action_flags; i++)
            if (wanted->flags & action_flags[i][0]) own.sa_flags |= action_flags[i][1];
        if (is_function) own.sa_sigaction = deliver, own.sa_flags |= SA_SIGINFO;
        else own.sa_handler = (void (*)(int))(void *)wanted->run;
        if (is_function) __atomic_store_n(&handlers[own_number], wanted->run, __ATOMIC_RELEASE);
    }
    int result = sigaction(own_number, wanted ? &own : NULL, &old);
    if (!result && before) {
        *before = (struct darwin_action){old.sa_sigaction == deliver ? old_handler : (handler)(void *)old.sa_handler, mask_of(&old.sa_mask), 0};
        for (unsigned i = 0; i < sizeof action_flags / sizeof *action_flags; i++)
            if (old.sa_flags & action_flags[i][1]) before->flags |= action_flags[i][0];
        if (old.sa_flags & SA_SIGINFO) before->flags |= 0x40;
    }
    return result;
}

void *darwin_signal(int number, void *run) {
    struct darwin_action wanted = {(handler)run, 0, 2}, before;
    return darwin_sigaction(number, &wanted, &before) ? (void *)-1 : (void *)before.run;
}

static int how_of(int how) { return how == 1 ? SIG_BLOCK : how == 2 ? SIG_UNBLOCK : how == 3 ? SIG_SETMASK : -1; }
int darwin_pthread_sigmask(int how, const uint32_t *wanted, uint32_t *before) {
    sigset_t own, old;
    if (wanted) set_of(*wanted, &own);
    int result = pthread_sigmask(wanted ? how_of(how) : SIG_BLOCK, wanted ? &own : NULL, &old);
    if (!result && before) *before = mask_of(&old);
    return darwin_error_number(result);
}
int darwin_sigprocmask(int how, const uint32_t *wanted, uint32_t *before) {
    int result = darwin_pthread_sigmask(how, wanted, before);
    return result ? errno = linux_error_number(result), -1 : 0;
}
int darwin_sigemptyset(uint32_t *set) { *set = 0; return 0; }
int darwin_sigfillset(uint32_t *set) { *set = ~0u; return 0; }
int darwin_sigaddset(uint32_t *set, int number) { *set |= 1u << (number - 1); return 0; }
int darwin_kill(pid_t process, int number) { return kill(process, linux_signal(number)); }
int darwin_raise(int number) { return raise(linux_signal(number)); }
int darwin_pthread_kill(pthread_t thread, int number) { return darwin_error_number(pthread_kill(thread, linux_signal(number))); }
char *darwin_strsignal(int number) { return strsignal(linux_signal(number)); }

/* --- processes --- */

/* The arguments after the first, up to a NULL. */
int darwin_execl(const char *path, const char *first, void *rest) {
    char **more = rest, *arguments[256] = {(char *)first};
    int count = 1;
    while (first && count < 255 && (arguments[count] = more[count - 1])) count++;
    return execv(path, arguments);
}

/* How a process ended: a signal's number is macOS'; "stopped" and "continued" are written otherwise. */
pid_t darwin_waitpid(pid_t process, int *status, int options) {
    int own, flags = (options & 1 ? WNOHANG : 0) | (options & 2 ? WUNTRACED : 0) | (options & 0x10 ? WCONTINUED : 0);
    pid_t ended = waitpid(process, &own, flags);
    if (ended <= 0 || !status) return ended;
    if (WIFEXITED(own)) *status = WEXITSTATUS(own) << 8;
    else if (WIFSIGNALED(own)) *status = darwin_signal_number(WTERMSIG(own)) | (WCOREDUMP(own) ? 0x80 : 0);
    else if (WIFSTOPPED(own)) *status = 0x7f | darwin_signal_number(WSTOPSIG(own)) << 8;
    else *status = 0x7f | 0x13 << 8;
    return ended;
}

int darwin_waitid(int kind, id_t id, struct darwin_info *info, int options) {
    static const int own_options[][2] = {{0x1, WNOHANG}, {0x4, WEXITED}, {0x8, WSTOPPED}, {0x10, WCONTINUED}, {0x20, WNOWAIT}};
    siginfo_t own = {0};
    int flags = 0;
    for (unsigned i = 0; i < sizeof own_options / sizeof *own_options; i++)
        if (options & own_options[i][0]) flags |= own_options[i][1];
    int result = waitid((idtype_t)kind, id, &own, flags);
    if (result || !info) return result;
    memset(info, 0, sizeof *info);
    if (!own.si_pid) return 0;                                            /* none has ended yet */
    info->number = darwin_signal_number(own.si_signo), info->code = own.si_code, info->process = own.si_pid, info->user = own.si_uid;
    info->status = own.si_code == CLD_EXITED ? own.si_status : darwin_signal_number(own.si_status);
    return 0;
}

/* posix_spawn's objects are pointers there. */
int darwin_posix_spawn_file_actions_init(void **actions) {
    if (!(*actions = malloc(sizeof(posix_spawn_file_actions_t)))) return ENOMEM;
    return darwin_error_number(posix_spawn_file_actions_init(*actions));
}
int darwin_posix_spawn_file_actions_destroy(void **actions) {
    int result = posix_spawn_file_actions_destroy(*actions);
    free(*actions);
    return darwin_error_number(result);
}
int darwin_posix_spawn_file_actions_addclose(void **actions, int file) { return darwin_error_number(posix_spawn_file_actions_addclose(*actions, file)); }
int darwin_posix_spawn_file_actions_adddup2(void **actions, int from, int to) { return darwin_error_number(posix_spawn_file_actions_adddup2(*actions, from, to)); }
/* A file dupped onto itself loses its mark to be closed. */
int darwin_posix_spawn_file_actions_addinherit_np(void **actions, int file) { return darwin_posix_spawn_file_actions_adddup2(actions, file, file); }
int darwin_posix_spawn_file_actions_addopen(void **actions, int file, const char *path, int flags, unsigned mode) {
    return darwin_error_number(posix_spawn_file_actions_addopen(*actions, file, path, linux_open_flags(flags), mode));
}
int darwin_posix_spawnattr_init(void **attributes) {
    if (!(*attributes = malloc(sizeof(posix_spawnattr_t)))) return ENOMEM;
    return darwin_error_number(posix_spawnattr_init(*attributes));
}
int darwin_posix_spawnattr_destroy(void **attributes) { free(*attributes); return 0; }
int darwin_posix_spawnattr_setflags(void **attributes, short flags) {
    /* RESETIDS, SETPGROUP, SETSIGDEF, SETSIGMASK have Linux' numbers but for the first; CLOEXEC_DEFAULT does not exist */
    short own = (short)((flags & 1 ? POSIX_SPAWN_RESETIDS : 0) | (flags & 2 ? POSIX_SPAWN_SETPGROUP : 0) |
                        (flags & 4 ? POSIX_SPAWN_SETSIGDEF : 0) | (flags & 8 ? POSIX_SPAWN_SETSIGMASK : 0));
    if (flags & 0x400) own |= POSIX_SPAWN_SETSID;
    return darwin_error_number(posix_spawnattr_setflags(*attributes, own));
}
int darwin_posix_spawnattr_setsigdefault(void **attributes, const uint32_t *mask) {
    sigset_t own;
    set_of(*mask, &own);
    return darwin_error_number(posix_spawnattr_setsigdefault(*attributes, &own));
}
int darwin_posix_spawnattr_setsigmask(void **attributes, const uint32_t *mask) {
    sigset_t own;
    set_of(*mask, &own);
    return darwin_error_number(posix_spawnattr_setsigmask(*attributes, &own));
}
int darwin_posix_spawn(pid_t *process, const char *path, void **actions, void **attributes, char *const *arguments, char *const *environment) {
    return darwin_error_number(posix_spawn(process, path, actions ? *actions : NULL, attributes ? *attributes : NULL, arguments, environment));
}

/* --- limits and uses --- */

static int resource_of(int resource) {
    static const int own[] = {RLIMIT_CPU, RLIMIT_FSIZE, RLIMIT_DATA, RLIMIT_STACK, RLIMIT_CORE, RLIMIT_AS, RLIMIT_MEMLOCK, RLIMIT_NPROC, RLIMIT_NOFILE};
    resource &= 0xff;
    return resource >= 0 && resource < 9 ? own[resource] : -1;
}
/* "No limit" is the largest signed number there. */
static uint64_t limit_of(uint64_t limit) { return limit > INT64_MAX ? INT64_MAX : limit; }
int darwin_getrlimit(int resource, uint64_t *limits) {
    struct rlimit own;
    int result = getrlimit(resource_of(resource), &own);
    if (!result) limits[0] = limit_of(own.rlim_cur), limits[1] = limit_of(own.rlim_max);
    return result;
}
int darwin_setrlimit(int resource, const uint64_t *limits) {
    struct rlimit own = {limits[0] >= INT64_MAX ? RLIM_INFINITY : limits[0], limits[1] >= INT64_MAX ? RLIM_INFINITY : limits[1]};
    return setrlimit(resource_of(resource), &own);
}

struct darwin_usage { struct { int64_t seconds; int32_t microseconds, pad; } user, system; long counts[14]; };
int darwin_getrusage(int who, struct darwin_usage *usage) {
    struct rusage own;
    int result = getrusage(who, &own);
    if (result) return result;
    memset(usage, 0, sizeof *usage);
    usage->user.seconds = own.ru_utime.tv_sec, usage->user.microseconds = (int32_t)own.ru_utime.tv_usec;
    usage->system.seconds = own.ru_stime.tv_sec, usage->system.microseconds = (int32_t)own.ru_stime.tv_usec;
    memcpy(usage->counts, &own.ru_maxrss, sizeof usage->counts);
    usage->counts[0] *= 1024;                                            /* the largest size is in bytes there */
    return 0;
}
unsigned long darwin_times(unsigned long *to) {                          /* 100 ticks a second, as here */
    struct tms own;
    clock_t result = times(&own);
    to[0] = (unsigned long)own.tms_utime, to[1] = (unsigned long)own.tms_stime, to[2] = (unsigned long)own.tms_cutime, to[3] = (unsigned long)own.tms_cstime;
    return (unsigned long)result;
}

long darwin_sysconf(int name) {
    static const short names[][2] = {{1, _SC_ARG_MAX}, {2, _SC_CHILD_MAX}, {3, _SC_CLK_TCK}, {4, _SC_NGROUPS_MAX}, {5, _SC_OPEN_MAX},
        {29, _SC_PAGESIZE}, {56, _SC_IOV_MAX}, {57, _SC_NPROCESSORS_CONF}, {58, _SC_NPROCESSORS_ONLN}, {70, _SC_GETGR_R_SIZE_MAX},
        {71, _SC_GETPW_R_SIZE_MAX}, {72, _SC_HOST_NAME_MAX}, {200, _SC_PHYS_PAGES}};
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
        if (names[i][0] == name) return sysconf(names[i][1]);
    errno = EINVAL;
    return -1;
}

int darwin_uname(char *to) {
    struct utsname own;
    int result = uname(&own);
    if (result) return result;
    memset(to, 0, 5 * 256);
    strcpy(to, "Darwin");
    snprintf(to + 256, 256, "%s", own.nodename);
    strcpy(to + 512, "23.0.0");
    strcpy(to + 768, "Darwin Kernel");
    strcpy(to + 1024, "arm64");
    return 0;
}

struct darwin_user { char *name, *password; uint32_t user, group; long changed; char *class, *comment, *home, *shell; long expires; };
#include <pwd.h>
int darwin_getpwuid_r(uid_t user, struct darwin_user *to, char *buffer, size_t size, struct darwin_user **result) {
    struct passwd own, *found;
    int number = getpwuid_r(user, &own, buffer, size, &found);
    *result = found ? to : NULL;
    if (found) *to = (struct darwin_user){own.pw_name, own.pw_passwd, own.pw_uid, own.pw_gid, 0, "", own.pw_gecos, own.pw_dir, own.pw_shell, 0};
    return darwin_error_number(number);
}
