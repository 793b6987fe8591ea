/* What the parts of the runtime share: one threadgroup runs at a time, on one thread of the host. */
#ifndef MPS_RUNTIME_H
#define MPS_RUNTIME_H
#include <stddef.h>
#include <stdint.h>

/* Where each built-in argument lies in `ids`, in 32-bit words; metadata.py has the same table. */
enum { TPIG = 0, TGPIG = 3, TPITG = 6, TPTG = 9, TGPG = 12, TPG = 15, LANE = 18, SIMDGROUP = 19, INDEX = 20,
       SIMDGROUPS = 21, SIMD_SIZE = 22, DISPATCHED = 23, IDS = 32 };

enum { MOST_THREADS = 1024, SIMD = 32, STACK_BYTES = 192 * 1024 };

enum state { READY, AT_SIMD, AT_BARRIER, ENDED };

struct lane {
    void *sp;
    uint32_t ids[IDS];
    int state, op, type, arg, arg2;
    void *in, *in2, *out;
};

typedef void (*entry_t)(void **arguments, uint32_t *ids);
/* As many threads of one row, one after another, from the one whose `ids` these are: at least one, none beyond 2^32. */
typedef void (*row_t)(void **arguments, uint32_t *ids, uint32_t count);

struct run {
    entry_t entry;
    void **arguments;
    uint64_t grid[3];      /* threads */
    uint32_t group[3];     /* threads per threadgroup */
    uint32_t cooperative;  /* own stacks */
    uint32_t order;        /* 0 forward, 1 reverse, 2 shuffled, 3 simdgroups in turn */
    uint32_t poison;       /* the byte that fills threadgroup memory */
    uint32_t flush;        /* denormals become zero */
    uint32_t track;        /* look for races */
    uint32_t milliseconds;
    uint64_t seed;
    uint64_t first, count; /* linear threadgroups to run; count 0: all */
    row_t row;             /* or NULL; taken where threads are in their order and nothing watches them */
};

struct report {
    int32_t status;        /* 0 ended, 1 fault, 2 time, 3 illegal instruction or arithmetic, 4 deadlock */
    int32_t signal;
    uint64_t address;
    uint32_t thread[3];
    uint32_t divergent;    /* barriers that ended threads had not reached */
    uint64_t threads;
    uint64_t inactive;     /* values taken from lanes that took no part */
    uint32_t races;
    uint32_t race_kind;    /* 1 write after write, 2 read after write, 3 write after read */
    uint64_t race_address;
    uint32_t race_threads[2];
    uint64_t unwritten;    /* threadgroup bytes read before they were written */
};

extern struct lane *rt_current;
extern struct run rt_job;
extern struct report rt_said;

void rt_complete_simd(struct lane *lanes, int count);
void rt_shadow_begin(void);
void rt_shadow_group(void);
void rt_shadow_barrier(int device, int threadgroup);
void rt_shadow_simd(int simdgroup);
void rt_shadow_flush(void);
int rt_shadow_ready(void);
#endif
