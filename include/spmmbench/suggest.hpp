#pragma once
// "did you mean": the known name that a mistyped one is closest to.

#include <string>
#include <string_view>
#include <vector>

namespace spmmbench {

// Empty when nothing is close: more than a third of the letters would have to change.
std::string closest(std::string_view typed, const std::vector<std::string>& known);
// " (did you mean 'run'?)", or nothing.
std::string did_you_mean(std::string_view typed, const std::vector<std::string>& known);

}  // namespace spmmbench
