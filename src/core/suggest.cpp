#include "spmmbench/suggest.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace spmmbench {
namespace {

// Optimal string alignment: insertions, deletions, replacements and swaps of neighbours.
std::size_t edits(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1), last(b.size() + 1), now(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    now[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      now[j] =
          std::min({last[j] + 1, now[j - 1] + 1, last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        now[j] = std::min(now[j], before[j - 2] + 1);
    }
    before = last;
    last = now;
  }
  return last[b.size()];
}

// How many letters a name has, without the dashes before the name of an option.
std::size_t letters(std::string_view name) {
  const std::size_t first = name.find_first_not_of('-');
  return first == std::string_view::npos ? 0 : name.size() - first;
}

}  // namespace

std::string closest(std::string_view typed, const std::vector<std::string>& known) {
  std::string best;
  std::size_t fewest = 0;
  for (const std::string& name : known) {
    const std::size_t count = edits(typed, name);
    if (best.empty() || count < fewest) {
      best = name;
      fewest = count;
    }
  }
  // With one of two letters wrong it is still a typing error; with three of three it is another
  // word.
  const std::size_t most = std::max<std::size_t>(std::max(letters(typed), letters(best)) / 3, 1);
  return fewest <= most ? best : std::string();
}

std::string did_you_mean(std::string_view typed, const std::vector<std::string>& known) {
  const std::string best = closest(typed, known);
  return best.empty() ? std::string() : fmt::format(" (did you mean '{}'?)", best);
}

}  // namespace spmmbench
