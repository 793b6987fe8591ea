/* Sockets: addresses begin with their length there, and most numbers differ. */
#define _GNU_SOURCE
#include "system.h"
#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/un.h>

int darwin_lookup_error(int number);

enum { DARWIN_INET6 = 30 };
static int family_of(int darwin) { return darwin == DARWIN_INET6 ? AF_INET6 : darwin; }
static int darwin_family(int own) { return own == AF_INET6 ? DARWIN_INET6 : own; }

/* Only the first two bytes of an address differ: {length, family} there, the family here. */
static socklen_t address_in(const void *from, socklen_t size, struct sockaddr_storage *own) {
    memset(own, 0, sizeof *own);
    if (size > sizeof *own) size = sizeof *own;
    memcpy(own, from, size);
    if (size >= 2) own->ss_family = (sa_family_t)family_of(((const uint8_t *)from)[1]);
    return size;
}
static void address_out(const struct sockaddr_storage *own, socklen_t own_size, void *to, socklen_t *size) {
    if (!to || !size) return;
    socklen_t copied = own_size < *size ? own_size : *size;
    memcpy(to, own, copied);
    if (copied >= 2) ((uint8_t *)to)[0] = (uint8_t)own_size, ((uint8_t *)to)[1] = (uint8_t)darwin_family(own->ss_family);
    *size = own_size;
}

int darwin_socket(int family, int type, int protocol) { return socket(family_of(family), type, protocol); }
int darwin_socketpair(int family, int type, int protocol, int *both) { return socketpair(family_of(family), type, protocol, both); }
int darwin_bind(int file, const void *address, socklen_t size) {
    struct sockaddr_storage own;
    size = address_in(address, size, &own);
    return bind(file, (void *)&own, size);
}
int darwin_connect(int file, const void *address, socklen_t size) {
    struct sockaddr_storage own;
    size = address_in(address, size, &own);
    return connect(file, (void *)&own, size);
}
#define ANSWERED(call)                                \
    struct sockaddr_storage own;                      \
    socklen_t own_size = sizeof own;                  \
    int result = call(file, (void *)&own, &own_size); \
    if (result >= 0) address_out(&own, own_size, address, size); \
    return result
int darwin_accept(int file, void *address, socklen_t *size) { ANSWERED(accept); }
int darwin_getsockname(int file, void *address, socklen_t *size) { ANSWERED(getsockname); }
int darwin_getpeername(int file, void *address, socklen_t *size) { ANSWERED(getpeername); }

/* --- options: {level, name} of macOS, of Linux --- */

static const int options[][4] = {
    {0xffff, 0x0001, SOL_SOCKET, SO_DEBUG}, {0xffff, 0x0002, SOL_SOCKET, SO_ACCEPTCONN}, {0xffff, 0x0004, SOL_SOCKET, SO_REUSEADDR},
    {0xffff, 0x0008, SOL_SOCKET, SO_KEEPALIVE}, {0xffff, 0x0010, SOL_SOCKET, SO_DONTROUTE}, {0xffff, 0x0020, SOL_SOCKET, SO_BROADCAST},
    {0xffff, 0x0080, SOL_SOCKET, SO_LINGER}, {0xffff, 0x1080, SOL_SOCKET, SO_LINGER}, {0xffff, 0x0200, SOL_SOCKET, SO_REUSEPORT},
    {0xffff, 0x1001, SOL_SOCKET, SO_SNDBUF}, {0xffff, 0x1002, SOL_SOCKET, SO_RCVBUF}, {0xffff, 0x1005, SOL_SOCKET, SO_SNDTIMEO},
    {0xffff, 0x1006, SOL_SOCKET, SO_RCVTIMEO}, {0xffff, 0x1007, SOL_SOCKET, SO_ERROR}, {0xffff, 0x1008, SOL_SOCKET, SO_TYPE},
    {IPPROTO_TCP, 0x01, IPPROTO_TCP, TCP_NODELAY}, {IPPROTO_TCP, 0x02, IPPROTO_TCP, TCP_MAXSEG}, {IPPROTO_TCP, 0x10, IPPROTO_TCP, TCP_KEEPIDLE},
    {IPPROTO_TCP, 0x101, IPPROTO_TCP, TCP_KEEPINTVL}, {IPPROTO_TCP, 0x102, IPPROTO_TCP, TCP_KEEPCNT}, {IPPROTO_IPV6, 27, IPPROTO_IPV6, IPV6_V6ONLY},
};
enum { NOSIGPIPE = 0x1022 };                   /* no such option here: `send` says it each time */

