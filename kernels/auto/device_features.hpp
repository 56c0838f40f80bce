#pragma once
// What src/select/features.hpp and row_overlap.hpp say of a matrix, where it lies on the device: a
// few kilobytes of counts come to the host. Rows are sampled as there; of what is sampled all
// columns are counted where the host counts a part, and the longest row is exact.

#include "select/features.hpp"
#include "spmmbench/device.hpp"
#include "spmmbench/problem.hpp"

namespace spmmbench {

// Of a.on_device, as features_of.
MatrixFeatures features_on_device(const SparseOperand& a, Device& device);
// As row_overlap. Reads at most 2^24 columns.
double row_overlap_on_device(const DeviceCsr& a, Device& device);

}  // namespace spmmbench
