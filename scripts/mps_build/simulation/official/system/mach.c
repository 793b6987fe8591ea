/* Clocks, facts of the machine, logs: what a process asks of Mach, of sysctl and of os_log. */
#define _GNU_SOURCE
#include "system.h"
#include <stdlib.h>
#include <sys/random.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum { KERN_FAILURE = 5, CPU_ARM64 = 0x0100000c };

/* --- clocks --- */

static clockid_t clock_of(int clock) {
    switch (clock) {
    case 6: return CLOCK_MONOTONIC;
    case 4: case 5: case 8: case 9: return CLOCK_MONOTONIC_RAW;
    case 12: return CLOCK_PROCESS_CPUTIME_ID;
    case 16: return CLOCK_THREAD_CPUTIME_ID;
    default: return clock;
    }
}
int darwin_clock_gettime(int clock, struct timespec *time) { return clock_gettime(clock_of(clock), time); }
int darwin_clock_getres(int clock, struct timespec *time) { return clock_getres(clock_of(clock), time); }
uint64_t darwin_clock_gettime_nsec_np(int clock) {
    struct timespec time;
    clock_gettime(clock_of(clock), &time);
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}
uint64_t darwin_mach_absolute_time(void) { return darwin_clock_gettime_nsec_np(8); }
uint64_t darwin_mach_continuous_time(void) { return darwin_clock_gettime_nsec_np(4); }
int darwin_mach_timebase_info(uint32_t *ratio) { ratio[0] = ratio[1] = 1; return 0; }
struct darwin_timeval { int64_t seconds; int32_t microseconds, pad; };
int darwin_gettimeofday(struct darwin_timeval *to, void *zone) {
    struct timeval own;
    int result = gettimeofday(&own, zone);
    if (to) *to = (struct darwin_timeval){own.tv_sec, (int32_t)own.tv_usec, 0};
    return result;
}

uint32_t darwin_arc4random(void) {
    uint32_t number = 0;
    while (getrandom(&number, sizeof number, 0) != sizeof number) {}
    return number;
}
void darwin_arc4random_buf(void *to, size_t size) {
    for (size_t at = 0; at < size; at += 4) {
        uint32_t number = darwin_arc4random();
        memcpy((char *)to + at, &number, size - at < 4 ? size - at : 4);
    }
}

/* --- the machine: a small Mac with this one's processors and memory --- */

/* The macOS that is answered as: MPS_BUILD_MACOS, such as 15.2, packed as macOS packs versions. */
static uint32_t own_version(void) {
    unsigned major = 15, minor = 2;
    const char *text = getenv("MPS_BUILD_MACOS");
    if (text && sscanf(text, "%u.%u", &major, &minor) == 1) minor = 0;
    return major << 16 | minor << 8;
}

static uint64_t processors(void) { return (uint64_t)sysconf(_SC_NPROCESSORS_ONLN); }
static uint64_t memory(void) { return (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE); }

struct fact { const char *name; uint64_t value; uint8_t size; };

int darwin_sysctlbyname(const char *name, void *to, size_t *size, const void *wanted, size_t wanted_size) {
    const struct fact facts[] = {
        {"hw.ncpu", processors(), 4}, {"hw.activecpu", processors(), 4}, {"hw.physicalcpu", processors(), 4},
        {"hw.physicalcpu_max", processors(), 4}, {"hw.logicalcpu", processors(), 4}, {"hw.logicalcpu_max", processors(), 4},
        {"hw.perflevel0.physicalcpu", processors(), 4}, {"hw.perflevel0.logicalcpu", processors(), 4}, {"hw.packages", 1, 4}, {"hw.nperflevels", 1, 4},
        {"hw.memsize", memory(), 8}, {"hw.pagesize", 16384, 8}, {"hw.cachelinesize", 128, 8}, {"hw.l1icachesize", 131072, 8},
        {"hw.l1dcachesize", 65536, 8}, {"hw.l2cachesize", 4194304, 8}, {"hw.cputype", CPU_ARM64, 4}, {"hw.cpusubtype", 2, 4},
        {"hw.cpufamily", 0x1b588bb3, 4}, {"hw.optional.arm64", 1, 4}, {"hw.optional.neon", 1, 4}, {"hw.optional.floatingpoint", 1, 4},
        {"hw.optional.AdvSIMD", 1, 4},
    };
    (void)wanted_size;
    if (wanted) return errno = EPERM, -1;
    const void *value = NULL;
    size_t have = 0;
    const uint64_t caches[10] = {processors(), 1, processors()};        /* who shares memory, first, second cache */
    for (unsigned i = 0; i < sizeof facts / sizeof *facts; i++)
        if (!strcmp(facts[i].name, name)) value = &facts[i].value, have = facts[i].size;
    if (!strcmp(name, "hw.cacheconfig")) value = caches, have = sizeof caches;
    if (!strcmp(name, "machdep.cpu.brand_string")) value = "Apple M1", have = 9;
    char version[16];
    uint32_t own = own_version();
    if (!strcmp(name, "kern.osproductversion")) value = version, have = 1 + (size_t)snprintf(version, sizeof version, "%u.%u", own >> 16, own >> 8 & 0xff);
    if (!strcmp(name, "hw.machine")) value = "arm64", have = 6;
    if (!value) return errno = ENOENT, -1;
    /* A program may ask for four bytes of eight, or the other way round. */
    if (to && have <= 8 && *size >= 4 && *size < have) have = *size;
    if (to && *size < have) return errno = ENOMEM, -1;
    if (to) memcpy(to, value, have);
    *size = have;
    return 0;
}