static const int *option_of(int level, int name) {
    for (unsigned i = 0; i < sizeof options / sizeof *options; i++)
        if (options[i][0] == level && options[i][1] == name) return options[i] + 2;
    errno = ENOPROTOOPT;
    return NULL;
}
struct darwin_timeval { int64_t seconds; int32_t microseconds, pad; };
static bool is_time(int level, int name) { return level == 0xffff && (name == 0x1005 || name == 0x1006); }

int darwin_setsockopt(int file, int level, int name, const void *value, socklen_t size) {
    if (level == 0xffff && name == NOSIGPIPE) return 0;
    const int *own = option_of(level, name);
    if (!own) return -1;
    if (is_time(level, name) && size >= sizeof(struct darwin_timeval)) {
        const struct darwin_timeval *span = value;
        struct timeval time = {span->seconds, span->microseconds};
        return setsockopt(file, own[0], own[1], &time, sizeof time);
    }
    return setsockopt(file, own[0], own[1], value, size);
}

int darwin_getsockopt(int file, int level, int name, void *value, socklen_t *size) {
    const int *own = option_of(level, name);
    if (!own) return -1;
    if (is_time(level, name) && *size >= sizeof(struct darwin_timeval)) {
        struct timeval time;
        socklen_t own_size = sizeof time;
        int result = getsockopt(file, own[0], own[1], &time, &own_size);
        *(struct darwin_timeval *)value = (struct darwin_timeval){time.tv_sec, (int32_t)time.tv_usec, 0};
        return result;
    }
    int result = getsockopt(file, own[0], own[1], value, size);
    if (!result && name == 0x1007 && level == 0xffff) *(int *)value = darwin_error_number(*(int *)value);
    return result;
}

/* --- what goes through them; a broken connection is an error, as programs for macOS ask with SO_NOSIGPIPE --- */

static int message_flags(int flags) {
    return MSG_NOSIGNAL | (flags & 0x7) | (flags & 0x40 ? MSG_WAITALL : 0) | (flags & 0x80 ? MSG_DONTWAIT : 0);
}
ssize_t darwin_send(int file, const void *from, size_t size, int flags) { return send(file, from, size, message_flags(flags)); }
ssize_t darwin_recv(int file, void *to, size_t size, int flags) { return recv(file, to, size, message_flags(flags) & ~MSG_NOSIGNAL); }

struct darwin_message { void *address; socklen_t address_size; struct iovec *parts; int part_count; void *control; socklen_t control_size; int flags; };
static bool message_of(const struct darwin_message *from, struct msghdr *own, struct sockaddr_storage *address) {
    *own = (struct msghdr){.msg_iov = from->parts, .msg_iovlen = (size_t)from->part_count};
    if (from->address) own->msg_name = address, own->msg_namelen = sizeof *address;
    if (from->control_size) errno = ENOTSUP;
    return !from->control_size;
}
ssize_t darwin_sendmsg(int file, const struct darwin_message *message, int flags) {
    struct msghdr own;
    struct sockaddr_storage address;
    if (!message_of(message, &own, &address)) return -1;
    if (message->address) own.msg_namelen = address_in(message->address, message->address_size, &address);
    return sendmsg(file, &own, message_flags(flags));
}
ssize_t darwin_recvmsg(int file, struct darwin_message *message, int flags) {
    struct msghdr own;
    struct sockaddr_storage address;
    if (!message_of(message, &own, &address)) return -1;
    ssize_t result = recvmsg(file, &own, message_flags(flags) & ~MSG_NOSIGNAL);
    if (result >= 0 && message->address) address_out(&address, own.msg_namelen, message->address, &message->address_size);
    message->flags = own.msg_flags & 0x7;
    return result;
}

int darwin_select(int count, fd_set *read, fd_set *write, fd_set *other, const struct darwin_timeval *span) {
    struct timeval time = {span ? span->seconds : 0, span ? span->microseconds : 0};
    return select(count, read, write, other, span ? &time : NULL);
}

/* --- names of hosts --- */

