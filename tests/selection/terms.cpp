// The amounts of work (src/select/estimate.hpp) that scripts/refit fits factors to.
// `spmmbench_selection_terms FOLDER` reads a folder like results/selection. It writes a line for
// every estimator,
//
//   estimator SPEC TABLE BOUNDS APART BY_SIZES ON_DEVICE NAME:UNIT:LEAST ... / NAME:UNIT:LEAST ...
//
// the amounts of a call and those of preparation with the least that their factors may be, and for
// every case and each estimator whose kernel ran, with its options or without,
//
//   CASE SPEC STANDING AMOUNT ... / AMOUNT ...

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <string>

#include "recorded.hpp"
#include "select/estimate.hpp"

namespace {

using namespace spmmbench;

std::string described(const std::vector<Amount>& amounts) {
  std::string text;
  for (const Amount& one : amounts) {
    std::string unit = one.unit;
    std::ranges::replace(unit, ' ', '_');
    text += fmt::format(" {}:{}:{}", one.name, unit, one.least_factor);
  }
  return text;
}

std::string values(const std::vector<Amount>& amounts, const Product& product) {
  std::string text;
  for (const Amount& one : amounts) text += fmt::format(" {:.9g}", one.of(product));
  return text;
}

const char* name_of(Standing standing) {
  switch (standing) {
    case Standing::left_out: return "left_out";
    case Standing::trial: return "trial";
    case Standing::full: return "full";
  }
  return "";
}

}  // namespace

int main(int count, char** arguments) try {
  if (count != 2) throw Error("expected a folder like results/selection");
  for (const auto& one : estimators())
    fmt::print("estimator {} {} {} {:d} {:d} {:d}{} /{}\n", one->spec, one->table,
               one->bounds.empty() ? "-" : fmt::format("{}", fmt::join(one->bounds, ",")),
               one->apart, one->by_sizes, one->on_device, described(one->us),
               described(one->prepare_ms));
  std::size_t index = 0;
  for (const recorded::Case& one : recorded::cases(arguments[1])) {
    const Product product = one.product();
    for (const auto& of : estimators()) {
      const std::string kernel = of->spec.substr(0, of->spec.find('?'));
      if (one.times.contains(of->spec) || one.times.contains(kernel))
        fmt::print("{} {} {}{} /{}\n", index, of->spec, name_of(of->standing_for(product)),
                   values(of->us, product), values(of->prepare_ms, product));
    }
    ++index;
  }
} catch (const std::exception& error) {
  fmt::print(stderr, "spmmbench_selection_terms: {}\n", error.what());
  return 1;
}
