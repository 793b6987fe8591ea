// The other image: throws, and has a type and a thread variable that both use.
#include "shared.h"
#include <string>

thread_local int shared_thread_variable = 40;
Animal::~Animal() = default;
struct Cat final : Animal { int feet() const override { return 4; } };
static Cat cat;
Animal &some_animal() { return cat; }
void throw_from_there(int depth) {
    std::string kept(100, 'x');
    if (depth) throw_from_there(depth - 1);
    else throw OwnError("thrown there");
    if (kept.empty()) throw 1;
}
void call_back(void (*run)()) { run(); }
