#pragma once
// Whether two runs are of one machine and one build. Only then may a speed-up be between their
// times.

#include <string>
#include <vector>

#include "spmmbench/result.hpp"

namespace spmmbench {

struct Difference {
  std::string field, one, other;  // the field as the document names it; "threads" on the CPU

  std::string text() const;  // "device.name differs: 'A' and 'B'"
};

// Every field of the machine and the build that differs. What one of the documents does not know
// (empty text or zero) is no difference. The GPUs of one run are one machine.
std::vector<Difference> differences_of_machine_and_build(const RunContext& a, const RunContext& b);

}  // namespace spmmbench
