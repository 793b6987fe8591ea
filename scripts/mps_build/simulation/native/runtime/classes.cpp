// Classes, categories and selectors, entered when the library is loaded; methods found by class and selector.
#include "availability.h"
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <stdexcept>
#include <unordered_map>
#include <unordered_set>

extern "C" {
// The linker gives the first and the last word of a section by these names. Which of Mach-O's two segments the lists are
// in is the linker's choice.
#ifdef __APPLE__
#define FIRST(segment, section) asm("section$start$" segment "$__" section)
#define LAST(segment, section) asm("section$end$" segment "$__" section)
extern sim::Class *other_first_class[] FIRST("__DATA", "objc_classlist"), *other_last_class[] LAST("__DATA", "objc_classlist");
extern sim::Category *other_first_category[] FIRST("__DATA", "objc_catlist"), *other_last_category[] LAST("__DATA", "objc_catlist");
#else
#define FIRST(segment, section) asm("__start_" section)
#define LAST(segment, section) asm("__stop_" section)
__attribute__((weak))
#endif
extern sim::Category *first_category[] FIRST("__DATA_CONST", "objc_catlist"), *last_category[] LAST("__DATA_CONST", "objc_catlist");
extern const char *first_selector[] FIRST("__DATA", "objc_selrefs"), *last_selector[] LAST("__DATA", "objc_selrefs");
extern sim::Class *first_class[] FIRST("__DATA_CONST", "objc_classlist"), *last_class[] LAST("__DATA_CONST", "objc_classlist");
extern sim::Class constant_string_class SIM_SYMBOL("OBJC_CLASS_$_NSConstantString");
void *_objc_empty_cache = nullptr;
// The class of what the compiler makes of @"...": a copy of NSConstantString.
void *__CFConstantStringClassReference[5];
extern sim::Class block_class SIM_SYMBOL("OBJC_CLASS_$_SimBlock");
extern void *_NSConcreteGlobalBlock[5], *_NSConcreteStackBlock[5], *_NSConcreteMallocBlock[5];
}

