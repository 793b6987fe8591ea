// Bytes that somebody else keeps.
#pragma once
#include <dispatch/dispatch.h>
@interface SimDispatchData : NSObject <OS_dispatch_data> {
 @public
  const void *bytes;
  size_t size;
}
@end
