// C++ through frames and images: exceptions, types, thread variables, static objects. Each `check_` returns 0, or a line.
#include "shared.h"
#include <atomic>
#include <condition_variable>
#include <cstring>
#include <fstream>
#include <future>
#include <iomanip>
#include <iostream>
#include <locale>
#include <mutex>
#include <sstream>
#include <string>
#include <thread>
#include <typeinfo>
#include <vector>

#define EXPECT(what) do { if (!(what)) return __LINE__; } while (0)

static int destroyed;
struct Counted { ~Counted() { destroyed++; } };
struct Early { int value; Early() : value(std::string("static").size()) {} };
static Early early;

__attribute__((noinline)) static void deep(int depth) {
    Counted counted;
    if (!depth) throw std::out_of_range("deep");
    deep(depth - 1);
    if (destroyed < 0) std::cout << depth;
}

extern "C" int check_static_objects() { EXPECT(early.value == 6); return 0; }

extern "C" int check_exceptions() {
    destroyed = 0;
    try { deep(9); return __LINE__; } catch (const std::logic_error &error) { EXPECT(!std::strcmp(error.what(), "deep")); }
    EXPECT(destroyed == 10);
    try { throw_from_there(5); return __LINE__; } catch (const OwnError &error) { EXPECT(!std::strcmp(error.what(), "thrown there")); }
    try { call_back([] { throw 42; }); return __LINE__; } catch (int number) { EXPECT(number == 42); }
    std::exception_ptr kept;
    try { throw_from_there(0); } catch (...) { kept = std::current_exception(); }
    try { std::rethrow_exception(kept); } catch (const std::runtime_error &) { return 0; }
    return __LINE__;
}

// A function of macOS that cannot be had raises its name and its library, through the frame that called it.
extern "C" int kqueue(void);
extern "C" int check_stubs() {
    destroyed = 0;
    try { Counted counted; return kqueue() + __LINE__; } catch (const std::runtime_error &error) {
        EXPECT(std::strstr(error.what(), "calls kqueue of /usr/lib/libSystem.B.dylib") && std::strstr(error.what(), "libcplusplus"));
    }
    EXPECT(destroyed == 1);
    return 0;
}

extern "C" int check_types() {
    struct Dog final : Animal { int feet() const override { return 3; } } dog;
    Animal *animals[] = {&dog, &some_animal()};
    EXPECT(dynamic_cast<Dog *>(animals[0]) && !dynamic_cast<Dog *>(animals[1]) && animals[1]->feet() == 4);
    EXPECT(typeid(*animals[0]) != typeid(*animals[1]));
    return 0;
}

struct Ended { bool *flag; ~Ended() { *flag = true; } };

extern "C" int check_thread_variables() {
    bool ended = false;
    int there = 0;
    shared_thread_variable = 41;
    std::thread([&] { thread_local Ended last{&ended}; (void)last; there = shared_thread_variable; }).join();
    EXPECT(there == 40 && shared_thread_variable == 41 && ended);
    return 0;
}

extern "C" int check_threads_of_cplusplus() {
    std::mutex mutex;
    std::condition_variable arrived;
    std::atomic<int> waiting{0};
    int total = 0;
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; i++)
        threads.emplace_back([&, i] { std::lock_guard<std::mutex> lock(mutex); total += i; arrived.notify_all(); });
    { std::unique_lock<std::mutex> lock(mutex); arrived.wait(lock, [&] { return total == 6; }); }
    for (auto &thread : threads) thread.join();
    std::thread waiter([&] { waiting.wait(0); });
    waiting = 1, waiting.notify_all();
    waiter.join();
    EXPECT(std::async(std::launch::async, [] { return 5; }).get() == 5);
    try { std::async(std::launch::async, []() -> int { throw OwnError("later"); }).get(); return __LINE__; } catch (const OwnError &) {}
    return 0;
}

extern "C" int check_streams() {
    std::ostringstream out;
    out << std::setprecision(3) << 3.14159 << ' ' << 42 << ' ' << std::hex << 255 << ' ' << 1.5L << ' ' << true;
    EXPECT(out.str() == "3.14 42 ff 1.5 1");
    std::istringstream in("7 2.5 word");
    int number; long double real; std::string word;
    EXPECT((in >> number >> real >> word) && number == 7 && real == 2.5L && word == "word");
    EXPECT(std::stod("1e3") == 1000 && std::to_string(12) == "12" && std::isalpha('x', std::locale::classic()));
    std::ofstream("/tmp/official-stream") << "line";
    std::string line;
    std::ifstream file("/tmp/official-stream");
    EXPECT(std::getline(file, line) && line == "line");
    std::cout << "" << std::flush;
    return 0;
}
