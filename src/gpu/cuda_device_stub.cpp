// The functions of gpu/backend.hpp, gpu/nccl.hpp, gpu/peer_memory.hpp, gpu/rates.hpp,
// gpu/rows_of_b.hpp, gpu/scaled_launches.hpp, gpu/vendor_libraries.hpp and gpu/watcher.hpp in a
// build without CUDA.

#include "gpu/backend.hpp"
#include "gpu/nccl.hpp"
#include "gpu/ordered_device.hpp"
#include "gpu/peer_memory.hpp"
#include "gpu/rates.hpp"
#include "gpu/rows_of_b.hpp"
#include "gpu/scaled_launches.hpp"
#include "gpu/vendor_libraries.hpp"
#include "gpu/watcher.hpp"

namespace spmmbench {

CudaProbe probe_cuda() { return {{}, "built without CUDA"}; }

int current_cuda_device() { return 0; }

void name_libraries(DeviceInfo&) {}

void end_cuda_context(int) noexcept {}

std::unique_ptr<Device> open_cuda_device(int) { throw DeviceError("built without CUDA", false); }

std::unique_ptr<Device> open_cuda_device(int, const std::function<bool()>&) {
  throw DeviceError("built without CUDA", false);
}

std::unique_ptr<ReferenceChecker> make_cuda_reference(const CsrMatrix&,
                                                      std::span<const std::int32_t>,
                                                      const DenseView&, Device&, double,
                                                      std::shared_ptr<void>*) {
  throw DeviceError("built without CUDA", false);
}

std::vector<std::uint64_t> cuda_checksums(std::span<const ByteSpan>, Device&,
                                          const std::function<void()>&) {
  throw DeviceError("built without CUDA", false);
}

void cuda_write(std::span<const Piece>, Device&, double) {
  throw DeviceError("built without CUDA", false);
}

void cuda_copy(const void*, std::size_t, void*, Device&) {
  throw DeviceError("built without CUDA", false);
}

const unsigned char* cuda_read(std::span<const unsigned char* const>, Device&) {
  throw DeviceError("built without CUDA", false);
}

double cuda_time_beside_us(const std::function<void()>&, int, const std::function<void()>&,
                           Device&) {
  throw DeviceError("built without CUDA", false);
}

std::shared_ptr<Replay> cuda_record(const std::function<void()>&, int, GraphKind, Device&) {
  throw DeviceError("built without CUDA", false);
}

std::unique_ptr<Watcher> make_cuda_watcher(Device&) {
  throw DeviceError("built without CUDA", false);
}

void cuda_fill_rows(const DenseView&, const std::int32_t*, const ValuesOfB&, Device&) {
  throw DeviceError("built without CUDA", false);
}

void cuda_scale_add(const DenseView&, const DenseView&, const Scalars&, Stream) {
  throw DeviceError("built without CUDA", false);
}

double measure_gather(Device&) { throw DeviceError("built without CUDA", false); }
double measure_tensor_cores(Device&) { throw DeviceError("built without CUDA", false); }
double measure_dense(Device&) { throw DeviceError("built without CUDA", false); }

std::string why_no_nccl() { return "built without CUDA"; }
std::string new_nccl_id() { throw DeviceError("built without CUDA", false); }
std::unique_ptr<Transport> open_nccl(const std::string&, int, int, Device&) {
  throw DeviceError("built without CUDA", false);
}

std::unique_ptr<PeerMemory> open_cuda_peer_memory(Device&) {
  throw DeviceError("built without CUDA", false);
}
void cuda_meet(void*, std::size_t, int, int, Stream) {
  throw DeviceError("built without CUDA", false);
}

void profiler_start(const std::string&, const std::string&) {}
void profiler_stop() {}

}  // namespace spmmbench
