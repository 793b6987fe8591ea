// Arrays and dictionaries; every one can be changed.
#include <Foundation/Foundation.h>
#include <string>
#include <utility>
#include <vector>
#include "../runtime/objects.h"
#include "foundation.h"

@interface SimDictionary : NSMutableDictionary {
 @public
  std::vector<std::pair<id, id>> *pairs; // few: a search through all is quick, and the order stays
}
@end

namespace {
SimArray *array_of(const id *objects, size_t count) {
  auto *made = (SimArray *)[SimArray alloc];
  made->items = new std::vector<id>(objects, objects + count);
  for (id each : *made->items) [each retain];
  return made;
}
unsigned long never_changes;
} // namespace

@implementation NSArray
+ (instancetype)alloc {
  auto *made = (SimArray *)sim::new_object((sim::Class *)[SimArray class]);
  made->items = new std::vector<id>;
  return (id)made;
}
+ (instancetype)array {
  return [[self alloc] autorelease];
}
+ (instancetype)arrayWithCapacity:(NSUInteger)count {
  return [[self alloc] autorelease];
}
+ (instancetype)arrayWithObject:(id)object {
  return (id)[(id)array_of(&object, 1) autorelease];
}
+ (instancetype)arrayWithObjects:(const id *)objects count:(NSUInteger)count {
  return (id)[(id)array_of(objects, count) autorelease];
}
+ (instancetype)arrayWithArray:(NSArray *)other {
  auto &items = *((SimArray *)other)->items;
  return (id)[(id)array_of(items.data(), items.size()) autorelease];
}
@end
@implementation NSMutableArray
@end

@implementation SimArray
+ (instancetype)alloc {
  return (id)sim::new_object((sim::Class *)self);
}
- (instancetype)initWithCapacity:(NSUInteger)count {
  return self;
}
- (void)dealloc {
  for (id each : *items) [each release];
  delete items;
  [super dealloc];
}
- (id)copy {
  return (id)array_of(items->data(), items->size());
}
- (id)mutableCopy {
  return (id)array_of(items->data(), items->size());
}
- (NSUInteger)count {
  return items->size();
}
- (void)check:(NSUInteger)index {
  if (index >= items->size())
    sim::refuse("NSArray: index " + std::to_string(index) + " is beyond its " + std::to_string(items->size()) + " objects");
}
- (id)objectAtIndex:(NSUInteger)index {
  [self check:index];
  return (*items)[index];
}
- (id)objectAtIndexedSubscript:(NSUInteger)index {
  return [self objectAtIndex:index];
}
- (id)firstObject {
  return items->empty() ? nil : items->front();
}
- (id)lastObject {
  return items->empty() ? nil : items->back();
}
- (void)addObjectsFromArray:(NSArray *)other {
  for (id each in other) [self addObject:each];
}
- (void)addObject:(id)object {
  items->push_back([object retain]);
}
- (void)insertObject:(id)object atIndex:(NSUInteger)index {
  if (index > items->size()) [self check:index];
  items->insert(items->begin() + (long)index, [object retain]);
}
- (void)setObject:(id)object atIndexedSubscript:(NSUInteger)index {
  if (index == items->size()) return [self addObject:object];
  [self check:index];
  [object retain];
  [(*items)[index] release];
  (*items)[index] = object;
}
- (void)replaceObjectAtIndex:(NSUInteger)index withObject:(id)object {
  [self check:index];
  [self setObject:object atIndexedSubscript:index];
}
- (void)removeObjectAtIndex:(NSUInteger)index {
  [self check:index];
  [(*items)[index] release];
  items->erase(items->begin() + (long)index);
}
- (void)removeObject:(id)wanted {
  [wanted retain];  // the array may hold the last reference
  for (size_t index = items->size(); index-- > 0;)
    if ((*items)[index] == wanted || [(*items)[index] isEqual:wanted]) [self removeObjectAtIndex:index];
  [wanted release];
}
- (void)removeLastObject {
  [self removeObjectAtIndex:items->size() - 1];
}
- (NSUInteger)countByEnumeratingWithState:(NSFastEnumerationState *)state objects:(id *)room count:(NSUInteger)count {
  if (state->state) return 0;
  state->state = 1;
  state->itemsPtr = (__typeof__(state->itemsPtr))items->data();
  state->mutationsPtr = &never_changes;
  return items->size();
}
- (NSString *)componentsJoinedByString:(NSString *)separator {
  std::string out;
  for (size_t i = 0; i < items->size(); i++) {
    if (i) out += [separator UTF8String];
    out += [[(*items)[i] description] UTF8String];
  }
  return [NSString stringWithUTF8String:out.c_str()];
}
- (id)valueForKey:(NSString *)key {
  const char *name = sim::selector([key UTF8String]);
  id out = [NSMutableArray array];
  for (id each : *items) {
    void *code = sim::find_method((sim::Class *)[each class], name);
    if (!code) sim::refuse(std::string("NSArray: its objects have no ") + name);
    [out addObject:((id(*)(id, const char *))code)(each, name)];
  }
  return out;
}
- (BOOL)isEqual:(id)other {
  if (![other isKindOfClass:[SimArray class]] || [other count] != items->size()) return NO;
  for (size_t i = 0; i < items->size(); i++)
    if (![(*items)[i] isEqual:[other objectAtIndex:i]]) return NO;
  return YES;
}
- (BOOL)isEqualToArray:(NSArray *)other {
  return [self isEqual:other];
}
- (NSString *)description {
  return [NSString stringWithFormat:@"(%@)", [self componentsJoinedByString:@", "]];
}
@end

