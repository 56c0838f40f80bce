#pragma once
// Whether two runs are of one machine and one build. Only then may their times form a speed-up.

#include <string>
#include <vector>

#include "spmmbench/result.hpp"

namespace spmmbench {

struct Difference {
  std::string field, one, other;  // the field as the document names it; "threads" on the CPU

  std::string text() const;  // "device.name differs: 'A' and 'B'"
};

// Every field of the machine and the build that differs. A value that one of the documents lacks
// (empty text or zero) is no difference. The GPUs of one run are one machine.
std::vector<Difference> differences_of_machine_and_build(const RunContext& a, const RunContext& b);

}  // namespace spmmbench
