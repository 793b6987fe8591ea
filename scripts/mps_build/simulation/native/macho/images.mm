// What an image that is loaded holds of Objective-C, entered by the loader before its initialisers run; and the literals
// that Apple's clang makes constant data (SDK 14 and newer).
#include <Foundation/Foundation.h>
#include <mach-o/getsect.h>
#include <vector>
#include "../foundation/foundation.h"
#include "../runtime/objects.h"

@interface NSConstantIntegerNumber : NSNumber {
 @public
  const char *encoding;
  long long whole;
}
@end
@interface NSConstantDoubleNumber : NSNumber {
 @public
  double real;
}
@end
@interface NSConstantFloatNumber : NSNumber {
 @public
  float real;
}
@end
#define VALUE(name, Type, from) \
  -(Type)name {                 \
    return (Type)from;          \
  }
#define VALUES(from)                                                                                              \
  VALUE(boolValue, BOOL, from) VALUE(charValue, char, from) VALUE(shortValue, short, from)                         \
  VALUE(intValue, int, from) VALUE(longValue, long, from) VALUE(longLongValue, long long, from)                    \
  VALUE(integerValue, NSInteger, from) VALUE(unsignedIntValue, unsigned, from)                                     \
  VALUE(unsignedLongValue, unsigned long, from) VALUE(unsignedLongLongValue, unsigned long long, from)             \
  VALUE(unsignedIntegerValue, NSUInteger, from) VALUE(floatValue, float, from) VALUE(doubleValue, double, from)    \
  -(NSUInteger)hash {                                                                                              \
    return (NSUInteger)(long long)from;                                                                            \
  }
@implementation NSConstantIntegerNumber
VALUES(whole)
- (BOOL)isEqual:(id)other {
  return [other isKindOfClass:[NSNumber class]] && [(NSNumber *)other longLongValue] == whole &&
      [(NSNumber *)other doubleValue] == (double)whole;
}
@end
@implementation NSConstantDoubleNumber
VALUES(real)
- (BOOL)isEqual:(id)other {
  return [other isKindOfClass:[NSNumber class]] && [(NSNumber *)other doubleValue] == real;
}
@end
@implementation NSConstantFloatNumber
VALUES(real)
- (BOOL)isEqual:(id)other {
  return [other isKindOfClass:[NSNumber class]] && [(NSNumber *)other doubleValue] == (double)real;
}
@end

extern "C" {
// The loader's: `header` is where an image lies, all of whose addresses are right.
void sim_enter_image(const void *header) {
  auto section = [header](const char *name, auto **&first, unsigned long &count) {
    for (auto *segment : {"__DATA_CONST", "__DATA"}) {
      unsigned long size = 0;
      auto *data = getsectiondata((const struct mach_header_64 *)header, segment, name, &size);
      if (!data) continue;
      first = (std::remove_reference_t<decltype(first)>)data;
      count = size / sizeof *first;
      return;
    }
  };
  const char **selectors = nullptr;
  sim::Class **classes = nullptr;
  sim::Category **categories = nullptr;
  unsigned long selector_count = 0, class_count = 0, category_count = 0;
  section("__objc_selrefs", selectors, selector_count);
  section("__objc_classlist", classes, class_count);
  section("__objc_catlist", categories, category_count);
  sim::enter_image(selectors, selector_count, classes, classes + class_count, categories, categories + category_count);
  struct Array { // three words where ours has two: the second is where we keep the objects
    void *isa;
    union {
      uint64_t count;
      std::vector<id> *items;
    };
    id *objects;
  };
  for (auto *segment : {"__DATA_CONST", "__DATA"}) {
    unsigned long size = 0;
    auto *arrays = (Array *)getsectiondata((const struct mach_header_64 *)header, segment, "__objc_arrayobj", &size);
    for (size_t i = 0; arrays && i < size / sizeof(Array); i++)
      arrays[i].items = new std::vector<id>(arrays[i].objects, arrays[i].objects + arrays[i].count);
  }
}
}