int darwin_sysctl(const int *name, unsigned count, void *to, size_t *size, const void *wanted, size_t wanted_size) {
    static const struct { int group, name; const char *text; } known[] = {
        {6, 1, "hw.machine"}, {6, 3, "hw.ncpu"}, {6, 7, "hw.pagesize"}, {6, 24, "hw.memsize"}, {6, 25, "hw.activecpu"}};
    for (unsigned i = 0; count == 2 && i < sizeof known / sizeof *known; i++)
        if (known[i].group == name[0] && known[i].name == name[1]) return darwin_sysctlbyname(known[i].text, to, size, wanted, wanted_size);
    errno = ENOENT;
    return -1;
}

/* host_basic_info; any other query of the host is refused. */
int darwin_host_info(uint32_t host, int what, int32_t *to, uint32_t *count) {
    (void)host;
    int32_t number = (int32_t)processors(), bytes = memory() > INT32_MAX ? INT32_MAX : (int32_t)memory();
    const int32_t basic[12] = {number, number, bytes, CPU_ARM64, 2, 0, number, number, number, number, (int32_t)memory(), (int32_t)(memory() >> 32)};
    if (what != 1 || *count < 5) return KERN_FAILURE;
    if (*count > 12) *count = 12;
    memcpy(to, basic, *count * sizeof *to);
    return 0;
}
/* Figures of memory and of processors that a process may do without. */
int darwin_host_statistics(void) { return KERN_FAILURE; }
int darwin_host_statistics64(void) { return KERN_FAILURE; }
int darwin_host_processor_info(void) { return KERN_FAILURE; }
int darwin_task_info(void) { return KERN_FAILURE; }
int darwin_thread_info(void) { return KERN_FAILURE; }
int darwin_vm_read_overwrite(void) { return KERN_FAILURE; }
int darwin_vm_deallocate(void) { return 0; }
int darwin_mach_port_deallocate(void) { return 0; }
uint32_t darwin_mach_host_self(void) { return 2; }
uint32_t darwin_mach_task_self_ = 1;
uint64_t darwin_vm_page_size = 16384;
uint64_t darwin___stack_chk_guard = 0x595e9fbd94fda766;

/* --- logs go nowhere, and no event is watched --- */

void *darwin_os_log_create(void) { static char log[64]; return log; }
bool darwin_os_log_type_enabled(void) { return false; }
bool darwin_os_signpost_enabled(void) { return false; }
uint64_t darwin_os_signpost_id_generate(void) { return 1; }
uint64_t darwin_os_signpost_id_make_with_pointer(void) { return 1; }
void darwin__os_signpost_emit_with_name_impl(void) {}
void darwin__os_log_impl(void) {}

/* --- the rest --- */

void darwin___clear_cache(char *start, char *end) { __builtin___clear_cache(start, end); }
void darwin_sys_icache_invalidate(void *start, size_t size) { __builtin___clear_cache((char *)start, (char *)start + size); }
int darwin___darwin_check_fd_set_overflow(int file, const void *set, int is_unlimited) { (void)set; return is_unlimited || (file >= 0 && file < 1024); }

/* What @available is compiled to. */
struct darwin_version { uint32_t platform, version; };
bool darwin__availability_version_check(uint32_t count, const struct darwin_version *wanted) {
    for (uint32_t i = 0; i < count; i++)
        if (wanted[i].platform == 1 && wanted[i].version > own_version()) return false;
    return true;
}
void darwin_dyld_stub_binder(void) {}

/* Where no software Metal is loaded: an Objective-C in which every object is nil, so that there is no device. */
uint64_t darwin_nil(void) { return 0; }
char darwin_zeros[4096];
