#include "run/operand_a.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "spmmbench/registry.hpp"
#include "stats/sampler.hpp"

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
    order_.clear();
    reorder_ms_ = 0;
    if (reorder.name != "none") {
      const double start = steady_seconds();
      order_ =
          Registry<Reordering>::instance().at(reorder.name).compute(original_, reorder.options);
      reorder_ms_ = (steady_seconds() - start) * 1e3;
    }
    order_name_ = reorder;
  }
  const int scale = scale_for(original_.values, precision);
  if (!row_ids().empty()) reordered_ = permute_rows(original_, order_);
  else if (precision != Precision::fp32) unrounded_ = original_.values;
  if (precision != Precision::fp32)
    round_values(reordered_ ? reordered_->values : original_.values, precision, scale);
  log2_scale_ = scale;
}

std::span<const std::int32_t> OperandA::row_ids() const { return order_; }

}  // namespace spmmbench
