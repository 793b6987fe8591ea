// What a crash report of the loader's says of us: it takes the signals itself.
#include "../runtime/crash.h"
#include "../runtime/objects.h"

namespace sim {
thread_local const char *current_command = nullptr;
} // namespace sim

extern "C" {
// The operator that this thread is in, and the command that the GPU's thread carries out; nullptr: none.
const char *sim_current_operator() { return sim::current_operator; }
const char *sim_current_command() { return sim::current_command; }
}
