#include "run/operand_a.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace spmmbench {
namespace {

int scale_for(const std::vector<float>& values, Precision precision) {
  if (precision != Precision::fp16) return 0;
  float largest = 0;
  for (const float value : values)
    if (std::isfinite(value)) largest = std::max(largest, std::abs(value));
  constexpr float kLargestUnscaled = 1024;  // leaves a row of products far below 65504
  return largest > kLargestUnscaled ? -std::ilogb(largest) : 0;
}

void round_values(std::vector<float>& values, Precision precision, int log2_scale) {
  for (float& value : values) value = round_to(precision, std::ldexp(value, log2_scale));
}

}  // namespace

void OperandA::restore() {
  if (!unrounded_.empty()) original_.values = std::exchange(unrounded_, {});
  reordered_.reset();
  log2_scale_ = 0;
}

void OperandA::select(const Spec& reorder, Precision precision) {
  restore();
  if (!order_name_ || order_name_->to_string() != reorder.to_string()) {
    order_name_.reset();
    order_ = nullptr;
    orders_of_reordered_.reset();
    StageTimer stages;
    order_ = &orders_->get(reorder.to_string(), stages);
    const auto taken = stages.stages_ms().find("reorder");
    reorder_ms_ = taken == stages.stages_ms().end() ? 0 : taken->second;
    order_name_ = reorder;
  }
  const int scale = scale_for(original_.values, precision);
  if (!row_ids().empty()) {
    reordered_ = permute_rows(original_, *order_);
    if (!orders_of_reordered_) orders_of_reordered_ = make_row_orders(*reordered_, reorder);
  }
  if (!reordered_ && precision != Precision::fp32) unrounded_ = original_.values;
  if (precision != Precision::fp32)
    round_values(reordered_ ? reordered_->values : original_.values, precision, scale);
  log2_scale_ = scale;
}

std::span<const std::int32_t> OperandA::row_ids() const {
  if (order_ == nullptr) return {};
  return *order_;
}

}  // namespace spmmbench
