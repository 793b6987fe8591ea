/* Runs the threads of a dispatch: plain ones in a loop, cooperative ones on a stack each. */
#define _GNU_SOURCE
#include "runtime.h"
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

struct lane *rt_current;
struct run rt_job;
struct report rt_said;

static struct lane lanes[MOST_THREADS];
static struct lane plain;
static char *stacks;
static void *scheduler_sp;
static sigjmp_buf rescue;
static volatile sig_atomic_t is_running;
static char signal_stack[64 * 1024];
static uint32_t order[MOST_THREADS];
static void *arena[64];
static size_t arena_size[64];
static uint32_t arena_zero[64];
static int arena_count;
static uint32_t row_length; /* of the row that runs; 0: single threads */

#if defined(__x86_64__)
/* Saves what the ABI says a callee keeps, and goes on with the other stack. */
__asm__(".text\n.globl rt_switch\nrt_switch:\n"
        "pushq %rbp\npushq %rbx\npushq %r12\npushq %r13\npushq %r14\npushq %r15\n"
        "movq %rsp, (%rdi)\nmovq %rsi, %rsp\n"
        "popq %r15\npopq %r14\npopq %r13\npopq %r12\npopq %rbx\npopq %rbp\nret\n");
#elif defined(__aarch64__)
__asm__(".text\n.globl rt_switch\nrt_switch:\n"
        "sub sp, sp, #160\nstp x19, x20, [sp]\nstp x21, x22, [sp, #16]\nstp x23, x24, [sp, #32]\n"
        "stp x25, x26, [sp, #48]\nstp x27, x28, [sp, #64]\nstp x29, x30, [sp, #80]\n"
        "stp d8, d9, [sp, #96]\nstp d10, d11, [sp, #112]\nstp d12, d13, [sp, #128]\nstp d14, d15, [sp, #144]\n"
        "mov x9, sp\nstr x9, [x0]\nmov sp, x1\n"
        "ldp x19, x20, [sp]\nldp x21, x22, [sp, #16]\nldp x23, x24, [sp, #32]\n"
        "ldp x25, x26, [sp, #48]\nldp x27, x28, [sp, #64]\nldp x29, x30, [sp, #80]\n"
        "ldp d8, d9, [sp, #96]\nldp d10, d11, [sp, #112]\nldp d12, d13, [sp, #128]\nldp d14, d15, [sp, #144]\n"
        "add sp, sp, #160\nret\n");
#else
#error "kernels are run on x86-64 and arm64 Linux"
#endif
void rt_switch(void **save, void *go) __attribute__((visibility("hidden")));

static void yield(int state) {
    rt_current->state = state;
    rt_switch(&rt_current->sp, scheduler_sp);
}

static void begin_lane(void) {
    rt_job.entry(rt_job.arguments, rt_current->ids);
    yield(ENDED);
    abort();
}

/* A thread's first frame: rt_switch returns into begin_lane, with the stack aligned as after a call. */
static void prepare(struct lane *lane, int index) {
    uint64_t *top = (uint64_t *)(stacks + (size_t)(index + 1) * STACK_BYTES);
#if defined(__x86_64__)
    *--top = 0;
    *--top = (uint64_t)begin_lane;
    for (int i = 0; i < 6; i++) *--top = 0;
#else
    top -= 20;
    memset(top, 0, 160);
    top[11] = (uint64_t)begin_lane;
#endif
    lane->sp = top;
    lane->state = READY;
}

void rt_barrier(int32_t flags, int32_t scope) {
    (void)scope;
    rt_current->arg = flags;
    yield(AT_BARRIER);
}

void rt_simd(int32_t op, int32_t type, void *in, void *in2, void *out, int32_t arg, int32_t arg2) {
    struct lane *lane = rt_current;
    lane->op = op, lane->type = type, lane->in = in, lane->in2 = in2, lane->out = out, lane->arg = arg, lane->arg2 = arg2;
    yield(AT_SIMD);
}

