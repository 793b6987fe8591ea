/* A library of many symbols: one for each instruction, then none for many pages. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MANY = 20000, FAR = 50000 };
extern const char many_first[];
__asm__(".text\n.p2align 2\n_many_first:\n"
        ".macro many unused\n.alt_entry many_\\@\nmany_\\@:\n nop\n.endm\n"
        ".rept 20000\n many 0\n.endr\n"
        ".alt_entry _final\n_final:\n nop\n.space 60000\n");

int check_names(void) {
    Dl_info info;
    time_t begun = time(NULL);
    for (int i = 0; i < MANY; i++) {
        const char *place = many_first + 4 * i;
        if (time(NULL) - begun > 120) return printf("%d of them named\n", i), 2;   /* each time among all: minutes */
        if (!dladdr(place + i % 4, &info) || info.dli_saddr != place || atoi(info.dli_sname + strlen("many_")) != i) {
            printf("%d: %s at %ld\n", i, info.dli_sname, (long)((const char *)info.dli_saddr - many_first));
            return 1;
        }
    }
    for (int i = 0; i < FAR; i += 4999)
        if (!dladdr(many_first + 4 * MANY + i, &info) || strcmp(info.dli_sname, "final")) return puts(info.dli_sname), 3;
    return 0;
}