namespace sim {
namespace {
using Methods = std::unordered_map<const char *, void *>;
struct Registry {
  std::recursive_mutex lock;
  std::unordered_set<std::string> names;
  std::unordered_map<std::string, Class *> classes;
  std::unordered_map<Class *, Methods> methods;
  // What is newer than the macOS that is told: classes without a name or a method, and selectors that were left out.
  std::unordered_set<Class *> absent;
  std::unordered_set<const char *> left_out;
};
// Never destroyed: objects outlive the destructors of globals.
Registry &registry() {
  static auto *one = new Registry;
  return *one;
}
using Lock = std::lock_guard<std::recursive_mutex>;

void enter(Class *type, const MethodList *list) {
  auto &table = registry().methods[type];
  auto add = [&](const char *given, void *code) {
    auto *name = selector(given);
    if (missing_method(type, name))
      registry().left_out.insert(name);
    else
      table[name] = code;
  };
  for (uint32_t i = 0; list && i < list->count; i++) {
    if (list->entry_size >> 31) { // of Apple's linker: three distances, the first to a reference to the selector
      auto *distances = (const int32_t *)list->first + (size_t)i * 3;
      add(*(const char **)((const char *)distances + distances[0]), (void *)((const char *)(distances + 2) + distances[2]));
      continue;
    }
    auto *method = (const Method *)((const char *)list->first + (size_t)i * (list->entry_size & 0xfffcu));
    add(method->name, method->code);
  }
}

// Instance variables have fixed places here: what a class adds must lie behind what it inherits.
void check_layout(const Class *type) {
  if (type->superclass && type->data->instance_start < type->superclass->data->instance_size) {
    fprintf(stderr, "software Metal: the variables of %s overlap those of %s\n", type->data->name,
            type->superclass->data->name);
    abort();
  }
}

void enter_classes(Class **first, Class **last) {
  for (auto each = first; each < last; each++) {
    enter(*each, (*each)->data->methods);
    enter((*each)->isa, (*each)->isa->data->methods);
    if (missing_class(*each))
      registry().absent.insert({*each, (*each)->isa});
    else
      registry().classes[(*each)->data->name] = *each;
    check_layout(*each);
  }
}

void enter_categories(Category **first, Category **last) {
  for (auto each = first; each < last; each++) {
    enter((*each)->target, (*each)->instance_methods);
    enter((*each)->target->isa, (*each)->class_methods);
  }
}

// Before all else of this image: Mach-O has no priorities, and takes the order in which the files are linked.
#ifdef __APPLE__
__attribute__((constructor))
#else
__attribute__((constructor(101)))
#endif
void enter_all() {
  for (auto each = first_selector; each < last_selector; each++) *each = selector(*each);
  enter_classes(first_class, last_class);
#ifdef __APPLE__
  enter_classes(other_first_class, other_last_class);
  enter_categories(other_first_category, other_last_category);
#endif
  enter_categories(first_category, last_category);
  // Classes that the compiler names by an address of its own.
  auto as = [](void **place, const Class &type) {
    memcpy(place, &type, sizeof(Class));
    registry().methods[(Class *)place] = registry().methods[const_cast<Class *>(&type)];
  };
  as(__CFConstantStringClassReference, constant_string_class);
  for (auto place : {_NSConcreteGlobalBlock, _NSConcreteStackBlock, _NSConcreteMallocBlock}) as(place, block_class);
}

struct Found {
  Class *type;
  const char *name;
  void *code;
};
std::atomic<Found *> recent[4096];
} // namespace

thread_local const char *current_operator = nullptr;

std::string in_operator() { return current_operator ? std::string(current_operator) + ": " : ""; }
void raise_error(const std::string &text) { throw std::runtime_error("software Metal: " + text); }
namespace {
thread_local uint64_t errors = 0;
}
uint64_t errors_of_thread() { return errors; }
void refuse(const std::string &reason) {
  errors++;
  raise_error(in_operator() + reason);
}

const char *selector(const char *name) {
  Lock held(registry().lock);
  return registry().names.insert(name).first->c_str();
}

Class *find_class(const char *name) {
  Lock held(registry().lock);
  auto found = registry().classes.find(name);
  return found == registry().classes.end() ? nullptr : found->second;
}

void *find_method(Class *type, const char *name) {
  auto &slot = recent[(((uintptr_t)type >> 4) ^ ((uintptr_t)name >> 3) * 31) & 4095];
  auto *known = slot.load(std::memory_order_acquire);
  if (known && known->type == type && known->name == name) return known->code;
  Lock held(registry().lock);
  if (registry().absent.count(type)) return nullptr;
  for (auto *each = type; each; each = each->superclass) {
    auto table = registry().methods.find(each);
    if (table == registry().methods.end()) continue;
    if (auto method = table->second.find(name); method != table->second.end()) {
      slot.store(new Found{type, name, method->second}, std::memory_order_release); // readers may hold the old one
      return method->second;
    }
  }
  return nullptr;
}

std::set<std::string> answered_selectors() {
  Lock held(registry().lock);
  std::set<std::string> found(registry().left_out.begin(), registry().left_out.end());
  for (auto &table : registry().methods)
    for (auto &method : table.second) found.insert(method.first);
  return found;
}

void enter_image(const char **selectors, size_t count, Class **first, Class **last, Category **categories, Category **end) {
  Lock held(registry().lock);
  for (size_t i = 0; i < count; i++) selectors[i] = selector(selectors[i]);
  enter_classes(first, last);
  enter_categories(categories, end);
}

extern "C" void *sim_method_or_refuse(Class *type, const char *name) {
  if (auto *code = find_method(type, name)) return code;
  auto of = [&](const char *owner) { return (type->is_meta() ? "+[" : "-[") + std::string(owner) + " " + name + "]"; };
  if (auto *row = missing_class(type)) refuse(says(*row, std::string("the class ") + row->type));
  if (auto *row = missing_method(type, name)) refuse(says(*row, of(row->type)));
  refuse("there is no " + of(type->data->name));
}
} // namespace sim

extern "C" {
sim::Class *objc_getClass(const char *name) { return sim::find_class(name); }
sim::Class *objc_lookUpClass(const char *name) { return sim::find_class(name); }
const char *sel_registerName(const char *name) { return sim::selector(name); }
bool objc_opt_respondsToSelector(void *object, const char *name) {
  return object && sim::find_method(((sim::Object *)object)->isa, sim::selector(name));
}
}
