// What clang writes for Apple's Objective-C runtime, and what the rest of the software Metal asks of ours.
#pragma once
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>

// A name that the compiler uses by itself, as each format of files writes it.
#ifdef __APPLE__
#define SIM_SYMBOL(name) asm("_" name)
#else
#define SIM_SYMBOL(name) asm(name)
#endif

namespace sim {
struct Method {
  const char *name, *types;
  void *code;
};
struct MethodList {
  uint32_t entry_size, count;
  Method first[];
};
struct ClassData {
  uint32_t flags, instance_start, instance_size, reserved;
  const uint8_t *layout;
  const char *name;
  MethodList *methods;
  void *protocols, *variables;
  const uint8_t *weak_layout;
  void *properties;
};
struct Class {
  Class *isa, *superclass;
  void *cache, *table;
  ClassData *data;
  bool is_meta() const { return data->flags & 1; }
};
struct Category {
  const char *name;
  Class *target;
  MethodList *instance_methods, *class_methods;
};
struct Object {
  Class *isa;
};

// One address for one name: what the compiler's selectors are replaced by.
const char *selector(const char *name);
Class *find_class(const char *name);
// The code of a method; nullptr where neither the class nor what it inherits from has it.
void *find_method(Class *type, const char *selector);
void *new_object(Class *type);
void free_object(void *object);
int64_t reference_count(void *object);
// An image that holds Objective-C of its own: references to selectors, classes, categories.
void enter_image(const char **selectors, size_t count, Class **first, Class **last, Category **categories, Category **end);
// All selectors that some class answers, and those that only a newer macOS than this one does.
std::set<std::string> answered_selectors();
// Raised in Python as a RuntimeError: the software Metal lacks something, or was used in a way that Metal refuses.
// Named is the operator that caused it.
[[noreturn]] void refuse(const std::string &reason);
// The same, of what was recorded earlier: it names its operator itself.
[[noreturn]] void raise_error(const std::string &text);
// How many times this thread has refused something.
uint64_t errors_of_thread();
// The operator that this thread is in (torch/operators.cpp).
extern thread_local const char *current_operator;
// "aten::add: ", or nothing.
std::string in_operator();
} // namespace sim

extern "C" {
void *objc_retain(void *object);
void objc_release(void *object);
void *objc_autorelease(void *object);
void *objc_autoreleasePoolPush();
void objc_autoreleasePoolPop(void *mark);
void *_Block_copy(const void *block);
void _Block_release(const void *block);
}
