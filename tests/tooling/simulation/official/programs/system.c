/* What differs between the systems: libSystem, called as a program for macOS calls it. Each `check_` returns 0, or the
   line that failed. */
#include <arpa/inet.h>
#include <ctype.h>
#include <dirent.h>
#include <dispatch/dispatch.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <netdb.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysctl.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define EXPECT(what) do { if (!(what)) return __LINE__; } while (0)

static int formatted(char *to, size_t size, const char *format, ...) {
    va_list list;
    va_start(list, format);
    int count = vsnprintf(to, size, format, list);
    va_end(list);
    return count;
}

int check_variadics(void) {
    char text[128], word[16];
    int one, two;
    double number;
    EXPECT(snprintf(text, sizeof text, "%d %s %.2f %c %lld", 7, "seven", 2.5, 'x', -9000000000LL) == 26);
    EXPECT(!strcmp(text, "7 seven 2.50 x -9000000000"));
    EXPECT(formatted(text, sizeof text, "%s %d %d %d %d %d %d %d %d %.1f", "a", 1, 2, 3, 4, 5, 6, 7, 8, 9.5) == 21);
    EXPECT(!strcmp(text, "a 1 2 3 4 5 6 7 8 9.5"));
    EXPECT(sscanf("12 0x1f word 3.25", "%d %x %15s %lf", &one, (unsigned *)&two, word, &number) == 4);
    EXPECT(one == 12 && two == 31 && !strcmp(word, "word") && number == 3.25);
    return 0;
}

int check_long_double(void) {
    char text[64];
    long double read = 0;
    EXPECT(sizeof(long double) == 8);
    EXPECT(snprintf(text, sizeof text, "%.3Lf|%Lg|%%L|%5d", 1.5L, 0.25L, 3) == 19);
    EXPECT(!strcmp(text, "1.500|0.25|%L|    3"));
    EXPECT(strtold("2.75x", NULL) == 2.75L);
    EXPECT(sscanf("6.5", "%Lf", &read) == 1 && read == 6.5L);
    EXPECT(nexttowardf(1.0f, 2.0L) > 1.0f && nexttowardf(1.0f, 1.0L) == 1.0f);
    return 0;
}

/* Small arguments on the stack lie side by side there. */
__attribute__((noinline)) int packed(int a, int b, int c, int d, int e, int f, int g, int h, char i, short j, char k, int l) {
    return i == 1 && j == 2 && k == 3 && l == 4 && a + b + c + d + e + f + g + h == 36;
}
int check_packed_arguments(void) { EXPECT(packed(1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4)); return 0; }

int check_errno(void) {
    struct sockaddr_in nobody = {.sin_len = sizeof nobody, .sin_family = AF_INET, .sin_port = htons(1), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int file = socket(AF_INET, SOCK_STREAM, 0), pipes[2];
    char byte;
    EXPECT(connect(file, (struct sockaddr *)&nobody, sizeof nobody) == -1 && errno == ECONNREFUSED);
    EXPECT(strstr(strerror(ECONNREFUSED), "efused"));
    EXPECT(!pipe(pipes) && !fcntl(pipes[0], F_SETFL, O_NONBLOCK));
    EXPECT(read(pipes[0], &byte, 1) == -1 && errno == EAGAIN && EAGAIN == 35);
    errno = 0;
    EXPECT(strtol("99999999999999999999", NULL, 10) == LONG_MAX && errno == ERANGE);
    errno = 0;
    EXPECT(strtol("12", NULL, 10) == 12 && errno == 0);
    errno = 0;
    EXPECT(strtol("99999999999999999999", NULL, 10) == LONG_MAX && errno == ERANGE);
    EXPECT(open("/no/such/file", O_RDONLY) == -1 && errno == ENOENT);
    close(file), close(pipes[0]), close(pipes[1]);
    return 0;
}

int check_files(void) {
    char name[] = "/tmp/official.XXXXXX", path[64], text[32];
    struct stat status;
    EXPECT(mkdtemp(name));
    snprintf(path, sizeof path, "%s/file", name);
    int file = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0640);
    EXPECT(file >= 0 && fcntl(file, F_GETFD) == FD_CLOEXEC);
    EXPECT(write(file, "hello", 5) == 5);
    EXPECT(!fstat(file, &status) && status.st_size == 5 && S_ISREG(status.st_mode) && (status.st_mode & 0777) == 0640);
    EXPECT(open(path, O_RDWR | O_CREAT | O_EXCL, 0640) == -1 && errno == EEXIST);
    int second = open(path, O_WRONLY | O_APPEND);
    EXPECT(fcntl(second, F_GETFL) == (O_WRONLY | O_APPEND));
    EXPECT(write(second, "!", 1) == 1 && lseek(file, 0, SEEK_END) == 6);
    EXPECT(!fcntl(second, F_FULLFSYNC) && !fcntl(file, F_GETPATH, (char[1024]){0}));
    char *map = mmap(NULL, 6, PROT_READ, MAP_PRIVATE, file, 0), *none = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_ANON | MAP_PRIVATE, -1, 0);
    EXPECT(map != MAP_FAILED && !memcmp(map, "hello!", 6) && none != MAP_FAILED && (none[0] = 1));
    FILE *stream = fopen(path, "r+");
    EXPECT(stream && fgets(text, sizeof text, stream) && !strcmp(text, "hello!") && getc(stream) == EOF && feof(stream));
    EXPECT(!fseek(stream, 0, SEEK_SET) && putc('J', stream) == 'J' && fprintf(stream, "%s%d", "ell", 1) == 4 && !fclose(stream));
    EXPECT(!stat(path, &status) && pread(file, text, 6, 0) == 6 && !memcmp(text, "Jell1!", 6));
    DIR *folder = opendir(name);
    int found = 0;
    for (struct dirent *entry; (entry = readdir(folder));) found += !strcmp(entry->d_name, "file") && entry->d_namlen == 4 && entry->d_type == DT_REG;
    closedir(folder);
    EXPECT(found == 1 && !unlink(path) && !rmdir(name));
    close(file), close(second);
    return 0;
}

