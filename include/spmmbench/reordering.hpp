#pragma once
// Row orderings: pure host code, deterministic for a seed whatever the thread count.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "spmmbench/matrix.hpp"
#include "spmmbench/option.hpp"
#include "spmmbench/stage_timer.hpp"

namespace spmmbench {

// order[i] is the original row that stands at position i. A bijection on [0, rows).
using Permutation = std::vector<std::int32_t>;

class Reordering {
 public:
  virtual ~Reordering() = default;
  virtual std::string name() const = 0;
  virtual std::string summary() const = 0;  // one line, with the source
  virtual std::vector<OptionSpec> options() const { return {}; }
  // Throws Error for values that are allowed alone and not together.
  virtual void check(const Options& /*options*/) const {}
  virtual Permutation compute(const CsrMatrix& matrix, const Options& options) const = 0;
};

// Each value against its declaration, then Reordering::check.
void check_options(const Reordering& reordering, const Options& options);  // throws Error

// The orders of one matrix's rows: each is computed once, whoever asks for it.
class RowOrders {
 public:
  virtual ~RowOrders() = default;
  // `spec` names a reordering with its options, or is "natural" or the order that the matrix is in
  // already: the permutation is then empty. What computing it took is added to the stage "reorder"
  // at every call. Throws Error for an unknown name. The permutation lives as long as this.
  virtual const Permutation& get(const std::string& spec, StageTimer& stages) = 0;
};

// Of `matrix`, whose rows are in the order `current`. The matrix outlives it and keeps its
// structure.
std::unique_ptr<RowOrders> make_row_orders(const CsrMatrix& matrix, const Spec& current);

void validate_permutation(const Permutation& order, std::int64_t rows);  // throws Error
CsrMatrix permute_rows(const CsrMatrix& matrix, const Permutation& order);

}  // namespace spmmbench
