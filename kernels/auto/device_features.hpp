#pragma once
// What src/select/features.hpp and row_overlap.hpp say of a matrix, where it lies on the device: a
// few kilobytes of counts come to the host. Rows are sampled as there; of what is sampled all
// columns are counted where the host counts a part, and the longest row is exact.

#include <optional>

#include "format/wcsr_estimate.hpp"
#include "select/features.hpp"
#include "spmmbench/device.hpp"
#include "spmmbench/device_csr.hpp"
#include "spmmbench/problem.hpp"
#include "spmmbench/stage_timer.hpp"

namespace spmmbench {

// As features_of, and row_overlap, for which at most 2^24 columns are read. Waits for the device
// once.
MatrixFeatures features_on_device(const DeviceCsr& a, Device& device);

// The same by one kernel, which tells the host: a third of the time. row_overlap is
// kUnknownRowOverlap.
MatrixFeatures features_at_a_glance(const DeviceCsr& a, Device& device);

// What windows gather in the row order that kernels look for, where one of them has made it on the
// device, so that a.orders, a SharedOrders, keeps it. Stages as those of Survey::order.
std::optional<WcsrEstimate> windows_in_known_order(const SparseOperand& a, Device& device,
                                                   StageTimer& stages);

}  // namespace spmmbench