@implementation NSDictionary
+ (instancetype)alloc {
  auto *made = (SimDictionary *)sim::new_object((sim::Class *)[SimDictionary class]);
  made->pairs = new std::vector<std::pair<id, id>>;
  return (id)made;
}
+ (instancetype)dictionary {
  return [[self alloc] autorelease];
}
+ (instancetype)dictionaryWithCapacity:(NSUInteger)count {
  return [[self alloc] autorelease];
}
+ (instancetype)dictionaryWithObjects:(const id *)objects forKeys:(const id *)keys count:(NSUInteger)count {
  id made = [[self alloc] autorelease];
  for (size_t i = 0; i < count; i++) {
    if (!objects[i] || !keys[i]) sim::refuse("NSDictionary: attempt to insert nil"); // an exception on a Mac too
    [made setObject:objects[i] forKey:keys[i]];
  }
  return made;
}
@end
@implementation NSMutableDictionary
@end

@implementation SimDictionary
- (instancetype)initWithCapacity:(NSUInteger)count {
  return self;
}
- (void)dealloc {
  for (auto &[key, value] : *pairs) {
    [key release];
    [value release];
  }
  delete pairs;
  [super dealloc];
}
- (id)copy {
  auto *made = (SimDictionary *)[NSDictionary alloc];
  *made->pairs = *pairs;
  for (auto &[key, value] : *pairs) {
    [key retain];
    [value retain];
  }
  return (id)made;
}
- (id)mutableCopy {
  return [self copy];
}
- (NSUInteger)count {
  return pairs->size();
}
- (id)objectForKey:(id)wanted {
  for (auto &[key, value] : *pairs)
    if (key == wanted || [key isEqual:wanted]) return value;
  return nil;
}
- (id)objectForKeyedSubscript:(id)key {
  return [self objectForKey:key];
}
- (void)setObject:(id)object forKey:(id)wanted {
  [object retain];
  for (auto &[key, value] : *pairs) {
    if (key != wanted && ![key isEqual:wanted]) continue;
    [value release];
    value = object;
    return;
  }
  pairs->emplace_back([wanted retain], object);
}
- (void)setValue:(id)object forKey:(id)key {
  [self setObject:object forKey:key];
}
- (void)setObject:(id)object forKeyedSubscript:(id)key {
  [self setObject:object forKey:key];
}
- (NSArray *)allKeys {
  id out = [NSMutableArray array];
  for (auto &[key, value] : *pairs) [out addObject:key];
  return out;
}
- (NSArray *)allValues {
  id out = [NSMutableArray array];
  for (auto &[key, value] : *pairs) [out addObject:value];
  return out;
}
- (NSUInteger)countByEnumeratingWithState:(NSFastEnumerationState *)state objects:(id *)room count:(NSUInteger)count {
  return [[self allKeys] countByEnumeratingWithState:state objects:room count:count];
}
@end

// `@[]` and `@{}` are one object each, by name: a place that holds it, or with newer SDKs the object itself.
@implementation NSConstantArray
@end
@interface NSConstantDictionary : SimDictionary
@end
@implementation NSConstantDictionary
@end
extern "C" {
extern char constant_array_class[] SIM_SYMBOL("OBJC_CLASS_$_NSConstantArray");
extern char constant_dictionary_class[] SIM_SYMBOL("OBJC_CLASS_$_NSConstantDictionary");
struct {
  void *isa;
  std::vector<id> *items;
  id *objects;
} empty_array SIM_SYMBOL("__NSArray0__struct") = {constant_array_class, new std::vector<id>, nullptr};
struct {
  void *isa;
  std::vector<std::pair<id, id>> *pairs;
  void *more[3];
} empty_dictionary SIM_SYMBOL("__NSDictionary0__struct") = {constant_dictionary_class, new std::vector<std::pair<id, id>>, {}};
void *empty_array_place SIM_SYMBOL("__NSArray0__") = &empty_array;
void *empty_dictionary_place SIM_SYMBOL("__NSDictionary0__") = &empty_dictionary;
}

@interface SimSet : NSMutableSet {
 @public
  SimArray *all; // few: a search through them is quick
}
@end
@implementation NSSet
+ (instancetype)alloc {
  auto *made = (SimSet *)sim::new_object((sim::Class *)[SimSet class]);
  made->all = (SimArray *)[NSMutableArray alloc];
  return (id)made;
}
+ (instancetype)set {
  return [[self alloc] autorelease];
}
@end
@implementation NSMutableSet
@end
@implementation SimSet
- (void)dealloc {
  [all release];
  [super dealloc];
}
- (NSUInteger)count {
  return all->items->size();
}
- (BOOL)containsObject:(id)wanted {
  for (id each : *all->items)
    if (each == wanted || [each isEqual:wanted]) return YES;
  return NO;
}
- (void)addObject:(id)object {
  if ([self containsObject:object]) return;
  all->items->push_back([object retain]);
}
- (void)removeObject:(id)wanted {
  auto &items = *all->items;
  for (size_t i = 0; i < items.size(); i++) {
    if (items[i] != wanted && ![items[i] isEqual:wanted]) continue;
    [items[i] release];
    items.erase(items.begin() + (long)i);
    return;
  }
}
@end