int check_shared_memory(void) {
    char name[32];
    snprintf(name, sizeof name, "/official%d", getpid());
    int file = shm_open(name, O_CREAT | O_EXCL | O_RDWR, 0600);
    EXPECT(file >= 0 && !ftruncate(file, 4096));
    EXPECT(shm_open(name, O_CREAT | O_EXCL | O_RDWR, 0600) == -1 && errno == EEXIST);
    EXPECT(!shm_unlink(name));
    return 0;
}

int check_characters(void) {
    EXPECT(isalpha('a') && !isalpha('1') && isdigit('7') && isspace('\t') && isupper('Q') && !isupper('q') && isxdigit('f') && ispunct('!'));
    EXPECT(toupper('z') == 'Z' && tolower('A') == 'a' && tolower('_') == '_');
    EXPECT((char)-1 < 0 && strcmp("\xff", "a") > 0);
    char text[4];
    EXPECT(strlcpy(text, "abcdef", sizeof text) == 6 && !strcmp(text, "abc"));
    return 0;
}

static pthread_mutex_t plain = PTHREAD_MUTEX_INITIALIZER, recursive = PTHREAD_RECURSIVE_MUTEX_INITIALIZER;
static pthread_cond_t ready = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t readers = PTHREAD_RWLOCK_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t key;
static int counted, is_ready, ran_once, destroyed;
static _Thread_local int own = 5;

static void run_once(void) { ran_once++; }
static void destroy(void *value) { destroyed += value != NULL; }
static void *count_up(void *result) {
    own++;
    pthread_once(&once, run_once);
    pthread_setspecific(key, &own);
    pthread_rwlock_rdlock(&readers);
    pthread_rwlock_unlock(&readers);
    for (int i = 0; i < 1000; i++) pthread_mutex_lock(&plain), counted++, pthread_mutex_unlock(&plain);
    pthread_mutex_lock(&plain);
    is_ready++;
    pthread_cond_broadcast(&ready);
    pthread_mutex_unlock(&plain);
    *(int *)result = own;
    return result;
}

int check_threads(void) {
    pthread_t threads[4];
    int values[4];
    void *answer;
    struct timespec soon = {0, 1000000};
    EXPECT(!pthread_key_create(&key, destroy));
    for (int i = 0; i < 4; i++) EXPECT(!pthread_create(&threads[i], NULL, count_up, &values[i]));
    pthread_mutex_lock(&plain);
    while (is_ready < 4) pthread_cond_wait(&ready, &plain);
    EXPECT(pthread_cond_timedwait_relative_np(&ready, &plain, &soon) == ETIMEDOUT && ETIMEDOUT == 60);
    EXPECT(pthread_mutex_trylock(&plain) == EBUSY);
    pthread_mutex_unlock(&plain);
    for (int i = 0; i < 4; i++) EXPECT(!pthread_join(threads[i], &answer) && answer == &values[i] && values[i] == 6);
    EXPECT(counted == 4000 && own == 5 && ran_once == 1 && destroyed == 4);
    EXPECT(!pthread_mutex_lock(&recursive) && !pthread_mutex_lock(&recursive) && !pthread_mutex_unlock(&recursive) && !pthread_mutex_unlock(&recursive));
    pthread_attr_t attributes;
    EXPECT(!pthread_attr_init(&attributes) && !pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_JOINABLE) && !pthread_attr_destroy(&attributes));
    EXPECT(!pthread_setname_np("a name of more than fifteen characters"));
    return 0;
}

