/* The root class, as far as PyTorch and the software Metal send to it. */
#pragma once
#include <objc/objc.h>
#ifdef __OBJC__
@class NSString;
@protocol NSObject
- (BOOL)isEqual:(id)other;
@property(readonly) NSUInteger hash;
- (Class)class;
- (instancetype)self;
- (BOOL)isKindOfClass:(Class)wanted;
- (BOOL)respondsToSelector:(SEL)selector;
- (instancetype)retain;
- (oneway void)release;
- (instancetype)autorelease;
- (NSUInteger)retainCount;
@property(readonly, copy) NSString *description;
@end
__attribute__((objc_root_class)) @interface NSObject <NSObject> {
  Class isa;
}
+ (void)initialize;
+ (instancetype)alloc;
+ (instancetype)new;
+ (Class)class;
+ (BOOL)instancesRespondToSelector:(SEL)selector;
- (instancetype)init;
- (void)dealloc;
- (id)copy;
- (id)mutableCopy;
@end
#endif
