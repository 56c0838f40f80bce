#include "run/operand_a.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "core/block_scales.hpp"
#include "core/greatest_magnitude.hpp"

namespace spmmbench {
namespace {

struct Examined {
  int log2_scale = 0;
  std::int64_t not_finite = 0;  // values that are NaN or infinite
};

// The power of two by which values are scaled. They are scaled so that the largest lies in [1, 2),
// where it is too large for sums of many products, or where it is below 1 and others are too small
// to be normal numbers. Where the precision has a scale of its own, a power of two only keeps that
// within a range whose products fp32 holds.
constexpr int kMostOfScale = 40;
template <class Value>
Examined examine(const std::vector<Value>& values, Precision precision) {
  const ElementType type = storage_type(precision);
  // 2^10 for fp16, which overflows at 2^16. 2^90 for the range of fp32, so that a sum of 2^31
  // products stays below 2^127; likewise 2^986 in fp64.
  const int most_of_sum = precision == Precision::fp64 ? 986 : 90;
  const double most =
      std::ldexp(1, std::min(std::ilogb(overflow_threshold(type)) - 5, most_of_sum));
  Value largest = 0;
  Value smallest = std::numeric_limits<Value>::infinity();  // of the values that are not zero
  std::int64_t not_finite = 0;
#pragma omp parallel for schedule(static) reduction(max : largest) reduction(min : smallest) \
    reduction(+ : not_finite)
  for (const Value value : values) {
    const Value magnitude = std::abs(value);
    not_finite += std::isfinite(value) ? 0 : 1;
    if (!std::isfinite(value) || magnitude == 0) continue;
    largest = std::max(largest, magnitude);
    smallest = std::min(smallest, magnitude);
  }
  const bool too_large = largest > most;
  const bool too_small = largest > 0 && largest < 1 && smallest < smallest_normal(type);
  const bool scales = is_scaled(precision)
                          ? largest > 0 && std::abs(std::ilogb(largest)) > kMostOfScale
                          : too_large || too_small;
  return {scales ? -std::ilogb(largest) : 0, not_finite};
}

// Divides by `scale` too. Returns how many values became zero.
template <class Value>
std::int64_t round_values(std::vector<Value>& values, Precision precision, int log2_scale,
                          float scale) {
  std::int64_t zeros = 0;
#pragma omp parallel for schedule(static) reduction(+ : zeros)
  for (Value& value : values) {
    const bool was_zero = value == 0;
    value = round_to(precision, std::ldexp(value, log2_scale) / scale);
    zeros += value == 0 && !was_zero ? 1 : 0;
  }
  return zeros;
}

// Gives blocks their scales, and divides by them. Returns the same.
std::int64_t round_in_blocks(CsrMatrix& a, Precision precision, int log2_scale) {
  for (float& value : a.values) value = std::ldexp(value, log2_scale);
  a.block_scales = block_scales_of(a, precision);
  std::int64_t zeros = 0;
#pragma omp parallel for schedule(dynamic, 1024) reduction(+ : zeros)
  for (std::int64_t row = 0; row < a.rows; ++row)
    for (std::int64_t e = a.row_ptr[row]; e < a.row_ptr[row + 1]; ++e) {
      const bool was_zero = a.values[e] == 0;
      a.values[e] = round_to(precision, a.values[e] / block_scale(a, row, a.col_idx[e]));
      zeros += a.values[e] == 0 && !was_zero ? 1 : 0;
    }
  return zeros;
}

}  // namespace

void OperandA::restore() {
  if (!unrounded_.empty()) original_.values = std::exchange(unrounded_, {});
  original_.values64 = {};
  original_.scale = 1;
  original_.block_scales = {};
  reordered_.reset();
  log2_scale_ = 0;
  rounded_to_zero_ = 0;
  not_finite_ = 0;
}

void OperandA::select(const Spec& reorder, Precision precision, bool binary) {
  restore();
  if (!order_name_ || order_name_->to_string() != reorder.to_string()) {
    order_name_.reset();
    order_ = nullptr;
    orders_of_reordered_.reset();
    reorder_stages_ = {};
    order_ = &orders_->get(reorder.to_string(), reorder_stages_);
    order_name_ = reorder;
  }
  if (binary)
    unrounded_ = std::exchange(original_.values, std::vector<float>(original_.values.size(), 1.0F));
  if (precision == Precision::fp64) return select_fp64(reorder, binary);
  const auto [scale, not_finite] = examine(original_.values, precision);
  not_finite_ = not_finite;
  if (!row_ids().empty()) {
    reordered_ = permute_rows(original_, *order_);
    if (!orders_of_reordered_)
      orders_of_reordered_ = make_row_orders(*reordered_, reorder, kept_order);
  }
  if (precision != Precision::fp32 || scale != 0) {
    if (!reordered_ && !binary) unrounded_ = original_.values;
    CsrMatrix& rounded = reordered_ ? *reordered_ : original_;
    if (has_block_scales(precision)) {
      rounded_to_zero_ = round_in_blocks(rounded, precision, scale);
    } else {
      rounded.scale = scale_of(precision, std::ldexp(greatest_magnitude(rounded.values), scale));
      rounded_to_zero_ = round_values(rounded.values, precision, scale, rounded.scale);
    }
  }
  log2_scale_ = scale;
}

void OperandA::select_fp64(const Spec& reorder, bool binary) {
  if (binary || loaded64_.empty())
    original_.values64.assign(original_.values.begin(), original_.values.end());
  else original_.values64 = loaded64_;
  const Examined seen = examine(original_.values64, Precision::fp64);
  log2_scale_ = seen.log2_scale;
  not_finite_ = seen.not_finite;
  if (log2_scale_ != 0)
    rounded_to_zero_ = round_values(original_.values64, Precision::fp64, log2_scale_, 1);
  if (row_ids().empty()) return;
  reordered_ = permute_rows(original_, *order_);
  if (!orders_of_reordered_)
    orders_of_reordered_ = make_row_orders(*reordered_, reorder, kept_order);
}

std::span<const std::int32_t> OperandA::row_ids() const {
  if (order_ == nullptr) return {};
  return *order_;
}

}  // namespace spmmbench