static sigjmp_buf place;
static volatile int signals;
static void on_signal(int number) { signals += number == SIGUSR1 ? 1 : 100; }
static void on_fault(int number, siginfo_t *info, void *context) { (void)context; signals += number == SIGBUS || number == SIGSEGV ? info->si_addr == (void *)16 : 100; siglongjmp(place, 3); }

int check_signals(void) {
    struct sigaction action = {.sa_handler = on_signal}, before;
    sigset_t mask, old;
    EXPECT(!sigaction(SIGUSR1, &action, NULL) && !raise(SIGUSR1) && signals == 1 && SIGUSR1 == 30);
    EXPECT(!sigaction(SIGUSR1, NULL, &before) && before.sa_handler == on_signal);
    sigemptyset(&mask), sigaddset(&mask, SIGUSR1);
    EXPECT(!pthread_sigmask(SIG_BLOCK, &mask, &old) && !raise(SIGUSR1) && signals == 1 && !pthread_sigmask(SIG_SETMASK, &old, NULL) && signals == 2);
    action = (struct sigaction){.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_NODEFER};
    EXPECT(!sigaction(SIGSEGV, &action, &before));
    if (!sigsetjmp(place, 1)) *(volatile int *)16 = 1;
    EXPECT(signals == 3 && !sigaction(SIGSEGV, &before, NULL));
    return 0;
}

static jmp_buf back;
__attribute__((noinline)) static void jump(int value) { longjmp(back, value); }
int check_jumps(void) {
    volatile int local = 4;
    struct { char before[16]; jmp_buf buffer; char after[16]; } guarded = {.before = "before", .after = "after"};
    int value = _setjmp(back);
    if (!value) local = 5, jump(7);
    EXPECT(value == 7 && local == 5);
    if (!setjmp(guarded.buffer)) longjmp(guarded.buffer, 1);
    EXPECT(!strcmp(guarded.before, "before") && !strcmp(guarded.after, "after"));
    return 0;
}

int check_processes(void) {
    int status, both[2];
    siginfo_t info;
    pid_t child = fork();
    if (!child) _exit(own == 5 ? 3 : 4);
    EXPECT(!waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT) && info.si_pid == child && info.si_status == 3 && info.si_code == CLD_EXITED);
    EXPECT(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 3);
    child = fork();
    if (!child) raise(SIGBUS), _exit(0);
    EXPECT(waitpid(child, &status, 0) == child && WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS);
    EXPECT(!pipe(both));
    posix_spawn_file_actions_t actions;
    char *arguments[] = {"sh", "-c", "echo said; exit 9", NULL}, text[8] = {0};
    EXPECT(!posix_spawn_file_actions_init(&actions) && !posix_spawn_file_actions_adddup2(&actions, both[1], 1));
    EXPECT(!posix_spawn(&child, "/bin/sh", &actions, NULL, arguments, NULL) && !posix_spawn_file_actions_destroy(&actions));
    EXPECT(waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 9 && read(both[0], text, 5) == 5 && !strcmp(text, "said\n"));
    EXPECT((child = fork()) >= 0);
    if (!child) execl("/bin/sh", "sh", "-c", "exit $1", "x", "6", NULL), _exit(99);
    EXPECT(waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 6);
    return 0;
}

int check_limits(void) {
    struct rlimit limit;
    struct rusage usage;
    struct utsname names;
    size_t size = sizeof(int);
    int count = 0;
    EXPECT(!getrlimit(RLIMIT_NOFILE, &limit) && limit.rlim_cur > 8 && limit.rlim_cur <= limit.rlim_max);
    EXPECT(!getrlimit(RLIMIT_CORE, &limit) && !getrusage(RUSAGE_SELF, &usage) && usage.ru_maxrss > 1 << 20);
    EXPECT(sysconf(_SC_NPROCESSORS_ONLN) >= 1 && sysconf(_SC_PAGESIZE) >= 4096 && sysconf(9999) == -1);
    EXPECT(!sysctlbyname("hw.ncpu", &count, &size, NULL, 0) && count >= 1 && !uname(&names) && !strcmp(names.machine, "arm64"));
    struct timespec first, second;
    EXPECT(!clock_gettime(CLOCK_MONOTONIC, &first) && !clock_gettime(CLOCK_MONOTONIC_RAW, &second) && !clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &second));
    return 0;
}

