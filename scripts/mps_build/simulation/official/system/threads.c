/* pthread. macOS' static initialisers are signatures, where glibc's are zero; its numbers differ. */
#define _GNU_SOURCE
#include "system.h"
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <linux/futex.h>

/* --- what a program has initialised by writing a signature is made glibc's before it is used --- */

enum { MUTEX = 0x32AAABA7, ERRORCHECK = 0x32AAABA1, RECURSIVE = 0x32AAABA2, FIRSTFIT = 0x32AAABA3, CONDITION = 0x3CB0B1BB,
       READERS = 0x2DA8B3B4, ONCE = 0x30B1BCBA };

static void settle(void *object, uint64_t signature) {
    uint64_t expected = signature, *word = object;
    if (__atomic_load_n(word, __ATOMIC_ACQUIRE) == signature)
        __atomic_compare_exchange_n(word, &expected, 0, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

static pthread_mutex_t *mutex_of(void *object) {
    uint64_t signature = __atomic_load_n((uint64_t *)object, __ATOMIC_ACQUIRE);
    if (signature == MUTEX || signature == FIRSTFIT) settle(object, signature);
    if (signature == RECURSIVE || signature == ERRORCHECK) {
        /* Two threads that come at once write the same kind, before either takes the signature away. */
        int kind = signature == RECURSIVE ? PTHREAD_MUTEX_RECURSIVE : PTHREAD_MUTEX_ERRORCHECK;
        __atomic_store_n(&((pthread_mutex_t *)object)->__data.__kind, kind, __ATOMIC_RELAXED);
        settle(object, signature);
    }
    return object;
}

static pthread_cond_t *condition_of(void *object) { settle(object, CONDITION); return object; }
static pthread_rwlock_t *readers_of(void *object) { settle(object, READERS); return object; }
static int answer(int number) { return darwin_error_number(number); }

int darwin_pthread_mutex_init(void *mutex, void *attributes) { return answer(pthread_mutex_init(mutex, attributes)); }
int darwin_pthread_mutex_lock(void *mutex) { return answer(pthread_mutex_lock(mutex_of(mutex))); }
int darwin_pthread_mutex_trylock(void *mutex) { return answer(pthread_mutex_trylock(mutex_of(mutex))); }
int darwin_pthread_mutex_unlock(void *mutex) { return answer(pthread_mutex_unlock(mutex_of(mutex))); }
int darwin_pthread_mutex_destroy(void *mutex) { return answer(pthread_mutex_destroy(mutex_of(mutex))); }
int darwin_pthread_mutexattr_settype(void *attributes, int type) {
    static const int types[] = {PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_ERRORCHECK, PTHREAD_MUTEX_RECURSIVE};
    return type < 0 || type > 2 ? 22 : answer(pthread_mutexattr_settype(attributes, types[type]));
}

int darwin_pthread_cond_wait(void *condition, void *mutex) { return answer(pthread_cond_wait(condition_of(condition), mutex_of(mutex))); }
int darwin_pthread_cond_timedwait(void *condition, void *mutex, const struct timespec *until) {
    return answer(pthread_cond_timedwait(condition_of(condition), mutex_of(mutex), until));
}

static struct timespec after(const struct timespec *span) {
    struct timespec time;
    clock_gettime(CLOCK_REALTIME, &time);
    time.tv_sec += span->tv_sec;
    time.tv_nsec += span->tv_nsec;
    if (time.tv_nsec >= 1000000000) time.tv_nsec -= 1000000000, time.tv_sec++;
    return time;
}

int darwin_pthread_cond_timedwait_relative_np(void *condition, void *mutex, const struct timespec *span) {
    struct timespec until = after(span);
    return darwin_pthread_cond_timedwait(condition, mutex, &until);
}
int darwin_pthread_cond_signal(void *condition) { return answer(pthread_cond_signal(condition_of(condition))); }
int darwin_pthread_cond_broadcast(void *condition) { return answer(pthread_cond_broadcast(condition_of(condition))); }
int darwin_pthread_cond_destroy(void *condition) { return answer(pthread_cond_destroy(condition_of(condition))); }

int darwin_pthread_rwlock_rdlock(void *lock) { return answer(pthread_rwlock_rdlock(readers_of(lock))); }
int darwin_pthread_rwlock_wrlock(void *lock) { return answer(pthread_rwlock_wrlock(readers_of(lock))); }
int darwin_pthread_rwlock_tryrdlock(void *lock) { return answer(pthread_rwlock_tryrdlock(readers_of(lock))); }
int darwin_pthread_rwlock_trywrlock(void *lock) { return answer(pthread_rwlock_trywrlock(readers_of(lock))); }
int darwin_pthread_rwlock_unlock(void *lock) { return answer(pthread_rwlock_unlock(readers_of(lock))); }
int darwin_pthread_rwlock_destroy(void *lock) { return answer(pthread_rwlock_destroy(readers_of(lock))); }

/* pthread_once_t is {signature, state} there, and an int here: the state of glibc is the first word. */
int darwin_pthread_once(void *once, void (*run)(void)) {
    settle(once, ONCE);
    return answer(pthread_once(once, run));
}

/* --- threads --- */

int darwin_pthread_attr_setdetachstate(void *attributes, int state) {        /* 1 joinable, 2 detached */
    return state != 1 && state != 2 ? 22 : answer(pthread_attr_setdetachstate(attributes, state == 2 ? PTHREAD_CREATE_DETACHED : PTHREAD_CREATE_JOINABLE));
}
int darwin_pthread_attr_setstacksize(void *attributes, size_t size) { return answer(pthread_attr_setstacksize(attributes, size)); }
int darwin_pthread_create(pthread_t *thread, const void *attributes, void *(*run)(void *), void *argument) {
    return answer(pthread_create(thread, attributes, run, argument));
}
int darwin_pthread_join(pthread_t thread, void **result) { return answer(pthread_join(thread, result)); }
int darwin_pthread_key_create(uint64_t *key, void (*destroy)(void *)) {      /* the key is an unsigned long there */
    pthread_key_t made;
    int result = pthread_key_create(&made, destroy);
    *key = made;
    return answer(result);
}
int darwin_pthread_setcancelstate(int state, int *before) {                  /* 1 enabled, 0 disabled */
    int old, result = pthread_setcancelstate(state ? PTHREAD_CANCEL_ENABLE : PTHREAD_CANCEL_DISABLE, &old);
    if (before) *before = old == PTHREAD_CANCEL_ENABLE;
    return answer(result);
}
int darwin_pthread_setcanceltype(int type, int *before) {                    /* 2 deferred, 0 asynchronous */
    int old, result = pthread_setcanceltype(type ? PTHREAD_CANCEL_DEFERRED : PTHREAD_CANCEL_ASYNCHRONOUS, &old);
    if (before) *before = old == PTHREAD_CANCEL_DEFERRED ? 2 : 0;
    return answer(result);
}
/* A name of up to 63 characters there, of up to 15 here. */
int darwin_pthread_setname_np(const char *name) {
    char cut[16];
    snprintf(cut, sizeof cut, "%s", name);
    return answer(pthread_setname_np(pthread_self(), cut));
}
int darwin_pthread_getname_np(pthread_t thread, char *name, size_t size) { return answer(pthread_getname_np(thread, name, size)); }
int darwin_pthread_threadid_np(void *thread, uint64_t *number) {
    if (thread && (pthread_t)thread != pthread_self()) return 3;
    *number = (uint64_t)syscall(SYS_gettid);
    return 0;
}
uint32_t darwin_pthread_mach_thread_np(void *thread) { (void)thread; return (uint32_t)syscall(SYS_gettid); }
uint32_t darwin_mach_thread_self(void) { return (uint32_t)syscall(SYS_gettid); }
/* macOS' policies are 1 other, 2 round robin, 4 first in first out. */
static int policy_of(int policy) { return policy == 2 ? SCHED_RR : policy == 4 ? SCHED_FIFO : SCHED_OTHER; }
int darwin_pthread_getschedparam(pthread_t thread, int *policy, int *priority) {
    struct sched_param found;
    int own, result = pthread_getschedparam(thread, &own, &found);
    if (!result) *policy = own == SCHED_RR ? 2 : own == SCHED_FIFO ? 4 : 1, priority[0] = found.sched_priority, priority[1] = 0;
    return answer(result);
}
int darwin_pthread_setschedparam(pthread_t thread, int policy, const int *priority) {
    struct sched_param wanted = {.sched_priority = policy_of(policy) == SCHED_OTHER ? 0 : *priority};
    return answer(pthread_setschedparam(thread, policy_of(policy), &wanted));
}
int darwin_sched_get_priority_max(int policy) { return sched_get_priority_max(policy_of(policy)); }
int darwin_sched_get_priority_min(int policy) { return sched_get_priority_min(policy_of(policy)); }

/* --- what C++ leaves to be done at the end --- */

extern int __cxa_thread_atexit_impl(void (*)(void *), void *, void *);
extern int __cxa_atexit(void (*)(void *), void *, void *);
extern void *__dso_handle;

void darwin__tlv_atexit(void (*run)(void *), void *object) { __cxa_thread_atexit_impl(run, object, &__dso_handle); }
int darwin___cxa_atexit(void (*run)(void *), void *object, void *image) { (void)image; return __cxa_atexit(run, object, NULL); }
extern int __register_atfork(void (*)(void), void (*)(void), void (*)(void), void *);
int darwin_pthread_atfork(void (*before)(void), void (*parent)(void), void (*child)(void)) { return answer(__register_atfork(before, parent, child, NULL)); }

/* --- waiting for a word of memory: what libc++ builds atomic waits of --- */

enum { ULOCK_COMPARE = 1, ULOCK_COMPARE64 = 5, ULOCK_WAKE_ALL = 0x100 };

int darwin___ulock_wait(uint32_t operation, void *address, uint64_t value, uint32_t microseconds) {
    struct timespec span = {microseconds / 1000000, microseconds % 1000000 * 1000L};
    if ((operation & 0xff) == ULOCK_COMPARE)
        return (int)syscall(SYS_futex, address, FUTEX_WAIT_PRIVATE, (uint32_t)value, microseconds ? &span : NULL);
    /* Linux waits for 32 bits: half of the value may stay the same, so nothing is waited for longer than this. */
    struct timespec moment = {0, 200000};
    if (__atomic_load_n((uint64_t *)address, __ATOMIC_ACQUIRE) == value) nanosleep(&moment, NULL);
    return 0;
}

int darwin___ulock_wake(uint32_t operation, void *address, uint64_t value) {
    (void)value;
    return (int)syscall(SYS_futex, address, FUTEX_WAKE_PRIVATE, operation & ULOCK_WAKE_ALL ? 0x7fffffff : 1);
}

/* The lock's one word is zero while it is free. */
void darwin_os_unfair_lock_lock(uint32_t *lock) {
    uint32_t free = 0;
    while (!__atomic_compare_exchange_n(lock, &free, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
        free = 0;
        sched_yield();
    }
}
bool darwin_os_unfair_lock_trylock(uint32_t *lock) {
    uint32_t free = 0;
    return __atomic_compare_exchange_n(lock, &free, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}
void darwin_os_unfair_lock_unlock(uint32_t *lock) { __atomic_store_n(lock, 0, __ATOMIC_RELEASE); }

/* --- mach's semaphores --- */

enum { MOST_SEMAPHORES = 4096, KERN_INVALID_ARGUMENT = 4, KERN_RESOURCE_SHORTAGE = 6, KERN_ABORTED = 14, KERN_OPERATION_TIMED_OUT = 49 };
static sem_t *semaphores[MOST_SEMAPHORES];
static uint32_t semaphore_count;

int darwin_semaphore_create(uint32_t task, uint32_t *made, int policy, int value) {
    (void)task, (void)policy;
    uint32_t number = __atomic_add_fetch(&semaphore_count, 1, __ATOMIC_SEQ_CST);
    if (number >= MOST_SEMAPHORES || !(semaphores[number] = malloc(sizeof(sem_t)))) return KERN_RESOURCE_SHORTAGE;
    sem_init(semaphores[number], 0, (unsigned)value);
    *made = number;
    return 0;
}
static sem_t *semaphore_of(uint32_t number) { return number < MOST_SEMAPHORES ? semaphores[number] : NULL; }
int darwin_semaphore_destroy(uint32_t task, uint32_t number) { (void)task; return semaphore_of(number) ? 0 : KERN_INVALID_ARGUMENT; }
int darwin_semaphore_signal(uint32_t number) { return semaphore_of(number) ? sem_post(semaphores[number]), 0 : KERN_INVALID_ARGUMENT; }
int darwin_semaphore_wait(uint32_t number) {
    return !semaphore_of(number) ? KERN_INVALID_ARGUMENT : sem_wait(semaphores[number]) ? KERN_ABORTED : 0;
}
int darwin_semaphore_timedwait(uint32_t number, struct { uint32_t seconds; int32_t nanoseconds; } span) {
    struct timespec wait = {span.seconds, span.nanoseconds}, until = after(&wait);
    if (!semaphore_of(number)) return KERN_INVALID_ARGUMENT;
    return !sem_timedwait(semaphores[number], &until) ? 0 : errno == ETIMEDOUT ? KERN_OPERATION_TIMED_OUT : KERN_ABORTED;
}

/* --- libdispatch, as far as the CPU's code uses it; a software Metal has one of its own --- */

enum { DISPATCH_NOW = 0 };
#define DISPATCH_FOREVER (~0ull)
uint64_t darwin_mach_absolute_time(void);

sem_t *darwin_dispatch_semaphore_create(long value) {
    sem_t *made = value < 0 ? NULL : malloc(sizeof *made);
    if (made) sem_init(made, 0, (unsigned)value);
    return made;
}
long darwin_dispatch_semaphore_signal(sem_t *semaphore) { return sem_post(semaphore); }
/* The time is that of mach_absolute_time. */
long darwin_dispatch_semaphore_wait(sem_t *semaphore, uint64_t until) {
    if (until == DISPATCH_NOW) return sem_trywait(semaphore) ? KERN_OPERATION_TIMED_OUT : 0;
    uint64_t now = darwin_mach_absolute_time(), left = until > now ? until - now : 0;
    struct timespec wait = {(time_t)(left / 1000000000), (long)(left % 1000000000)}, end = after(&wait);
    int result;
    while ((result = until == DISPATCH_FOREVER ? sem_wait(semaphore) : sem_timedwait(semaphore, &end)) && errno == EINTR) {}
    return result ? KERN_OPERATION_TIMED_OUT : 0;
}
uint64_t darwin_dispatch_time(uint64_t from, int64_t span) {
    if (from == DISPATCH_FOREVER) return from;
    return (from == DISPATCH_NOW ? darwin_mach_absolute_time() : from) + (uint64_t)span;
}
void darwin_dispatch_release(sem_t *semaphore) {                             /* nothing else is made here */
    sem_destroy(semaphore);
    free(semaphore);
}
void darwin_dispatch_apply_f(size_t count, void *queue, void *context, void (*run)(void *, size_t)) {
    (void)queue;
    for (size_t i = 0; i < count; i++) run(context, i);
}
