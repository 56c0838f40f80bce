#pragma once
// What a kernel that runs one of several others (`auto`) says of its choice.

#include <string>
#include <utility>
#include <vector>

namespace spmmbench {

struct Pick {
  std::string kernel;  // that it runs, as Spec::to_string
  // The kernel of the first launch, if the plan went on preparing (Plan::prepares_next) and was
  // settled before it was timed. Empty if bind prepared everything.
  std::string first = {};
  // The kernels that were measured, in that order, and the time of a call in microseconds: with a
  // share of the preparation where a number of calls was given. Empty: the best prediction was
  // taken.
  std::vector<std::pair<std::string, double>> measured_us;
  bool remembered = false;  // the times were kept by another run (--cache)
  std::string why;          // the predictions, in one line for a reader

  bool measured() const { return !measured_us.empty(); }
};

// "async_wcsr 12.1 us, rsh 13.0 us (remembered)"; empty where nothing was measured.
std::string measured_text(const Pick& pick);

}  // namespace spmmbench
