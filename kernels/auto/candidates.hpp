#pragma once
// Which kernels `auto` may run for a matrix and a shape, and what it says of them.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "select/rank.hpp"
#include "spmmbench/kernel.hpp"

namespace spmmbench {

struct Choice {
  const Kernel* kernel = nullptr;
  Spec spec;
  std::size_t device_bytes = 0;  // predicted
};

// Whether this program was built with a kernel, and it takes the layout.
std::function<bool(std::string_view spec)> takes(Layout layout);

// The share of columns that neighbouring rows have in common (select/row_overlap.hpp), below 1:
// a ranking reads 1 as not asked for.
double row_overlap_of(const CsrMatrix& a);
// Where A lies on the device alone it is looked at there, and their row_overlap is known, too.
MatrixFeatures features_of(const SparseOperand& a, Device& device);

// Empty if this program was built without the kernel, or if the kernel does not support the
// problem; `refusal` then says why.
std::optional<Choice> supported(const Candidate& candidate, const SparseOperand& a,
                                const Shape& shape, const DeviceInfo& device, std::string& refusal);

// The best candidate that supports the problem, with its place among `all`. `refusal` is the reason
// of the last one that does not.
std::optional<std::pair<Choice, std::size_t>> best_of(const std::vector<Candidate>& all,
                                                      const SparseOperand& a, const Shape& shape,
                                                      const DeviceInfo& device,
                                                      std::string& refusal);

// Whether one of them is estimated anew once a row order is known.
bool any_takes_order(std::span<const Candidate> candidates);

// What was compared. The text is made when a report asks for it: choosing itself has to be fast.
struct Why {
  Ranking ranking;
  std::vector<Candidate> ranked;
  std::string refusal;

  // The features that decide most, and the best estimates in the order of their ranks.
  std::string text() const;
};

}  // namespace spmmbench
