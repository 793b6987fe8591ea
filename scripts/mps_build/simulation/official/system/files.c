/* Files: flags, layouts and constants of macOS. */
#define _GNU_SOURCE
#include "system.h"
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/time.h>
#include <sys/vfs.h>
#include <termios.h>
#include <unistd.h>

int linux_descriptor(int folder) { return folder == -2 ? AT_FDCWD : folder; }

static const struct { int darwin, own; } open_flags[] = {
    {0x4, O_NONBLOCK}, {0x8, O_APPEND}, {0x80, O_SYNC}, {0x100, O_NOFOLLOW}, {0x200, O_CREAT}, {0x400, O_TRUNC}, {0x800, O_EXCL},
    {0x20000, O_NOCTTY}, {0x100000, O_DIRECTORY}, {0x400000, O_DSYNC}, {0x1000000, O_CLOEXEC},
};
enum { OPEN_FLAGS = sizeof open_flags / sizeof *open_flags };

int linux_open_flags(int flags) {
    int own = flags & O_ACCMODE;
    for (int i = 0; i < OPEN_FLAGS; i++)
        if (flags & open_flags[i].darwin) own |= open_flags[i].own;
    return own;
}

static int darwin_open_flags(int own) {
    int flags = own & O_ACCMODE;
    for (int i = 0; i < OPEN_FLAGS; i++)
        if ((own & open_flags[i].own) == open_flags[i].own) flags |= open_flags[i].darwin;
    return flags;
}

/* The mode is there only where a file may be made. */
static mode_t mode_of(int flags, const void *rest) { return flags & 0x200 ? *(const int *)rest & 07777 : 0; }
int darwin_open(const char *path, int flags, void *rest) { return open(path, linux_open_flags(flags), mode_of(flags, rest)); }
int darwin_openat(int folder, const char *path, int flags, void *rest) {
    return openat(linux_descriptor(folder), path, linux_open_flags(flags), mode_of(flags, rest));
}
int darwin_shm_open(const char *name, int flags, void *rest) { return shm_open(name, linux_open_flags(flags), mode_of(flags, rest)); }

struct darwin_lock { int64_t start, length; int32_t process; int16_t type, whence; };

int darwin_fcntl(int file, int command, void *rest) {
    long argument = *(long *)rest;
    switch (command) {
    case 0: return fcntl(file, F_DUPFD, (int)argument);
    case 67: return fcntl(file, F_DUPFD_CLOEXEC, (int)argument);
    case 1: return fcntl(file, F_GETFD);
    case 2: return fcntl(file, F_SETFD, (int)argument);
    case 3: { int own = fcntl(file, F_GETFL); return own < 0 ? own : darwin_open_flags(own); }
    case 4: return fcntl(file, F_SETFL, linux_open_flags((int)argument));
    case 7: case 8: case 9: {                                           /* locks: get, set, set and wait */
        static const int commands[] = {F_GETLK, F_SETLK, F_SETLKW}, types[] = {0, F_RDLCK, F_UNLCK, F_WRLCK};
        struct darwin_lock *lock = (void *)argument;
        if (lock->type < 1 || lock->type > 3) break;
        struct flock own = {.l_type = (short)types[lock->type], .l_whence = lock->whence, .l_start = lock->start, .l_len = lock->length};
        int result = fcntl(file, commands[command - 7], &own);
        if (command == 7 && !result) {
            lock->type = own.l_type == F_UNLCK ? 2 : own.l_type == F_RDLCK ? 1 : 3;
            lock->start = own.l_start, lock->length = own.l_len, lock->process = own.l_pid, lock->whence = own.l_whence;
        }
        return result;
    }
    case 44: case 45: case 48: return 0;                                /* read ahead, no cache: only a wish */
    case 50: {                                                          /* F_GETPATH, into 1024 bytes */
        char link[64];
        snprintf(link, sizeof link, "/proc/self/fd/%d", file);
        ssize_t size = readlink(link, (char *)argument, 1023);
        if (size >= 0) ((char *)argument)[size] = 0;
        return size < 0 ? -1 : 0;
    }
    case 51: case 85: return fsync(file);                               /* F_FULLFSYNC, F_BARRIERFSYNC */
    }
    errno = EINVAL;
    return -1;
}

int darwin_ioctl(int file, unsigned long request, void *rest) {
    void *argument = *(void **)rest;
    switch (request) {
    case 0x8004667e: return ioctl(file, FIONBIO, argument);
    case 0x4004667f: return ioctl(file, FIONREAD, argument);
    case 0x40087468: return ioctl(file, TIOCGWINSZ, argument);
    case 0x20006601: { int own = fcntl(file, F_GETFD); return own < 0 ? own : fcntl(file, F_SETFD, own | FD_CLOEXEC); }
    case 0x20006602: { int own = fcntl(file, F_GETFD); return own < 0 ? own : fcntl(file, F_SETFD, own & ~FD_CLOEXEC); }
    }
    errno = ENOTTY;
    return -1;
}

