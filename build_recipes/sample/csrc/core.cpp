#include "mps_build_sample/core.h"

#include <string>
#include <string_view>
#include <vector>

#include "tiny_hash/tiny_hash.h"

namespace {

struct Operator {
  std::string name;
  double (*function)(double);
};

const std::vector<Operator>& operators() {
  static const std::vector<Operator> table = {
#include "operators.inc"
  };
  return table;
}

}  // namespace

size_t sample_operator_count(void) {
  return operators().size();
}

const char* sample_operator_name(size_t index) {
  return index < operators().size() ? operators()[index].name.c_str() : nullptr;
}

int sample_apply(const char* name, double* values, size_t count) {
  for (const Operator& candidate : operators()) {
    if (candidate.name != std::string_view(name)) {
      continue;
    }
    for (size_t index = 0; index < count; ++index) {
      values[index] = candidate.function(values[index]);
    }
    return 0;
  }
  return -1;
}

uint64_t sample_fingerprint(void) {
  std::string joined;
  for (const Operator& each : operators()) {
    joined += each.name + "\n";
  }
  return tiny_hash::hash(joined);
}

#ifndef USE_MPS
int sample_mps_built(void) {
  return 0;
}

const char* sample_scale_on_gpu(float*, size_t, float) {
  return "this library was built without MPS";
}
#endif
