// Blocks are objects: clang sends `copy` and `autorelease` to one that it makes of a C++ lambda.
#include <Foundation/Foundation.h>
#include "../runtime/objects.h"

// Its methods are those of the three classes of blocks (runtime/classes.cpp).
@interface SimBlock : NSObject
@end
@implementation SimBlock
- (id)copy {
  return (id)_Block_copy((const void *)self);
}
- (instancetype)retain {
  return (id)_Block_copy((const void *)self);
}
- (oneway void)release {
  _Block_release((const void *)self);
}
- (void)dealloc {
  sim::refuse("dealloc is sent to a block");
  [super dealloc];
}
@end
