// The root class.
#include <Foundation/Foundation.h>
#include "../runtime/objects.h"
#include "foundation.h"

@implementation NSObject
+ (void)initialize {
}
+ (instancetype)alloc {
  return (id)sim::new_object((sim::Class *)self);
}
+ (instancetype)new {
  return [[self alloc] init];
}
+ (Class)class {
  return (Class)self;
}
+ (id)retain {
  return (id)self;
}
+ (oneway void)release {
}
+ (BOOL)instancesRespondToSelector:(SEL)selector {
  return sim::find_method((sim::Class *)self, (const char *)selector) != nullptr;
}
- (instancetype)init {
  return self;
}
- (void)dealloc {
  sim::free_object((void *)self);
}
- (Class)class {
  return isa;
}
- (instancetype)self {
  return self;
}
- (instancetype)retain {
  return (id)objc_retain((void *)self);
}
- (oneway void)release {
  objc_release((void *)self);
}
- (instancetype)autorelease {
  return (id)objc_autorelease((void *)self);
}
- (NSUInteger)retainCount {
  return (NSUInteger)sim::reference_count((void *)self);
}
- (id)copy {
  return [self retain];
}
- (BOOL)isEqual:(id)other {
  return self == other;
}
- (NSUInteger)hash {
  return (NSUInteger)self >> 4;
}
- (BOOL)respondsToSelector:(SEL)selector {
  return sim::find_method((sim::Class *)isa, (const char *)selector) != nullptr;
}
- (BOOL)isKindOfClass:(Class)wanted {
  for (auto *each = (sim::Class *)isa; each; each = each->superclass)
    if (each == (sim::Class *)wanted) return YES;
  return NO;
}
- (NSString *)description {
  return [NSString stringWithUTF8String:((sim::Class *)isa)->data->name];
}
@end

@implementation SimDispatchData
@end
@implementation NSURL
+ (NSURL *)fileURLWithPath:(NSString *)path {
  return [[NSURL new] autorelease];
}
@end
@implementation NSError
- (NSInteger)code {
  return 0;
}
- (NSString *)domain {
  return @"software Metal";
}
// None is made: what fails here raises at once.
- (NSString *)localizedDescription {
  return @"";
}
@end

extern "C" Class NSClassFromString(NSString *name) { return (Class)sim::find_class([name UTF8String]); }

// Blocks are objects: clang sends `copy` and `autorelease` to one that it makes of a C++ lambda.
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
