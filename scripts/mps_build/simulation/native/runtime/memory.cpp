// Objects and their reference counts, which stand before each; autorelease pools, one stack a thread.
#include "objects.h"
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <vector>

extern "C" {
extern void *__CFConstantStringClassReference[];
extern void *_NSConcreteGlobalBlock[], *_NSConcreteStackBlock[], *_NSConcreteMallocBlock[];
void *sim_method_or_refuse(sim::Class *type, const char *name);
}

namespace sim {
namespace {
constexpr size_t kHeader = 16;
// Never destroyed: PyTorch's destructors still send messages when the main thread's own variables are gone.
std::vector<void *> &pool() {
  static thread_local std::vector<void *> *one = nullptr;
  return *(one ? one : one = new std::vector<void *>);
}

std::atomic<int64_t> &count_of(void *object) { return *(std::atomic<int64_t> *)((char *)object - kHeader); }

bool is_counted(void *object) {
  void *type = ((Object *)object)->isa;
  return type != __CFConstantStringClassReference && type != _NSConcreteGlobalBlock && type != _NSConcreteStackBlock &&
      type != _NSConcreteMallocBlock && !((Class *)type)->is_meta() &&
      strncmp(((Class *)type)->data->name, "NSConstant", 10); // data of an image, without a count before it
}

void *send(void *object, const char *name) {
  if (!object) return nullptr;
  return ((void *(*)(void *, const char *))sim_method_or_refuse(((Object *)object)->isa, name))(object, name);
}
} // namespace

void *new_object(Class *type) {
  auto *memory = (char *)calloc(1, kHeader + type->data->instance_size);
  if (!memory) refuse("no memory for an object");
  auto *object = (Object *)(memory + kHeader);
  object->isa = type;
  count_of(object) = 1;
  return object;
}
void free_object(void *object) { free((char *)object - kHeader); }
int64_t reference_count(void *object) { return is_counted(object) ? count_of(object).load() : INT32_MAX; }
} // namespace sim

using namespace sim;
extern "C" {
void *objc_retain(void *object) {
  if (object && is_counted(object)) count_of(object)++;
  return object;
}
void objc_release(void *object) {
  static const char *dealloc = selector("dealloc");
  if (!object) return;
  if ((void *)((Object *)object)->isa == (void *)_NSConcreteMallocBlock) return _Block_release(object);
  if (is_counted(object) && --count_of(object) == 0) send(object, dealloc);
}
void *objc_autorelease(void *object) {
  if (object) pool().push_back(object);
  return object;
}
void *objc_retainAutorelease(void *object) { return objc_autorelease(objc_retain(object)); }
void *objc_autoreleasePoolPush() { return (void *)pool().size(); }
void objc_autoreleasePoolPop(void *mark) {
  while (pool().size() > (size_t)mark) {
    void *last = pool().back();
    pool().pop_back();
    objc_release(last);
  }
}
// By messages: a class may have an `alloc`, `init` or `new` of its own.
void *objc_alloc(Class *type) {
  static const char *name = selector("alloc");
  return send(type, name);
}
void *objc_allocWithZone(Class *type) { return objc_alloc(type); }
void *objc_alloc_init(Class *type) {
  static const char *name = selector("init");
  return send(objc_alloc(type), name);
}
void *objc_opt_new(Class *type) {
  static const char *name = selector("new");
  return send(type, name);
}
void *objc_opt_self(void *object) { return object; }
void *objc_opt_class(void *object) { return object ? ((Object *)object)->isa : nullptr; }
void objc_enumerationMutation(void *) { refuse("a collection was changed while it was enumerated"); }
void objc_copyStruct(void *to, const void *from, ptrdiff_t size, bool, bool) { memcpy(to, from, size); }
}
