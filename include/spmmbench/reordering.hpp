#pragma once
// Row orderings: pure host code, deterministic for a seed whatever the thread count.

#include <cstdint>
#include <string>
#include <vector>

#include "spmmbench/matrix.hpp"
#include "spmmbench/spec.hpp"

namespace spmmbench {

// order[i] is the original row that stands at position i. A bijection on [0, rows).
using Permutation = std::vector<std::int32_t>;

class Reordering {
 public:
  virtual ~Reordering() = default;
  virtual std::string name() const = 0;
  virtual std::string summary() const = 0;  // one line, with the source
  virtual std::vector<OptionSpec> options() const { return {}; }
  virtual Permutation compute(const CsrMatrix& matrix, const Options& options) const = 0;
};

void validate_permutation(const Permutation& order, std::int64_t rows);  // throws Error
CsrMatrix permute_rows(const CsrMatrix& matrix, const Permutation& order);

}  // namespace spmmbench
