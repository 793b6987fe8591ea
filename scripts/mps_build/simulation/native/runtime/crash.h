// What the GPU's thread does now, for the words of a crash.
#pragma once
namespace sim {
// The command that it carries out; nullptr between commands.
extern thread_local const char *current_command;
// Whether a kernel runs: its faults are for whoever took the signals before (elf/ alone).
extern thread_local bool is_kernel;
// Takes the signals of crashes, from the loading of the library on; again after somebody else took them.
void watch_for_crashes();
} // namespace sim
