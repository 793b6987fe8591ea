/* The names of fmt that PyTorch's MPS files call, for syntax only (mps-build): used where a tree lacks third_party/fmt. */
#pragma once
#include <cstdio>
#include <string>
#include <string_view>
#include <utility>

namespace fmt {
template <typename... Arguments>
using format_string = std::string_view;
template <typename... Arguments>
std::string format(std::string_view text, Arguments&&... arguments);
template <typename... Arguments>
void print(std::string_view text, Arguments&&... arguments);
template <typename... Arguments>
void print(std::FILE* file, std::string_view text, Arguments&&... arguments);
template <typename... Arguments>
void println(std::string_view text, Arguments&&... arguments);
template <typename Output, typename... Arguments>
Output format_to(Output output, std::string_view text, Arguments&&... arguments);
template <typename Value>
std::string to_string(const Value& value);
template <typename Range>
const Range& join(const Range& range, std::string_view separator);
template <typename Iterator>
std::string join(Iterator begin, Iterator end, std::string_view separator);
inline std::string_view runtime(std::string_view text) {
  return text;
}
template <typename Value>
const void* ptr(Value value);
template <typename Value, typename Char = char, typename Enable = void>
struct formatter {};
} // namespace fmt
