#include "run/load_operands.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "run/given_b.hpp"
#include "spmmbench/error.hpp"

namespace spmmbench {

LoadedInput load_operands(const std::string& input, const Cases& cases,
                          const std::vector<PrecisionGroup>& groups) {
  LoadOptions options = cases.load;
  options.fp64 = std::ranges::any_of(
      groups, [](const PrecisionGroup& group) { return group.precision == Precision::fp64; });
  LoadedInput loaded = load_input(input, options);
  if (!cases.b_file.empty()) {
    LoadOptions b_options = options;
    b_options.dims = cases.b_dims;
    b_options.prune.clear();
    loaded.b = load_dense(cases.b_file, b_options);
  }
  if (options.fp64 && loaded.b && loaded.b->values64.empty())
    loaded.b->values64.assign(loaded.b->values.begin(), loaded.b->values.end());
  if (loaded.b && loaded.b->rows != loaded.a.csr.cols)
    throw Error(
        fmt::format("{}: A is {} x {} but B is {} x {}: expected as many rows of B as columns of A",
                    input, loaded.a.csr.rows, loaded.a.csr.cols, loaded.b->rows, loaded.b->cols));
  if (const auto& sizes = cases.b_dims; sizes && loaded.b) {
    const std::int64_t rows = cases.load.dims->first;
    if (loaded.a.csr.rows != rows || loaded.b->rows != sizes->first ||
        loaded.b->cols != sizes->second)
      throw Error(fmt::format("{}: A is {} x {} and B is {} x {}: expected --dims {} {} {}", input,
                              loaded.a.csr.rows, loaded.a.csr.cols, loaded.b->rows, loaded.b->cols,
                              rows, sizes->first, sizes->second));
  }
  if (loaded.b && loaded.b->cols == 0)
    throw Error(
        fmt::format("{}: B is {} x 0: expected at least one column", input, loaded.b->rows));
  if (loaded.b) expect_finite(*loaded.b, cases.b_file.empty() ? input : cases.b_file, groups);
  return loaded;
}

}  // namespace spmmbench
