/* errno, by macOS' numbers. */
#include "system.h"
#include <netdb.h>

/* Those from 1 to 34 are equal, but 11; {macOS, Linux}. */
static const short numbers[][2] = {
    {11, EDEADLK}, {35, EAGAIN}, {36, EINPROGRESS}, {37, EALREADY}, {38, ENOTSOCK}, {39, EDESTADDRREQ}, {40, EMSGSIZE},
    {41, EPROTOTYPE}, {42, ENOPROTOOPT}, {43, EPROTONOSUPPORT}, {44, ESOCKTNOSUPPORT}, {45, EOPNOTSUPP}, {46, EPFNOSUPPORT},
    {47, EAFNOSUPPORT}, {48, EADDRINUSE}, {49, EADDRNOTAVAIL}, {50, ENETDOWN}, {51, ENETUNREACH}, {52, ENETRESET},
    {53, ECONNABORTED}, {54, ECONNRESET}, {55, ENOBUFS}, {56, EISCONN}, {57, ENOTCONN}, {58, ESHUTDOWN}, {59, ETOOMANYREFS},
    {60, ETIMEDOUT}, {61, ECONNREFUSED}, {62, ELOOP}, {63, ENAMETOOLONG}, {64, EHOSTDOWN}, {65, EHOSTUNREACH},
    {66, ENOTEMPTY}, {68, EUSERS}, {69, EDQUOT}, {70, ESTALE}, {71, EREMOTE}, {77, ENOLCK}, {78, ENOSYS}, {84, EOVERFLOW},
    {89, ECANCELED}, {90, EIDRM}, {91, ENOMSG}, {92, EILSEQ}, {94, EBADMSG}, {95, EMULTIHOP}, {96, ENODATA}, {97, ENOLINK},
    {98, ENOSR}, {99, ENOSTR}, {100, EPROTO}, {101, ETIME}, {104, ENOTRECOVERABLE}, {105, EOWNERDEAD},
};
enum { COUNT = sizeof numbers / sizeof *numbers };

int darwin_error_number(int number) {
    for (int i = 0; i < COUNT; i++)
        if (numbers[i][1] == number) return numbers[i][0];
    return number <= 34 ? number : 22;
}

int linux_error_number(int number) {
    for (int i = 0; i < COUNT; i++)
        if (numbers[i][0] == number) return numbers[i][1];
    return number <= 34 ? number : number == 102 ? EOPNOTSUPP : EINVAL;
}

/* The images read and write errno in a place of their own. Whenever they ask where it is, what the C library set since
   is taken over; a mark in its own errno, which no call sets, tells that it set nothing. */
enum { UNTOUCHED = 0x6d7073 };
static __thread int own_errno;

int *darwin___error(void) {
    if (errno != UNTOUCHED) own_errno = darwin_error_number(errno);
    errno = UNTOUCHED;
    return &own_errno;
}

/* For what reads the C library's own: Python's errors, perror. */
void restore_errno(void) {
    if (errno == UNTOUCHED) errno = linux_error_number(own_errno);
}

char *darwin_strerror(int number) { return strerror(linux_error_number(number)); }

int darwin_strerror_r(int number, char *buffer, size_t size) {
    const char *text = strerror(linux_error_number(number));
    snprintf(buffer, size, "%s", text);
    return strlen(text) < size ? 0 : ERANGE;
}

void darwin_perror(const char *text) {
    restore_errno();
    perror(text);
}

/* getaddrinfo's: macOS' EAI_* are positive. */
static const short lookups[][2] = {{2, EAI_AGAIN}, {3, EAI_BADFLAGS}, {4, EAI_FAIL}, {5, EAI_FAMILY}, {6, EAI_MEMORY},
                                   {8, EAI_NONAME}, {9, EAI_SERVICE}, {10, EAI_SOCKTYPE}, {11, EAI_SYSTEM}, {14, EAI_OVERFLOW}};

int darwin_lookup_error(int number) {
    for (unsigned i = 0; i < sizeof lookups / sizeof *lookups; i++)
        if (lookups[i][1] == number) return lookups[i][0];
    return number ? 4 : 0;
}

const char *darwin_gai_strerror(int number) {
    for (unsigned i = 0; i < sizeof lookups / sizeof *lookups; i++)
        if (lookups[i][0] == number) return gai_strerror(lookups[i][1]);
    return "Unknown error";
}
