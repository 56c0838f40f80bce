// The functions of device_features.hpp in a build without CUDA, which has no device to look at.

#include "auto/device_features.hpp"
#include "spmmbench/error.hpp"

namespace spmmbench {

MatrixFeatures features_on_device(const DeviceCsr&, Device&) {
  throw Unsupported("built without CUDA");
}
MatrixFeatures features_at_a_glance(const DeviceCsr&, Device&) {
  throw Unsupported("built without CUDA");
}
std::optional<WcsrEstimate> windows_in_known_order(const SparseOperand&, Device&, StageTimer&) {
  return std::nullopt;
}

}  // namespace spmmbench