int32_t rt_lane(void) { return (int32_t)rt_current->ids[LANE]; }

/* Threadgroup memory of the kernel that is loaded: `zero` for what has an initialiser. */
void rt_arena_clear(void) { arena_count = 0; }
void rt_arena_add(void *where, size_t size, uint32_t zero) {
    if (arena_count == 64) return;
    arena[arena_count] = where, arena_size[arena_count] = size, arena_zero[arena_count++] = zero;
}

static void fill_threadgroup_memory(void) {
    for (int i = 0; i < arena_count; i++) memset(arena[i], arena_zero[i] ? 0 : (int)rt_job.poison, arena_size[i]);
}

static uint64_t next_random(void) {
    rt_job.seed += 0x9E3779B97F4A7C15u;
    uint64_t z = rt_job.seed;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

static void make_order(int count) {
    for (int i = 0; i < count; i++) order[i] = rt_job.order == 1 ? count - 1 - i : i;
    if (rt_job.order == 2)
        for (int i = count - 1; i > 0; i--) {
            int j = (int)(next_random() % (uint64_t)(i + 1));
            uint32_t t = order[i];
            order[i] = order[j], order[j] = t;
        }
}

static void resume(struct lane *lane) {
    rt_current = lane;
    rt_switch(&scheduler_sp, lane->sp);
    if (rt_job.track) rt_shadow_flush();
}

/* Runs a simdgroup until all its lanes have ended or are at a barrier. */
static void exhaust_simdgroup(int begin, int end) {
    for (;;) {
        int waiting = 0;
        for (int i = begin; i < end; i++)
            if (lanes[order[i]].state == READY) resume(&lanes[order[i]]);
        for (int i = begin; i < end; i++) waiting += lanes[order[i]].state == AT_SIMD;
        if (!waiting) return;
        int first = (int)(order[begin] / SIMD * SIMD);
        rt_complete_simd(lanes + first, SIMD);
        if (rt_job.track) rt_shadow_simd(first / SIMD);
    }
}

/* A simdgroup operation completes among the lanes that reached it; a barrier when all threads have reached it. */
static int run_group(int count) {
    for (int i = count; i < MOST_THREADS; i++) lanes[i].state = ENDED;
    for (;;) {
        int progressed = 0, at_barrier = 0, ended = 0, flags = 0;
        if (rt_job.order == 3) {
            for (int i = 0; i < count; i += SIMD) exhaust_simdgroup(i, i + SIMD < count ? i + SIMD : count);
        } else {
            for (;;) {
                for (int i = 0; i < count; i++)
                    if (lanes[order[i]].state == READY) resume(&lanes[order[i]]);
                int waiting = 0;
                for (int i = 0; i < count; i += SIMD) {
                    int here = 0;
                    for (int j = i; j < i + SIMD && j < count; j++) here += lanes[j].state == AT_SIMD;
                    if (!here) continue;
                    waiting += here;
                    rt_complete_simd(lanes + i, SIMD);
                    if (rt_job.track) rt_shadow_simd(i / SIMD);
                }
                if (!waiting) break;
            }
        }
        for (int i = 0; i < count; i++) {
            at_barrier += lanes[i].state == AT_BARRIER;
            ended += lanes[i].state == ENDED;
            if (lanes[i].state == AT_BARRIER) flags |= lanes[i].arg;
        }
        if (ended == count) return 0;
        if (at_barrier + ended != count) return 4;
        if (ended) rt_said.divergent++;
        if (rt_job.track) rt_shadow_barrier(flags & 1, flags & 2);
        for (int i = 0; i < count; i++)
            if (lanes[i].state == AT_BARRIER) lanes[i].state = READY, progressed = 1;
        if (!progressed) return 4;
    }
}

/* What all threads of a threadgroup have in common. */
static void fill_group_ids(uint32_t *ids, const uint64_t *at, const uint32_t *size, const uint64_t *groups) {
    for (int d = 0; d < 3; d++) {
        ids[TGPIG + d] = (uint32_t)at[d];
        ids[TPTG + d] = size[d];
        ids[TGPG + d] = (uint32_t)groups[d];
        ids[TPG + d] = (uint32_t)rt_job.grid[d];
        ids[DISPATCHED + d] = rt_job.group[d];
    }
    ids[SIMDGROUPS] = (size[0] * size[1] * size[2] + SIMD - 1) / SIMD;
    ids[SIMD_SIZE] = SIMD;
}

static void fill_thread_ids(uint32_t *ids, const uint32_t *local, uint32_t index) {
    for (int d = 0; d < 3; d++) {
        ids[TPITG + d] = local[d];
        ids[TPIG + d] = ids[TGPIG + d] * rt_job.group[d] + local[d];
    }
    ids[INDEX] = index;
    ids[LANE] = index % SIMD;
    ids[SIMDGROUP] = index / SIMD;
}

static int takes_rows(void) {
    return rt_job.row && !rt_job.cooperative && !rt_job.track && !rt_job.order && !(rt_job.grid[0] >> 32);
}

/* The threads of a threadgroup, row after row: as one after another, with less between them. */
static void run_rows(const uint32_t *size) {
    uint32_t local[3] = {0}, index = 0;
    row_length = size[0];
    for (local[2] = 0; local[2] < size[2]; local[2]++)
        for (local[1] = 0; local[1] < size[1]; local[1]++, index += row_length) {
            fill_thread_ids(plain.ids, local, index);
            rt_job.row(rt_job.arguments, plain.ids, row_length);
        }
    row_length = 0;
}

/* Which thread of a row was stopped: they run again, one by one. Where none is stopped now, since the row has changed
 * what it read, its first one stays named. */
static void find_in_row(void) {
    const struct report said = rt_said;
    const uint32_t count = row_length, index = plain.ids[INDEX];
    uint32_t local[3];
    memcpy(local, plain.ids + TPITG, sizeof local);
    row_length = 0;
    if (sigsetjmp(rescue, 1)) return;
    for (uint32_t k = 0; k < count; k++, local[0]++) {
        fill_thread_ids(plain.ids, local, index + k);
        rt_job.entry(rt_job.arguments, plain.ids);
    }
    rt_said = said;
}

static void guard_stacks(int count);

static int run_one_group(const uint64_t *at, const uint64_t *groups) {
    uint32_t size[3], local[3];
    for (int d = 0; d < 3; d++) {
        uint64_t left = rt_job.grid[d] - at[d] * rt_job.group[d];
        size[d] = left < rt_job.group[d] ? (uint32_t)left : rt_job.group[d];
    }
    int count = (int)(size[0] * size[1] * size[2]);
    if (rt_job.cooperative) guard_stacks(count);
    fill_threadgroup_memory();
    if (rt_job.track) rt_shadow_group();
    if (!rt_job.cooperative) {
        rt_current = &plain;
        fill_group_ids(plain.ids, at, size, groups);
    }
    if (takes_rows()) {
        run_rows(size);
        rt_said.threads += (uint64_t)count;
        return 0;
    }
    make_order(count);
    for (int k = 0; k < count; k++) {
        uint32_t i = rt_job.cooperative ? (uint32_t)k : order[k];
        const uint32_t row = size[0] == (uint32_t)count ? 0 : i / size[0]; /* a division costs as much as a thread */
        local[0] = i - row * size[0], local[1] = row ? row % size[1] : 0, local[2] = row ? row / size[1] : 0;
        struct lane *lane = rt_job.cooperative ? &lanes[i] : &plain;
        if (rt_job.cooperative) fill_group_ids(lane->ids, at, size, groups);
        fill_thread_ids(lane->ids, local, i);
        if (rt_job.cooperative) prepare(lane, (int)i);
        else rt_job.entry(rt_job.arguments, lane->ids);
    }
    rt_said.threads += (uint64_t)count;
    return rt_job.cooperative ? run_group(count) : 0;
}

static int run_groups(void) {
    uint64_t groups[3], total = 1;
    for (int d = 0; d < 3; d++) {
        groups[d] = (rt_job.grid[d] + rt_job.group[d] - 1) / rt_job.group[d];
        total *= groups[d];
    }
    uint64_t first = rt_job.first, count = rt_job.count ? rt_job.count : total;
    for (uint64_t k = 0; k < count; k++) {
        uint64_t i = first + (rt_job.order == 1 ? count - 1 - k : k);
        if (i >= total) continue;
        uint64_t at[3] = {i % groups[0], i / groups[0] % groups[1], i / groups[0] / groups[1]};
        int status = run_one_group(at, groups);
        if (status) return status;
    }
    return 0;
}

static void caught(int number, siginfo_t *info, void *context) {
    (void)context;
    if (!is_running) {
        signal(number, SIG_DFL);
        raise(number);
        return;
    }
    rt_said.signal = number;
    rt_said.address = number == SIGSEGV || number == SIGBUS ? (uint64_t)info->si_addr : 0;
    rt_said.status = number == SIGPROF ? 2 : number == SIGSEGV || number == SIGBUS ? 1 : 3;
    if (number == SIGSEGV && info->si_code != SEGV_MAPERR && info->si_code != SEGV_ACCERR) rt_said.status = 3;
    if (rt_current) memcpy(rt_said.thread, rt_current->ids + TPIG, sizeof rt_said.thread);
    siglongjmp(rescue, 1);
}

static void catch_signals(void) {
    static int done;
    if (done) return;
    done = 1;
    stack_t stack = {.ss_sp = signal_stack, .ss_size = sizeof signal_stack};
    sigaltstack(&stack, NULL);
    struct sigaction action = {.sa_sigaction = caught, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    sigemptyset(&action.sa_mask);
    int numbers[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGPROF, SIGTRAP};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) sigaction(numbers[i], &action, NULL);
    size_t size = (size_t)MOST_THREADS * STACK_BYTES;
    stacks = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (stacks == MAP_FAILED) abort();
}

/* The lowest page of each stack is a guard; only the stacks that are used get one: each is a mapping more. */
static void guard_stacks(int count) {
    static int guarded;
    for (; guarded < count; guarded++) mprotect(stacks + (size_t)guarded * STACK_BYTES, 4096, PROT_NONE);
}

/* Time of the processor: on a busy machine a kernel is not late because others ran. */
static void set_clock(uint32_t milliseconds) {
    struct itimerval clock = {.it_value = {milliseconds / 1000, (int)(milliseconds % 1000) * 1000}};
    setitimer(ITIMER_PROF, &clock, NULL);
}

/* Runs a dispatch; returns report.status. */
int rt_run(const struct run *job, struct report *report) {
    catch_signals();
    rt_job = *job;
    memset(&rt_said, 0, sizeof rt_said);
    if (!job->entry || !job->group[0] || !job->group[1] || !job->group[2] ||
        (uint64_t)job->group[0] * job->group[1] * job->group[2] > MOST_THREADS)
        return report->status = 5;
    if (rt_job.track) rt_shadow_begin();
    uint32_t kept = 0;
#if defined(__x86_64__)
    kept = _mm_getcsr();
    if (job->flush) _mm_setcsr(kept | 0x8040);
#endif
    is_running = 1;
    if (sigsetjmp(rescue, 1) == 0) {
        set_clock(job->milliseconds);
        rt_said.status = run_groups();
    } else if (row_length && rt_said.status != 2) {
        find_in_row();
    }
    row_length = 0;
    is_running = 0;
    set_clock(0);
#if defined(__x86_64__)
    _mm_setcsr(kept);
#endif
    rt_current = NULL;
    *report = rt_said;
    return report->status;
}
