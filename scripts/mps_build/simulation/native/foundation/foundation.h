// Classes of our Foundation that other parts fill.
#pragma once
#include <Foundation/Foundation.h>
#include <dispatch/dispatch.h>
#include <vector>

// Bytes that somebody else keeps.
@interface SimDispatchData : NSObject <OS_dispatch_data> {
 @public
  const void *bytes;
  size_t size;
}
@end
// Arrays, which literals of an image are too.
@interface SimArray : NSMutableArray {
 @public
  std::vector<id> *items;
}
@end
// A literal of an image: data, without a count of references before it.
@interface NSConstantArray : SimArray
@end
