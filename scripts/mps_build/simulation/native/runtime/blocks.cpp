// Blocks as the public block ABI has them: copied to the heap, with the variables that they share (__block).
#include "objects.h"
#include <cstdlib>
#include <cstring>

extern "C" void *_NSConcreteGlobalBlock[5], *_NSConcreteStackBlock[5], *_NSConcreteMallocBlock[5];
void *_NSConcreteGlobalBlock[5], *_NSConcreteStackBlock[5], *_NSConcreteMallocBlock[5];

namespace {
enum Flags { kCount = 0xfffe, kOnHeap = 1 << 24, kHasCopy = 1 << 25, kIsGlobal = 1 << 28 };
enum Field { kObject = 3, kBlock = 7, kShared = 8, kFieldMask = 0x1f };
struct Descriptor {
  unsigned long reserved, size;
  void (*copy)(void *to, const void *from);
  void (*dispose)(const void *block);
};
struct Block {
  void *isa;
  int flags, reserved;
  void (*invoke)(void *, ...);
  Descriptor *descriptor;
};
struct Shared {
  void *isa;
  Shared *forwarding;
  int flags, size;
  void (*keep)(void *to, void *from);
  void (*destroy)(void *);
};

bool is_last(int &flags) { return (__atomic_sub_fetch(&flags, 2, __ATOMIC_SEQ_CST) & kCount) == 0; }

Shared *on_heap(Shared *given) {
  auto *now = given->forwarding;
  if (now->flags & kOnHeap) {
    __atomic_add_fetch(&now->flags, 2, __ATOMIC_SEQ_CST);
    return now;
  }
  auto *copy = (Shared *)malloc(now->size);
  memcpy(copy, now, now->size);
  copy->flags = now->flags | kOnHeap | 4; // used by the block and by the function that made it
  copy->forwarding = now->forwarding = copy;
  if (now->flags & kHasCopy) copy->keep(copy, now);
  return copy;
}
} // namespace

extern "C" {
void *_Block_copy(const void *given) {
  auto *block = (Block *)given;
  if (!block || block->flags & kIsGlobal) return block;
  if (block->flags & kOnHeap) {
    __atomic_add_fetch(&block->flags, 2, __ATOMIC_SEQ_CST);
    return block;
  }
  auto *copy = (Block *)malloc(block->descriptor->size);
  memcpy(copy, block, block->descriptor->size);
  copy->flags = (block->flags & ~kCount) | kOnHeap | 2;
  copy->isa = _NSConcreteMallocBlock;
  if (copy->flags & kHasCopy) copy->descriptor->copy(copy, block);
  return copy;
}
void _Block_release(const void *given) {
  auto *block = (Block *)given;
  if (!block || !(block->flags & kOnHeap) || !is_last(block->flags)) return;
  if (block->flags & kHasCopy) block->descriptor->dispose(block);
  free(block);
}
void _Block_object_assign(void *to, const void *from, int flags) {
  auto *place = (void **)to;
  switch (flags & kFieldMask) {
    case kShared: *place = on_heap((Shared *)from); break;
    case kBlock: *place = _Block_copy(from); break;
    case kObject: *place = objc_retain((void *)from); break;
    default: *place = (void *)from;
  }
}
void _Block_object_dispose(const void *given, int flags) {
  switch (flags & kFieldMask) {
    case kShared: {
      auto *shared = ((Shared *)given)->forwarding;
      if (!(shared->flags & kOnHeap) || !is_last(shared->flags)) return;
      if (shared->flags & kHasCopy) shared->destroy(shared);
      free(shared);
      return;
    }
    case kBlock: return _Block_release(given);
    case kObject: return objc_release((void *)given);
  }
}
void sim_call_block(const void *block) { ((Block *)block)->invoke((void *)block); }
}
