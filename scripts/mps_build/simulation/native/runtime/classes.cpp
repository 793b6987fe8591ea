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
  // What is newer than the macOS that this answers as: classes without a name or a method, and selectors that were left out.
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

// objc_msgSend and its kin, for ELF on x86-64 and Mach-O on arm64: the arguments stay as they are while the method is
// looked up. The frames are described to the unwinder, so that an unknown selector can leave as a C++ exception.
#if defined(__x86_64__)
// Keep every register that may carry an argument.
#define KEEP                                                                                          \
  "pushq %rbp\n.cfi_def_cfa_offset 16\n.cfi_offset %rbp, -16\nmovq %rsp, %rbp\n"                      \
  ".cfi_def_cfa_register %rbp\nsubq $192, %rsp\n"                                                     \
  "movq %rdi, (%rsp)\nmovq %rsi, 8(%rsp)\nmovq %rdx, 16(%rsp)\nmovq %rcx, 24(%rsp)\n"                 \
  "movq %r8, 32(%rsp)\nmovq %r9, 40(%rsp)\nmovq %rax, 48(%rsp)\n"                                     \
  "movaps %xmm0, 64(%rsp)\nmovaps %xmm1, 80(%rsp)\nmovaps %xmm2, 96(%rsp)\nmovaps %xmm3, 112(%rsp)\n" \
  "movaps %xmm4, 128(%rsp)\nmovaps %xmm5, 144(%rsp)\nmovaps %xmm6, 160(%rsp)\nmovaps %xmm7, 176(%rsp)\n"
#define FIND "call sim_method_or_refuse@PLT\nmovq %rax, %r11\n"
#define BACK                                                                                          \
  "movq (%rsp), %rdi\nmovq 8(%rsp), %rsi\nmovq 16(%rsp), %rdx\nmovq 24(%rsp), %rcx\n"                 \
  "movq 32(%rsp), %r8\nmovq 40(%rsp), %r9\nmovq 48(%rsp), %rax\n"                                     \
  "movaps 64(%rsp), %xmm0\nmovaps 80(%rsp), %xmm1\nmovaps 96(%rsp), %xmm2\nmovaps 112(%rsp), %xmm3\n" \
  "movaps 128(%rsp), %xmm4\nmovaps 144(%rsp), %xmm5\nmovaps 160(%rsp), %xmm6\nmovaps 176(%rsp), %xmm7\n" \
  "leave\n.cfi_def_cfa %rsp, 8\n"
#define BEGIN(name) ".text\n.globl " name "\n.type " name ", @function\n" name ":\n.cfi_startproc\n"
#define END(name) ".cfi_endproc\n.size " name ", .-" name "\n"

// A message to nil gives 0; one that returns a structure gives its address back.
asm(BEGIN("objc_msgSend") "testq %rdi, %rdi\nje 1f\n" KEEP "movq (%rdi), %rdi\n" FIND BACK "jmp *%r11\n"
    "1: xorl %eax, %eax\nxorl %edx, %edx\npxor %xmm0, %xmm0\npxor %xmm1, %xmm1\nret\n" END("objc_msgSend"));
asm(BEGIN("objc_msgSend_stret") "testq %rsi, %rsi\nje 1f\n" KEEP
    "movq (%rsi), %rdi\nmovq %rdx, %rsi\n" FIND BACK "jmp *%r11\n"
    "1: movq %rdi, %rax\nret\n" END("objc_msgSend_stret"));
// The first argument is {object, class that sends}: its superclass answers.
asm(BEGIN("objc_msgSendSuper2") KEEP "movq 8(%rdi), %rdi\nmovq 8(%rdi), %rdi\n" FIND BACK
    "movq (%rdi), %rdi\njmp *%r11\n" END("objc_msgSendSuper2"));
#elif defined(__aarch64__) && defined(__APPLE__)
// Keep every register that may carry an argument, and where a structure is returned (x8).
#define KEEP                                                                                            \
  "stp x29, x30, [sp, #-16]!\n.cfi_def_cfa_offset 16\nmov x29, sp\n.cfi_def_cfa w29, 16\n"              \
  ".cfi_offset w30, -8\n.cfi_offset w29, -16\nsub sp, sp, #208\n"                                       \
  "stp x0, x1, [sp]\nstp x2, x3, [sp, #16]\nstp x4, x5, [sp, #32]\nstp x6, x7, [sp, #48]\n"             \
  "str x8, [sp, #64]\nstp q0, q1, [sp, #80]\nstp q2, q3, [sp, #112]\nstp q4, q5, [sp, #144]\n"          \
  "stp q6, q7, [sp, #176]\n"
#define FIND "bl _sim_method_or_refuse\nmov x16, x0\n"
#define BACK                                                                                            \
  "ldp x0, x1, [sp]\nldp x2, x3, [sp, #16]\nldp x4, x5, [sp, #32]\nldp x6, x7, [sp, #48]\n"             \
  "ldr x8, [sp, #64]\nldp q0, q1, [sp, #80]\nldp q2, q3, [sp, #112]\nldp q4, q5, [sp, #144]\n"          \
  "ldp q6, q7, [sp, #176]\nmov sp, x29\nldp x29, x30, [sp], #16\n"
#define BEGIN(name) ".text\n.p2align 2\n.globl _" name "\n_" name ":\n.cfi_startproc\n"
#define END ".cfi_endproc\n"

// A message to nil gives 0, in every register that may carry an answer.
asm(BEGIN("objc_msgSend") "cbz x0, 1f\n" KEEP "ldr x0, [x0]\n" FIND BACK "br x16\n"
    "1: mov x1, #0\nmovi d0, #0\nmovi d1, #0\nmovi d2, #0\nmovi d3, #0\nret\n" END);
// The first argument is {object, class that sends}: its superclass answers.
asm(BEGIN("objc_msgSendSuper2") KEEP "ldr x0, [x0, #8]\nldr x0, [x0, #8]\n" FIND BACK "ldr x0, [x0]\nbr x16\n" END);
#else
#error "messages are written for ELF on x86-64 and Mach-O on arm64"
#endif
