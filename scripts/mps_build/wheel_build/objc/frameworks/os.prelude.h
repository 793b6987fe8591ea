#include <os/base.h>
#include <os/object.h>
#include <stdbool.h>
#include <stdint.h>

#ifdef __OBJC__
@protocol OS_os_log <NSObject>
@end
typedef NSObject<OS_os_log> *os_log_t;
#else
typedef struct os_log_s *os_log_t;
#endif
typedef uint64_t os_signpost_id_t;
typedef enum os_signpost_type_t : uint8_t {
  OS_SIGNPOST_EVENT = 0,
  OS_SIGNPOST_INTERVAL_BEGIN = 1,
  OS_SIGNPOST_INTERVAL_END = 2,
} os_signpost_type_t;
typedef uint8_t os_log_type_t;
#define OS_SIGNPOST_ID_NULL ((os_signpost_id_t)0)
#define OS_SIGNPOST_ID_INVALID ((os_signpost_id_t)~0)
#define OS_SIGNPOST_ID_EXCLUSIVE ((os_signpost_id_t)0xEEEEB0B5B2B2EEEE)
#define OS_LOG_DEFAULT ((os_log_t)0)
#define OS_LOG_CATEGORY_POINTS_OF_INTEREST "PointsOfInterest"
#define MPS_BUILD_SIGNPOST(log, type, id, name, format, ...) \
  __extension__({ \
    __attribute__((section("__TEXT,__oslogstring,cstring_literals"))) static const char signpost_name[] = name; \
    __attribute__((section("__TEXT,__oslogstring,cstring_literals"))) static const char signpost_format[] = format; \
    uint8_t __attribute__((aligned(16))) signpost_buffer[__builtin_os_log_format_buffer_size(format, ##__VA_ARGS__)]; \
    _os_signpost_emit_with_name_impl( \
        (void *)&__dso_handle, log, type, id, signpost_name, signpost_format, \
        (uint8_t *)__builtin_os_log_format(signpost_buffer, format, ##__VA_ARGS__), \
        (uint32_t)sizeof(signpost_buffer)); \
  })
#define os_signpost_event_emit(log, id, name, ...) MPS_BUILD_SIGNPOST(log, OS_SIGNPOST_EVENT, id, name, "" __VA_ARGS__)
#define os_signpost_interval_begin(log, id, name, ...) \
  MPS_BUILD_SIGNPOST(log, OS_SIGNPOST_INTERVAL_BEGIN, id, name, "" __VA_ARGS__)
#define os_signpost_interval_end(log, id, name, ...) \
  MPS_BUILD_SIGNPOST(log, OS_SIGNPOST_INTERVAL_END, id, name, "" __VA_ARGS__)
#ifdef __cplusplus
extern "C"
#else
extern
#endif
    struct mach_header __dso_handle;
