#pragma once
// Row orderings. They run on the host, and their result does not depend on the number of threads.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
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
  // Throws Error for values that are allowed alone but not together.
  virtual void check(const Options& /*options*/) const {}
  // `options` were checked. `matrix` may be empty, and need not be square.
  virtual Permutation compute(const CsrMatrix& matrix, const Options& options) const = 0;
};

// Whether `text` names a reordering. Throws Error for one whose options it does not allow.
bool names_reordering(const std::string& text);

// Each value against its declaration, then Reordering::check.
void check_options(const Reordering& reordering, const Options& options);  // throws Error

// The row orders of one matrix. Each is computed once and shared by all kernels.
class RowOrders {
 public:
  virtual ~RowOrders() = default;
  // `spec` names a reordering with its options. For "natural", and for the order that the matrix is
  // in, the permutation is empty. The time of the computation is added to the stage
  // "reorder", once for each order. Throws Error for an unknown name. The permutation lives as long
  // as this object.
  virtual const Permutation& get(const std::string& spec, StageTimer& stages) = 0;
};

inline constexpr const char* kReorderStage = "reorder";  // what computing a row order takes

// Gives a row order of the matrix, and adds what computing it takes to kReorderStage.
using OrderSource =
    std::function<Permutation(const CsrMatrix& matrix, const Spec& order, StageTimer& cost)>;
Permutation compute_order(const CsrMatrix& matrix, const Spec& order, StageTimer& cost);

// The orders of `matrix`, whose rows are in the order `current`. The matrix outlives them,
// and its structure does not change.
std::unique_ptr<RowOrders> make_row_orders(HostCsr matrix, const Spec& current,
                                           OrderSource source = compute_order);
inline std::unique_ptr<RowOrders> make_row_orders(const CsrMatrix& matrix, const Spec& current,
                                                  OrderSource source = compute_order) {
  return make_row_orders(HostCsr(&matrix), current, std::move(source));
}

void validate_permutation(const Permutation& order, std::int64_t rows);  // throws Error
// Row i of the result is row order[i] of `matrix`.
CsrMatrix permute_rows(const CsrMatrix& matrix, const Permutation& order);

}  // namespace spmmbench