int check_sockets(void) {
    struct sockaddr_in address = {.sin_len = sizeof address, .sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}}, other;
    socklen_t size = sizeof address;
    int server = socket(AF_INET, SOCK_STREAM, 0), client = socket(AF_INET, SOCK_STREAM, 0), yes = 1, no = 0;
    struct timeval span = {1, 500000}, read_span = {0};
    EXPECT(!setsockopt(server, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) && !setsockopt(client, SOL_SOCKET, SO_NOSIGPIPE, &yes, sizeof yes));
    EXPECT(!bind(server, (struct sockaddr *)&address, size) && !listen(server, 1) && !getsockname(server, (struct sockaddr *)&address, &size));
    EXPECT(address.sin_family == AF_INET && address.sin_len == sizeof address && address.sin_port);
    EXPECT(!connect(client, (struct sockaddr *)&address, sizeof address));
    size = sizeof other;
    int served = accept(server, (struct sockaddr *)&other, &size);
    EXPECT(served >= 0 && other.sin_family == AF_INET && send(client, "ping", 4, 0) == 4);
    fd_set set;
    FD_ZERO(&set), FD_SET(served, &set);
    EXPECT(select(served + 1, &set, NULL, NULL, &span) == 1 && FD_ISSET(served, &set));
    char text[8] = {0};
    EXPECT(recv(served, text, 8, 0) == 4 && !strcmp(text, "ping"));
    size = sizeof read_span;
    EXPECT(!setsockopt(served, SOL_SOCKET, SO_RCVTIMEO, &span, sizeof span) && !getsockopt(served, SOL_SOCKET, SO_RCVTIMEO, &read_span, &size));
    EXPECT(read_span.tv_sec == 1 && read_span.tv_usec == 500000);
    size = sizeof no;
    EXPECT(!getsockopt(client, SOL_SOCKET, SO_ERROR, &no, &size) && no == 0);
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICHOST}, *found;
    EXPECT(!getaddrinfo("::1", "80", &hints, &found) && found->ai_family == AF_INET6 && found->ai_addr->sa_family == AF_INET6);
    freeaddrinfo(found);
    EXPECT(getaddrinfo("not a number", NULL, &hints, &found) == EAI_NONAME);
    close(server), close(client), close(served);
    return 0;
}

int check_versions(void) {
    char text[16];
    size_t size = sizeof text;
    setenv("MPS_BUILD_MACOS", "15.2", 1);
    if (__builtin_available(macOS 15.1, *)) size += 0; else return __LINE__;
    if (__builtin_available(macOS 15.4, *)) return __LINE__;
    if (__builtin_available(macOS 26, *)) return __LINE__;
    EXPECT(!sysctlbyname("kern.osproductversion", text, &size, NULL, 0) && !strcmp(text, "15.2") && size == 5);
    setenv("MPS_BUILD_MACOS", "26", 1);
    if (__builtin_available(macOS 26, *)) return 0;
    return __LINE__;
}

static void add_one(void *total, size_t i) { *(size_t *)total += i; }
int check_dispatch(void) {
    dispatch_semaphore_t semaphore = dispatch_semaphore_create(1);
    size_t total = 0;
    EXPECT(!dispatch_semaphore_wait(semaphore, DISPATCH_TIME_FOREVER) && dispatch_semaphore_wait(semaphore, DISPATCH_TIME_NOW));
    EXPECT(dispatch_semaphore_wait(semaphore, dispatch_time(DISPATCH_TIME_NOW, 1000000)));
    dispatch_semaphore_signal(semaphore);
    EXPECT(!dispatch_semaphore_wait(semaphore, dispatch_time(DISPATCH_TIME_NOW, 1000000)));
    dispatch_release(semaphore);
    dispatch_apply_f(5, NULL, &total, add_one);
    EXPECT(total == 10);
    return 0;
}

int check_dyld(void) {
    Dl_info info;
    EXPECT(dladdr((void *)check_dyld, &info) && strstr(info.dli_fname, "libsystem") && !strcmp(info.dli_sname, "check_dyld"));
    EXPECT(dlsym(RTLD_DEFAULT, "check_variadics") == (void *)check_variadics && dlsym(RTLD_DEFAULT, "printf") && !dlsym(RTLD_DEFAULT, "no_such_name") && dlerror());
    EXPECT(!dlopen("/no/such/library.dylib", RTLD_NOW) && dlerror());
    return 0;
}
