#pragma once
// C = alpha * A * B + beta * C by the plan of any kernel.

#include <cstddef>

#include "spmmbench/device.hpp"
#include "spmmbench/kernel.hpp"
#include "spmmbench/scalars.hpp"

namespace spmmbench {

// Bytes on the device that launches with these scalars need besides what the kernel predicts: none
// where it takes them, and where they are plain.
std::size_t scaling_bytes(const KernelInfo& kernel, const Scalars& scalars, const DenseView& c);

// Launches a plan. One of a kernel that takes no scalars writes its product into memory of this
// object, in C's type, and a second launch makes C of both. The product is rounded to C's type
// before it is scaled.
class ScaledLaunches {
 public:
  // All arguments outlive this object.
  ScaledLaunches(Plan& plan, const KernelInfo& kernel, Device& device);

  // With plain scalars it launches the plan as it is. Otherwise the first launch may allocate
  // memory, and wait.
  void launch(const DenseView& b, const DenseView& c, const Scalars& scalars, Stream stream);

  std::size_t device_bytes() const { return product_.bytes(); }

 private:
  Plan& plan_;
  ScalingPlan* const scaling_;  // null: the plan takes no scalars
  const KernelInfo& kernel_;
  Device& device_;
  Buffer product_;
};

// Enqueues C = alpha * product + beta * C, for a product of C's shape, type and ld on a GPU. What
// lies between the lines of C may be overwritten.
void cuda_scale_add(const DenseView& product, const DenseView& c, const Scalars& scalars,
                    Stream stream);

}  // namespace spmmbench
