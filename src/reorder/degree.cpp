#include <numeric>
#include <vector>

#include "core/row_lengths.hpp"
#include "spmmbench/registry.hpp"

namespace spmmbench::degree {
namespace {

class Degree final : public Reordering {
 public:
  std::string name() const override { return "degree"; }
  std::string summary() const override { return "longest rows first, equal ones as given"; }
  Permutation compute(const CsrMatrix& matrix, const Options& /*options*/) const override {
    // A counting sort. `next`: the place of the next row, by how much shorter it is than the
    // longest.
    const std::int64_t longest = longest_row(matrix);
    std::vector<std::int32_t> next(longest + 2);
    for (std::int64_t row = 0; row < matrix.rows; ++row)
      ++next[longest - matrix.row_length(row) + 1];
    std::partial_sum(next.begin(), next.end(), next.begin());
    Permutation order(matrix.rows);
    for (std::int64_t row = 0; row < matrix.rows; ++row)
      order[next[longest - matrix.row_length(row)]++] = static_cast<std::int32_t>(row);
    return order;
  }
};

SPMMBENCH_REGISTER_REORDERING(Degree);

}  // namespace
}  // namespace spmmbench::degree
