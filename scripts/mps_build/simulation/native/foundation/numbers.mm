// Numbers and data.
#include <Foundation/Foundation.h>
#include <cstdlib>
#include <cstring>

@interface SimNumber : NSNumber {
 @public
  double real;
  long long whole;
  bool is_real;
}
@end

namespace {
NSNumber *number(double real, long long whole, bool is_real) {
  auto *made = (SimNumber *)[SimNumber alloc];
  made->real = real;
  made->whole = whole;
  made->is_real = is_real;
  return (NSNumber *)[(id)made autorelease];
}
} // namespace

#define WHOLE(Name, Type)                                          \
  +(NSNumber *)numberWith##Name : (Type)value {                    \
    return number((double)value, (long long)value, false);         \
  }                                                                \
  -(instancetype)initWith##Name : (Type)value {                    \
    [self release];                                                \
    return (id)[[NSNumber numberWith##Name:value] retain];         \
  }
#define REAL(Name, Type)                                           \
  +(NSNumber *)numberWith##Name : (Type)value {                    \
    return number(value, (long long)value, true);                  \
  }                                                                \
  -(instancetype)initWith##Name : (Type)value {                    \
    [self release];                                                \
    return (id)[[NSNumber numberWith##Name:value] retain];         \
  }
@implementation NSValue
@end
@implementation NSNumber
WHOLE(Bool, BOOL)
WHOLE(Char, char)
WHOLE(Short, short)
WHOLE(Int, int)
WHOLE(Long, long)
WHOLE(LongLong, long long)
WHOLE(Integer, NSInteger)
WHOLE(UnsignedChar, unsigned char)
WHOLE(UnsignedShort, unsigned short)
WHOLE(UnsignedInt, unsigned)
WHOLE(UnsignedLong, unsigned long)
WHOLE(UnsignedLongLong, unsigned long long)
WHOLE(UnsignedInteger, NSUInteger)
REAL(Float, float)
REAL(Double, double)
@end

#define VALUE(name, Type)                        \
  -(Type)name {                                  \
    return is_real ? (Type)real : (Type)whole;   \
  }
@implementation SimNumber
VALUE(boolValue, BOOL)
VALUE(charValue, char)
VALUE(shortValue, short)
VALUE(intValue, int)
VALUE(longValue, long)
VALUE(longLongValue, long long)
VALUE(integerValue, NSInteger)
VALUE(unsignedIntValue, unsigned)
VALUE(unsignedLongValue, unsigned long)
VALUE(unsignedLongLongValue, unsigned long long)
VALUE(unsignedIntegerValue, NSUInteger)
VALUE(floatValue, float)
VALUE(doubleValue, double)
- (NSString *)stringValue {
  return is_real ? [NSString stringWithFormat:@"%g", real] : [NSString stringWithFormat:@"%ld", (long)whole];
}
- (NSString *)description {
  return [self stringValue];
}
- (NSUInteger)hash {
  return (NSUInteger)whole;
}
- (BOOL)isEqual:(id)other {
  if (![other isKindOfClass:[NSNumber class]]) return NO;
  return [self doubleValue] == [(NSNumber *)other doubleValue] && [self longLongValue] == [(NSNumber *)other longLongValue];
}
@end

@interface SimData : NSData {
 @public
  void *memory;
  NSUInteger size;
}
@end
@implementation NSData
+ (instancetype)dataWithBytes:(const void *)bytes length:(NSUInteger)length {
  auto *made = (SimData *)[SimData alloc];
  made->memory = malloc(length ? length : 1);
  made->size = length;
  if (length) memcpy(made->memory, bytes, length);
  return (id)[made autorelease];
}
@end
@implementation SimData
- (const void *)bytes {
  return memory;
}
- (NSUInteger)length {
  return size;
}
- (void)dealloc {
  free(memory);
  [super dealloc];
}
@end