/* --- what is there --- */

struct darwin_stat {
    int32_t device; uint16_t mode, links; uint64_t number; uint32_t user, group; int32_t special; int32_t pad;
    struct timespec read, written, changed, born; int64_t size, blocks; int32_t block_size; uint32_t flags, generation; int32_t spare; int64_t more[2];
};
_Static_assert(sizeof(struct darwin_stat) == 144, "struct stat");

static int stat_answer(int result, const struct stat *own, struct darwin_stat *to) {
    if (!result)
        *to = (struct darwin_stat){.device = (int32_t)own->st_dev, .mode = (uint16_t)own->st_mode, .links = (uint16_t)own->st_nlink,
            .number = own->st_ino, .user = own->st_uid, .group = own->st_gid, .special = (int32_t)own->st_rdev,
            .read = own->st_atim, .written = own->st_mtim, .changed = own->st_ctim, .born = own->st_ctim, .size = own->st_size,
            .blocks = own->st_blocks, .block_size = (int32_t)own->st_blksize};
    return result;
}
int darwin_stat(const char *path, void *to) { struct stat own; return stat_answer(stat(path, &own), &own, to); }
int darwin_lstat(const char *path, void *to) { struct stat own; return stat_answer(lstat(path, &own), &own, to); }
int darwin_fstat(int file, void *to) { struct stat own; return stat_answer(fstat(file, &own), &own, to); }
int darwin_fstatat(int folder, const char *path, void *to, int flags) {
    struct stat own;
    return stat_answer(fstatat(linux_descriptor(folder), path, &own, flags & 0x20 ? AT_SYMLINK_NOFOLLOW : 0), &own, to);
}

struct darwin_statfs {
    uint32_t block; int32_t transfer; uint64_t blocks, free, available, files, free_files; int32_t id[2]; uint32_t owner, type, flags, subtype;
    char type_name[16], mounted_on[1024], mounted_from[1024]; uint32_t more[8];
};
_Static_assert(sizeof(struct darwin_statfs) == 2168, "struct statfs");

static int statfs_answer(int result, const struct statfs *own, struct darwin_statfs *to) {
    if (!result)
        *to = (struct darwin_statfs){.block = (uint32_t)own->f_bsize, .transfer = (int32_t)own->f_bsize, .blocks = own->f_blocks,
            .free = own->f_bfree, .available = own->f_bavail, .files = own->f_files, .free_files = own->f_ffree, .type_name = "linux"};
    return result;
}
int darwin_statfs(const char *path, void *to) { struct statfs own; return statfs_answer(statfs(path, &own), &own, to); }
int darwin_fstatfs(int file, void *to) { struct statfs own; return statfs_answer(fstatfs(file, &own), &own, to); }

struct darwin_statvfs { unsigned long block, fragment; uint32_t blocks, free, available, files, free_files, available_files; unsigned long id, flags, longest; };
int darwin_statvfs(const char *path, struct darwin_statvfs *to) {
    struct statvfs own;
    int result = statvfs(path, &own);
    if (!result)
        *to = (struct darwin_statvfs){own.f_bsize, own.f_frsize, (uint32_t)own.f_blocks, (uint32_t)own.f_bfree, (uint32_t)own.f_bavail,
            (uint32_t)own.f_files, (uint32_t)own.f_ffree, (uint32_t)own.f_favail, own.f_fsid, own.f_flag & 3, own.f_namemax};
    return result;
}

/* --- folders --- */

struct darwin_entry { uint64_t number, offset; uint16_t size, name_size; uint8_t type; char name[1024]; };

static void entry_of(const struct dirent *own, struct darwin_entry *entry) {
    size_t length = strlen(own->d_name);
    *entry = (struct darwin_entry){own->d_ino, (uint64_t)own->d_off, sizeof *entry, (uint16_t)length, own->d_type, ""};
    memcpy(entry->name, own->d_name, length + 1);
}

void *darwin_readdir(DIR *folder) {
    static __thread struct darwin_entry entry;
    struct dirent *own = readdir(folder);
    return own ? entry_of(own, &entry), &entry : NULL;
}

int darwin_scandir(const char *path, struct darwin_entry ***list, int (*wanted)(const struct darwin_entry *),
                   int (*compare)(const struct darwin_entry **, const struct darwin_entry **)) {
    DIR *folder = opendir(path);
    struct darwin_entry **found = NULL, *entry;
    int count = 0;
    if (!folder) return -1;
    while ((entry = darwin_readdir(folder))) {
        if (wanted && !wanted(entry)) continue;
        struct darwin_entry **more = realloc(found, (size_t)(count + 1) * sizeof *found), *copy = malloc(sizeof *copy);
        if (!more || !copy) abort();
        *copy = *entry;
        (found = more)[count++] = copy;
    }
    closedir(folder);
    if (compare && count) qsort(found, (size_t)count, sizeof *found, (int (*)(const void *, const void *))compare);
    *list = found;
    return count;
}

