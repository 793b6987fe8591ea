// Arrays, which literals of an image are too.
#pragma once
#include <Foundation/Foundation.h>
#include <vector>

@interface SimArray : NSMutableArray {
 @public
  std::vector<id> *items;
}
@end
// A literal of an image: data, without a count of references before it.
@interface NSConstantArray : SimArray
@end
