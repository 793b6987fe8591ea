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
// The linker gives the first and the last word of a section by these names.
extern const char *__start_objc_selrefs[], *__stop_objc_selrefs[];
extern sim::Class *__start_objc_classlist[], *__stop_objc_classlist[];
extern sim::Category *__start_objc_catlist[] __attribute__((weak)), *__stop_objc_catlist[] __attribute__((weak));
extern const char *sim_first_own_selector; // boundary.cpp
extern sim::Class constant_string_class asm("OBJC_CLASS_$_NSConstantString");
void *_objc_empty_cache = nullptr;
// The class of what the compiler makes of @"...": a copy of NSConstantString.
void *__CFConstantStringClassReference[5];
extern sim::Class block_class asm("OBJC_CLASS_$_SimBlock");
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
  for (uint32_t i = 0; list && i < list->count; i++) {
    auto *method = (const Method *)((const char *)list->first + (size_t)i * (list->entry_size & ~3u));
    auto *name = selector(method->name);
    if (missing_method(type, name))
      registry().left_out.insert(name);
    else
      table[name] = method->code;
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

__attribute__((constructor(101))) void enter_all() {
  for (auto each = __start_objc_selrefs; each < __stop_objc_selrefs; each++) *each = selector(*each);
  for (auto each = __start_objc_classlist; each < __stop_objc_classlist; each++) {
    enter(*each, (*each)->data->methods);
    enter((*each)->isa, (*each)->isa->data->methods);
    if (missing_class(*each))
      registry().absent.insert({*each, (*each)->isa});
    else
      registry().classes[(*each)->data->name] = *each;
    check_layout(*each);
  }
  for (auto each = __start_objc_catlist; each < __stop_objc_catlist; each++) {
    enter((*each)->target, (*each)->instance_methods);
    enter((*each)->target->isa, (*each)->class_methods);
  }
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
void refuse(const std::string &reason) { raise_error(in_operator() + reason); }

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

extern "C" void *sim_method_or_refuse(Class *type, const char *name) {
  if (auto *code = find_method(type, name)) return code;
  auto of = [&](const char *owner) { return (type->is_meta() ? "+[" : "-[") + std::string(owner) + " " + name + "]"; };
  if (auto *row = missing_class(type)) refuse(says(*row, std::string("the class ") + row->type));
  if (auto *row = missing_method(type, name)) refuse(says(*row, of(row->type)));
  refuse("there is no " + of(type->data->name));
}
} // namespace sim

extern "C" {
// For the session: two lists of names as JSON, what PyTorch's files send and what some class answers.
const char *sim_selectors() {
  static std::string out;
  std::unordered_set<std::string> needed, answered;
  for (auto each = __start_objc_selrefs; each < &sim_first_own_selector; each++) needed.insert(*each);
  for (auto &table : sim::registry().methods)
    for (auto &method : table.second) answered.insert(method.first);
  for (auto each : sim::registry().left_out) answered.insert(each); // on a newer macOS
  auto list = [](const std::unordered_set<std::string> &names) {
    std::string text;
    for (auto &each : names) text += (text.empty() ? "\"" : ", \"") + each + "\"";
    return "[" + text + "]";
  };
  out = "[" + list(needed) + ", " + list(answered) + "]";
  return out.c_str();
}
sim::Class *objc_getClass(const char *name) { return sim::find_class(name); }
sim::Class *objc_lookUpClass(const char *name) { return sim::find_class(name); }
const char *sel_registerName(const char *name) { return sim::selector(name); }
}
