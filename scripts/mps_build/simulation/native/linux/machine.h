/* What the software Metal of a wheel asks of Linux: it is Mach-O, and this side is a library of ELF beside the machine that
   runs kernels. Structures have the same layout on both sides. */
#ifndef MPS_BUILD_MACHINE_H
#define MPS_BUILD_MACHINE_H
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
/* What the kernel server answers (official/kernel_server.py has the same numbers). */
enum { RT_ASK_NAMES = 1, RT_ASK_KERNEL = 2, RT_ASK_SOURCE = 3 };

/* A text and, where it could be made, the data behind it. The bytes belong to the caller. */
struct rt_answer {
  uint64_t text_size, data_size;
  char *bytes;
};

/* Asks the server at MPS_BUILD_KERNEL_SERVER, a path; `base`: where code is to be linked. 0, or -1: it does not answer. */
int rt_ask(uint32_t what, uint64_t base, const void *data, uint64_t size, struct rt_answer *answer);
void rt_flush_code(void *begin, void *end);
struct run;
struct report;
/* Once: faults of kernels go to the machine, all others to who took them before. */
void rt_watch(void);
/* Runs a launch; returns the report's status. */
int rt_run_watched(const struct run *job, struct report *report);
/* Runs a function when Python ends, and when the process does. */
void rt_at_end(void (*run)(void));
/* A shared library of Linux; NULL with words on standard error. */
void *rt_open(const char *path);
/* A name in a library that was opened; NULL: in this one, in libm and libc. */
void *rt_found_in(void *library, const char *name);
#ifdef __cplusplus
}
#endif
#endif
