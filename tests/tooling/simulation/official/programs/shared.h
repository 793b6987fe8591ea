#pragma once
#include <stdexcept>
struct OwnError : std::runtime_error { using std::runtime_error::runtime_error; };
struct Animal { virtual ~Animal(); virtual int feet() const = 0; };
extern thread_local int shared_thread_variable;
Animal &some_animal();
void throw_from_there(int depth);
void call_back(void (*run)());
