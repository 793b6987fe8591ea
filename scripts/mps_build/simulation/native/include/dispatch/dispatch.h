/* Queues, semaphores and data of libdispatch, as far as PyTorch calls them. */
#pragma once
#include <objc/NSObject.h>
@protocol OS_dispatch_queue <NSObject>
@end
@protocol OS_dispatch_data <NSObject>
@end
@protocol OS_dispatch_semaphore <NSObject>
@end
typedef NSObject<OS_dispatch_queue> *dispatch_queue_t;
typedef NSObject<OS_dispatch_data> *dispatch_data_t;
typedef NSObject<OS_dispatch_semaphore> *dispatch_semaphore_t;
typedef void (^dispatch_block_t)(void);
typedef id dispatch_object_t;
typedef id dispatch_queue_attr_t;
typedef uint64_t dispatch_time_t;
#define DISPATCH_QUEUE_SERIAL nil
#define DISPATCH_QUEUE_PRIORITY_DEFAULT 0
#define DISPATCH_TIME_FOREVER (~0ull)
#define DISPATCH_DATA_DESTRUCTOR_DEFAULT nil
#ifdef __cplusplus
extern "C" {
#endif
dispatch_queue_t dispatch_queue_create(const char *label, dispatch_queue_attr_t attributes);
dispatch_queue_t dispatch_get_global_queue(long priority, unsigned long flags);
static inline dispatch_queue_t dispatch_get_main_queue(void) { return dispatch_get_global_queue(0, 0); }
void dispatch_sync(dispatch_queue_t queue, dispatch_block_t block);
void dispatch_sync_f(dispatch_queue_t queue, void *context, void (*work)(void *));
void dispatch_async(dispatch_queue_t queue, dispatch_block_t block);
void dispatch_release(dispatch_object_t object);
void dispatch_retain(dispatch_object_t object);
dispatch_semaphore_t dispatch_semaphore_create(long value);
long dispatch_semaphore_signal(dispatch_semaphore_t semaphore);
long dispatch_semaphore_wait(dispatch_semaphore_t semaphore, dispatch_time_t timeout);
dispatch_data_t dispatch_data_create(const void *bytes, size_t size, dispatch_queue_t queue, dispatch_block_t destructor);
#ifdef __cplusplus
}
#endif