struct darwin_addrinfo { int flags, family, type, protocol; socklen_t size; char *name; void *address; struct darwin_addrinfo *next; };
static int lookup_flags(int flags) {
    return (flags & 1 ? AI_PASSIVE : 0) | (flags & 2 ? AI_CANONNAME : 0) | (flags & 4 ? AI_NUMERICHOST : 0) | (flags & 0x1000 ? AI_NUMERICSERV : 0) |
           (flags & 0x800 ? AI_V4MAPPED : 0) | (flags & 0x400 ? AI_ADDRCONFIG : 0);
}

void darwin_freeaddrinfo(struct darwin_addrinfo *list) {
    while (list) {
        struct darwin_addrinfo *next = list->next;
        free(list->name), free(list->address), free(list);
        list = next;
    }
}

int darwin_getaddrinfo(const char *host, const char *service, const struct darwin_addrinfo *hints, struct darwin_addrinfo **list) {
    struct addrinfo own = {0}, *found;
    if (hints) own = (struct addrinfo){.ai_flags = lookup_flags(hints->flags), .ai_family = family_of(hints->family), .ai_socktype = hints->type, .ai_protocol = hints->protocol};
    int result = getaddrinfo(host, service, hints ? &own : NULL, &found);
    if (result) return darwin_lookup_error(result);
    for (struct addrinfo *each = found; each; each = each->ai_next) {
        struct darwin_addrinfo *row = calloc(1, sizeof *row);
        struct sockaddr_storage address;
        socklen_t size = each->ai_addrlen;
        if (!row || !(row->address = malloc(size))) abort();
        memset(&address, 0, sizeof address);
        memcpy(&address, each->ai_addr, size);
        address_out(&address, size, row->address, &size);
        row->family = darwin_family(each->ai_family), row->type = each->ai_socktype, row->protocol = each->ai_protocol;
        row->size = size;
        row->name = each->ai_canonname ? strdup(each->ai_canonname) : NULL;
        *list = row;
        list = &row->next;
    }
    freeaddrinfo(found);
    return 0;
}

int darwin_getnameinfo(const void *address, socklen_t size, char *host, socklen_t host_size, char *service, socklen_t service_size, int flags) {
    struct sockaddr_storage own;
    size = address_in(address, size, &own);
    int own_flags = (flags & 1 ? NI_NOFQDN : 0) | (flags & 2 ? NI_NUMERICHOST : 0) | (flags & 4 ? NI_NAMEREQD : 0) |
                    (flags & 8 ? NI_NUMERICSERV : 0) | (flags & 16 ? NI_DGRAM : 0);
    return darwin_lookup_error(getnameinfo((void *)&own, size, host, host_size, service, service_size, own_flags));
}

const char *darwin_inet_ntop(int family, const void *address, char *to, socklen_t size) { return inet_ntop(family_of(family), address, to, size); }
int darwin_inet_pton(int family, const char *from, void *to) { return inet_pton(family_of(family), from, to); }

struct darwin_interface { struct darwin_interface *next; char *name; unsigned flags; void *address, *mask, *other, *data; };
void darwin_freeifaddrs(struct darwin_interface *list) {
    while (list) {
        struct darwin_interface *next = list->next;
        free(list->name), free(list->address), free(list->mask), free(list);
        list = next;
    }
}
static void *copied(const struct sockaddr *from) {
    if (!from || (from->sa_family != AF_INET && from->sa_family != AF_INET6)) return NULL;
    socklen_t size = from->sa_family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
    struct sockaddr_storage own = {0};
    void *to = malloc(size);
    memcpy(&own, from, size);
    address_out(&own, size, to, &size);
    return to;
}
int darwin_getifaddrs(struct darwin_interface **list) {
    struct ifaddrs *found;
    *list = NULL;
    if (getifaddrs(&found)) return -1;
    for (struct ifaddrs *each = found; each; each = each->ifa_next) {
        struct darwin_interface *row = calloc(1, sizeof *row);
        if (!row) abort();
        /* up, broadcast, loopback, running and multicast; the last has another number */
        row->flags = (each->ifa_flags & (IFF_UP | IFF_BROADCAST | IFF_LOOPBACK | IFF_RUNNING)) | (each->ifa_flags & IFF_MULTICAST ? 0x8000 : 0);
        row->name = strdup(each->ifa_name);
        row->address = copied(each->ifa_addr), row->mask = copied(each->ifa_netmask);
        *list = row;
        list = &row->next;
    }
    freeifaddrs(found);
    return 0;
}
