#include <CoreFoundation/CoreFoundation.h>
#include <objc/NSObject.h>
#include <objc/NSObjCRuntime.h>
#include <objc/runtime.h>
#include <dispatch/dispatch.h>
#include <mach/vm_page_size.h>
#include <mach/vm_param.h>
#ifdef MPS_BUILD_SIMD_TYPES_ONLY
#include <simd/vector_types.h>
#else
#include <simd/simd.h>
#endif
#include <os/availability.h>

#define NS_ENUM(type, name) enum name : type name; enum name : type
#define NS_OPTIONS(type, name) type name; enum : type
#define NS_ASSUME_NONNULL_BEGIN _Pragma("clang assume_nonnull begin")
#define NS_ASSUME_NONNULL_END _Pragma("clang assume_nonnull end")
#define NS_AVAILABLE_MAC(version) API_AVAILABLE(macos(version))
#define NS_RETURNS_RETAINED __attribute__((ns_returns_retained))
#define NS_UNAVAILABLE __attribute__((unavailable))
#define FOUNDATION_EXPORT extern
#define NSNotFound NSIntegerMax
typedef double NSTimeInterval;
typedef unsigned short unichar;
typedef struct _NSZone NSZone;
typedef NSUInteger NSStringEncoding;
enum : NSStringEncoding {
  NSASCIIStringEncoding = 1,
  NSUTF8StringEncoding = 4,
  NSISOLatin1StringEncoding = 5,
  NSUnicodeStringEncoding = 10,
};
#ifdef __OBJC__
#ifdef __cplusplus
extern "C" void NSLog(NSString *format, ...) __attribute__((format(__NSString__, 1, 2)));
#else
extern void NSLog(NSString *format, ...) __attribute__((format(__NSString__, 1, 2)));
#endif
#define NSAssert(condition, ...) ((void)(condition))
#endif
