#pragma once
// A as kernels get it: its rows in some order, its values rounded to a precision. Holds the matrix
// as loaded and at most one more copy, and where values were loaded in fp64 these. While the rows
// keep their order, only the values are copied.

#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "select/kept_orders.hpp"
#include "spmmbench/matrix.hpp"
#include "spmmbench/precision.hpp"
#include "spmmbench/reordering.hpp"

namespace spmmbench {

class OperandA {
 public:
  explicit OperandA(CsrMatrix original)
      : original_(std::move(original)),
        loaded64_(std::exchange(original_.values64, {})),
        orders_(make_row_orders(original_, {"none", {}}, kept_order)) {}
  OperandA(const OperandA&) = delete;  // the orders point into it
  OperandA& operator=(const OperandA&) = delete;

  // Puts A in the order named by `reorder`, which is computed unless it is that of the last call,
  // and rounds its values. References from csr() and row_ids() become invalid. Throws what the
  // ordering throws; csr() is then the matrix as loaded. `binary`: every stored value is 1.
  void select(const Spec& reorder, Precision precision, bool binary = false);

  const CsrMatrix& csr() const { return reordered_ ? *reordered_ : original_; }
  std::span<const std::int32_t> row_ids() const;  // empty: the rows keep their order
  const StageTimer& reorder_stages() const { return reorder_stages_; }
  RowOrders& orders() { return reordered_ ? *orders_of_reordered_ : *orders_; }  // of csr()
  // The values were scaled by this power of two because some were too large or too small for the
  // precision. Scaling changes no timing and no relative error.
  int log2_scale() const { return log2_scale_; }
  std::int64_t rounded_to_zero() const { return rounded_to_zero_; }  // nonzeros that became 0
  std::int64_t not_finite() const { return not_finite_; }  // values that are NaN or infinite

 private:
  void restore();
  void select_fp64(const Spec& reorder, bool binary);

  CsrMatrix original_;
  std::vector<double> loaded64_;  // values in fp64; empty where they are those of fp32
  std::unique_ptr<RowOrders> orders_, orders_of_reordered_;
  std::vector<float> unrounded_;  // of original_, while its values are rounded
  std::optional<Spec> order_name_;
  const Permutation* order_ = nullptr;  // null or empty: as loaded
  std::optional<CsrMatrix> reordered_;
  StageTimer reorder_stages_;
  int log2_scale_ = 0;
  std::int64_t rounded_to_zero_ = 0;
  std::int64_t not_finite_ = 0;
};

}  // namespace spmmbench
