#include "spmmbench/pick.hpp"

#include <fmt/format.h>

namespace spmmbench {

std::string measured_text(const Pick& pick) {
  std::string text;
  for (const auto& [kernel, us] : pick.measured_us)
    text += fmt::format("{}{} {:.1f} us", text.empty() ? "" : ", ", kernel, us);
  return pick.remembered && pick.measured() ? text + " (remembered)" : text;
}

}  // namespace spmmbench
