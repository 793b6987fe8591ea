// A class that only a newer macOS has: its image is opened, and what is sent to it says which class is missing.
#include <Foundation/Foundation.h>
#include <cstring>
#include <stdexcept>

@interface MPSOfNextYear : NSObject
+ (instancetype)withNumber:(int)number;
@end
@interface OwnOfNextYear : MPSOfNextYear
@end
@implementation OwnOfNextYear
- (int)own {
  return 3;
}
@end

template <class Send> static bool says(Send send, const char *wanted) {
  try {
    send();
  } catch (const std::runtime_error &error) {
    return std::strcmp(error.what(), wanted) == 0;
  }
  return false;
}

extern "C" int check_absent_class() {
  if (!says([] { [MPSOfNextYear new]; }, "software Metal: there is no +[MPSOfNextYear new]")) return __LINE__;
  if (!says([] { [MPSOfNextYear withNumber:1]; }, "software Metal: there is no +[MPSOfNextYear withNumber:]")) return __LINE__;
  if (!says([] { [[OwnOfNextYear alloc] own]; }, "software Metal: there is no +[OwnOfNextYear alloc]")) return __LINE__;
  return [NSNumber numberWithInt:5].intValue != 5;
}
