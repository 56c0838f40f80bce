#pragma once
// The scalars of C = alpha * A * B + beta * C, and plans that take them.

#include <algorithm>

#include "spmmbench/device.hpp"
#include "spmmbench/kernel.hpp"
#include "spmmbench/precision.hpp"

namespace spmmbench {

struct Scalars {
  double alpha = 1, beta = 0;  // C is not read where beta is 0

  // C = A * B, which every launch computes.
  constexpr bool plain() const { return alpha == 1 && beta == 0; }
  constexpr bool operator==(const Scalars&) const = default;
};

// As they are multiplied: in fp64 for that precision, else rounded to fp32.
constexpr Scalars rounded(const Scalars& scalars, Precision precision) {
  if (precision == Precision::fp64) return scalars;
  return {static_cast<float>(scalars.alpha), static_cast<float>(scalars.beta)};
}

// A second base class of the plans of kernels that multiply by the scalars themselves. The flags of
// such a kernel contain kTakesScalars. A launch of any other kernel is followed by one that adds
// (gpu/scaled_launches.hpp).
class ScalingPlan {
 public:
  virtual ~ScalingPlan() = default;

  // As Plan::launch, of C = alpha * A * B + beta * C. The scalars are `rounded`.
  virtual void launch_scaled(const DenseView& b, const DenseView& c, const Scalars& scalars,
                             Stream stream) = 0;
};

inline constexpr const char* kTakesScalars = "takes_scalars";

inline bool takes_scalars(const KernelInfo& info) {
  return std::find(info.flags.begin(), info.flags.end(), kTakesScalars) != info.flags.end();
}

}  // namespace spmmbench
