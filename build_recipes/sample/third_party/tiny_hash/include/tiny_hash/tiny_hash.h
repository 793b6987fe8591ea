#pragma once
#include <cstdint>
#include <string_view>

namespace tiny_hash {

/// FNV-1a of 64 bits.
std::uint64_t hash(std::string_view text);

}  // namespace tiny_hash
