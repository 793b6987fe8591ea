/* libSystem of macOS on arm64, over glibc: what the official wheel's libraries call, with Apple's conventions.

   table.yaml says of each name how it is bound; what stands there as translated or variadic is a function
   `darwin_NAME` here. Apple's conventions differ in these points:
   - variadic arguments lie on the stack, in slots of eight bytes: a thunk hands their place on (`void *rest`);
   - `long double` is `double`;
   - flags, error numbers, layouts and the sizes of some types are macOS'. */
#ifndef MPS_BUILD_SYSTEM_H
#define MPS_BUILD_SYSTEM_H
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum system_kind { SYSTEM_GIVEN, SYSTEM_SAME, SYSTEM_REFUSED, SYSTEM_ALONE };
/* text: of SAME the name in this process, of REFUSED the reason. ALONE: only without a software Metal. */
struct system_row { const char *name; enum system_kind kind; const void *address; const char *text; };

/* Sorted by name; of a family a name is the beginning. */
extern const struct system_row system_rows[], system_families[];
extern const size_t system_row_count, system_family_count;

/* Apple's variadic arguments as a list of Linux: one whose registers are used up. */
struct darwin_list { void *stack, *general, *vector; int general_left, vector_left; };
#define ARGUMENTS(list, rest)                                    \
    va_list list;                                                \
    do {                                                         \
        struct darwin_list own = {(rest), NULL, NULL, 0, 0};     \
        _Static_assert(sizeof own == sizeof(va_list), "va_list"); \
        memcpy(&list, &own, sizeof own);                         \
    } while (0)

int darwin_error_number(int number);            /* of Linux, as macOS numbers it */
int linux_error_number(int number);
int linux_descriptor(int folder);               /* AT_FDCWD */
int linux_open_flags(int flags);
int linux_signal(int number);
int darwin_signal_number(int number);
FILE *linux_file(void *file);                   /* the stream behind one of macOS */
void *python_runtime(void);
void prepare_streams(void);
void prepare_characters(void);
#endif
