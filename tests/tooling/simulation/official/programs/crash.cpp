// Ends its process below an operator and a method, as PyTorch and the software Metal name theirs.
#include <cstdlib>
#include <stdexcept>

extern "C" {
// The software Metal's: the operator that this thread is in, and what the GPU's thread carries out.
const char *sim_current_operator() { return "aten::relu"; }
const char *sim_current_command() { return "kernel doubled"; }
__attribute__((noinline)) int fill(volatile int *at) __asm__("-[SimEncoder fill:]");
int fill(volatile int *at) { return *at = 1; }
}

namespace at::_ops {
struct add_Tensor {
    static int call(volatile int *at);
};
__attribute__((noinline)) int add_Tensor::call(volatile int *at) { return fill(at) + 1; }
}

extern "C" int end_by_a_store() { return at::_ops::add_Tensor::call(nullptr) + 1; }
extern "C" int end_by_abort() { abort(); }
extern "C" int end_by_an_error() noexcept { throw std::runtime_error("software Metal: there is no -[SimEncoder empty]"); }
