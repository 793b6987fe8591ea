#include "tiny_hash/tiny_hash.h"

namespace tiny_hash {

std::uint64_t hash(std::string_view text) {
  std::uint64_t value = 0xcbf29ce484222325u;
  for (const char character : text) {
    value ^= static_cast<unsigned char>(character);
    value *= 0x100000001b3u;
  }
  return value;
}

}  // namespace tiny_hash
