// What files for CUDA define, which this program does without.

#include "gpu/backend.hpp"
#include "gpu/scaled_launches.hpp"
#include "gpu/vendor_libraries.hpp"
#include "planted_kernels.hpp"

namespace spmmbench {

double measure_gather(Device&) { throw DeviceError("no gather rate", false); }
double measure_dense(Device&) { throw DeviceError("no dense rate", false); }
void name_libraries(DeviceInfo&) {}
std::shared_ptr<Replay> cuda_record(const std::function<void()>&, int, GraphKind, Device&) {
  return nullptr;
}
double cuda_time_beside_us(const std::function<void()>&, int, const std::function<void()>&,
                           Device&) {
  throw DeviceError("no GPU", false);
}
MatrixFeatures features_on_device(const DeviceCsr&, Device&) { throw DeviceError("no GPU", false); }
MatrixFeatures features_at_a_glance(const DeviceCsr&, Device&) { return glanced.value(); }
std::optional<WcsrEstimate> windows_in_known_order(const SparseOperand&, Device&, StageTimer&) {
  return known_windows;
}
void cuda_scale_add(const DenseView&, const DenseView&, const Scalars&, Stream) {}

}  // namespace spmmbench