/* --- others --- */

int darwin_unlinkat(int folder, const char *path, int flags) { return unlinkat(linux_descriptor(folder), path, flags & 0x80 ? AT_REMOVEDIR : 0); }
int darwin_fchmodat(int folder, const char *path, uint16_t mode, int flags) {
    return fchmodat(linux_descriptor(folder), path, mode, flags & 0x20 ? AT_SYMLINK_NOFOLLOW : 0);
}

/* What libc++ copies files with: the data alone. */
void *darwin_copyfile_state_alloc(void) { return calloc(1, 8); }
int darwin_copyfile_state_free(void *state) { free(state); return 0; }
int darwin_fcopyfile(int from, int to, void *state, uint32_t flags) {
    char buffer[65536];
    ssize_t count;
    (void)state;
    if (!(flags & 8)) return errno = ENOTSUP, -1;
    while ((count = read(from, buffer, sizeof buffer)) > 0)
        for (ssize_t at = 0, done; at < count; at += done)
            if ((done = write(to, buffer + at, (size_t)(count - at))) < 0) return -1;
    return count < 0 ? -1 : 0;
}


void *darwin_mmap(void *address, size_t size, int protection, int flags, int file, off_t offset) {
    int own = (flags & 0x13) | (flags & 0x40 ? MAP_NORESERVE : 0) | (flags & 0x1000 ? MAP_ANONYMOUS : 0);
    return mmap(address, size, protection, own, flags & 0x1000 ? -1 : file, offset);
}
int darwin_msync(void *address, size_t size, int flags) {
    return msync(address, size, (flags & 0x1 ? MS_ASYNC : 0) | (flags & 0x2 ? MS_INVALIDATE : 0) | (flags & 0x10 ? MS_SYNC : 0));
}
int darwin_madvise(void *address, size_t size, int advice) { return advice <= 4 ? madvise(address, size, advice) : 0; }

/* UTIME_NOW and UTIME_OMIT have other numbers. */
static struct timespec moment_of(struct timespec time) {
    if (time.tv_nsec == -1) time.tv_nsec = UTIME_NOW;
    if (time.tv_nsec == -2) time.tv_nsec = UTIME_OMIT;
    return time;
}
int darwin_utimensat(int folder, const char *path, const struct timespec *times, int flags) {
    struct timespec own[2] = {{0, UTIME_NOW}, {0, UTIME_NOW}};
    if (times) own[0] = moment_of(times[0]), own[1] = moment_of(times[1]);
    return utimensat(linux_descriptor(folder), path, own, flags & 0x20 ? AT_SYMLINK_NOFOLLOW : 0);
}
int darwin_futimens(int file, const struct timespec *times) {
    struct timespec own[2] = {{0, UTIME_NOW}, {0, UTIME_NOW}};
    if (times) own[0] = moment_of(times[0]), own[1] = moment_of(times[1]);
    return futimens(file, own);
}
/* timeval has 32 bits for microseconds there. */
struct darwin_timeval { int64_t seconds; int32_t microseconds, pad; };
static const struct timeval *times_of(const struct darwin_timeval *from, struct timeval *own) {
    for (int i = 0; from && i < 2; i++) own[i] = (struct timeval){from[i].seconds, from[i].microseconds};
    return from ? own : NULL;
}
int darwin_utimes(const char *path, const void *times) { struct timeval own[2]; return utimes(path, times_of(times, own)); }
int darwin_lutimes(const char *path, const void *times) { struct timeval own[2]; return lutimes(path, times_of(times, own)); }
int darwin_futimes(int file, const void *times) { struct timeval own[2]; return futimes(file, times_of(times, own)); }

long darwin_pathconf(const char *path, int name) {
    switch (name) {
    case 1: return pathconf(path, _PC_LINK_MAX);
    case 4: return pathconf(path, _PC_NAME_MAX);
    case 5: return pathconf(path, _PC_PATH_MAX);
    case 6: return pathconf(path, _PC_PIPE_BUF);
    }
    errno = EINVAL;
    return -1;
}

/* Linux' sendfile is another call: this copies, as far as nothing blocks. */
int darwin_sendfile(int file, int socket, off_t offset, off_t *length, void *headers, int flags) {
    (void)flags;
    char buffer[65536];
    off_t left = *length ? *length : LLONG_MAX, sent = 0;
    int result = headers ? (errno = ENOSYS, -1) : 0;
    while (!result && left > 0) {
        ssize_t count = pread(file, buffer, left < (off_t)sizeof buffer ? (size_t)left : sizeof buffer, offset + sent);
        ssize_t done = count > 0 ? write(socket, buffer, (size_t)count) : 0;
        if (count < 0 || done < 0) result = -1;
        if (done > 0) sent += done, left -= done;
        if (count <= 0 || done < count) break;
    }
    *length = sent;
    return result;
}
