#pragma once
// The devices of this machine. In a build without CUDA, cuda_device_stub.cpp defines the CUDA part.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/available_memory.hpp"
#include "core/word_hash.hpp"
#include "spmmbench/device.hpp"
#include "spmmbench/matrix.hpp"
#include "spmmbench/verdict.hpp"

namespace spmmbench {

struct CudaProbe {
  std::vector<DeviceInfo> devices;
  // Why there are none: "built without CUDA", "no CUDA driver", "no CUDA device".
  std::string reason;
};
CudaProbe probe_cuda();
int current_cuda_device();  // of the calling thread; 0 without a GPU

std::unique_ptr<Device> open_cuda_device(int index);  // throws DeviceError
// Frees all that this process has on the GPU, of which it has no Device.
void end_cuda_context(int index) noexcept;

// `left`: how much memory the host has left. The device allocates no more than that.
using HostMemory = std::size_t();
std::unique_ptr<Device> open_host_device(HostMemory* left = available_memory_bytes);

// `a` has values rounded to the precision; its row i is row row_ids[i] of C (empty: identity). The
// reference takes at most `memory_share` of the free memory, but at least a row. `copy` as in
// verify/reference.hpp.
inline constexpr double kReferenceShare = 0.25;
std::unique_ptr<ReferenceChecker> make_cuda_reference(const CsrMatrix& a,
                                                      std::span<const std::int32_t> row_ids,
                                                      const DenseView& b, Device& device,
                                                      double memory_share = kReferenceShare,
                                                      std::shared_ptr<void>* copy = nullptr);

// Enqueues that the shared memory of all multiprocessors is overwritten.
void cuda_clear_shared(Device& device);

// verify/reference.hpp
// `meanwhile` is called while the device computes them.
std::vector<std::uint64_t> cuda_checksums(
    std::span<const ByteSpan> memories, Device& device,
    const std::function<void()>& meanwhile = [] {});

inline constexpr std::size_t kPieceBytes = 128;
inline constexpr std::size_t kMostPieces = 16;  // of a launch, whose arguments have at most 4 KiB
// At most kPieceBytes bytes, and where in a device's memory they belong.
struct Piece {
  unsigned char* at;
  std::span<const unsigned char> bytes;
};
// Enqueues writing the pieces, one after the other. They are written `after_us` microseconds later
// at the earliest, and a kernel that starts before its predecessor has ended (programmatic
// dependent launch) starts before that.
void cuda_write(std::span<const Piece> pieces, Device& device, double after_us = 0);

// Enqueues reading what lies in a device's memory at some places, kPieceBytes from each on. Returns
// where it lies on the host when the stream is done, one behind the other, until the call after the
// next one in this thread.
const unsigned char* cuda_read(std::span<const unsigned char* const> places, Device& device);

// Enqueues copying from one place of a device's memory to another.
void cuda_copy(const void* from, std::size_t bytes, void* to, Device& device);

// Device::time_us. Calls `meanwhile` when all is enqueued: a GPU works on it at the same time,
// where the device is not one that passes its calls on.
double cuda_time_beside_us(const std::function<void()>& launch, int count,
                           const std::function<void()>& meanwhile, Device& device);

// Launches that were recorded as a CUDA graph.
class Replay {
 public:
  virtual ~Replay() = default;
  // Launches the first of them, and returns the time between the events around these, in
  // microseconds. `meanwhile` is called while they run.
  virtual double first(
      int launches, const std::function<void()>& meanwhile = [] {}) = 0;
  // Makes the graph that the next call of first(launches) launches. May be called while another
  // runs.
  virtual void make_ready(int launches) = 0;
};

// Records `count` launches as a CUDA graph. Null where they do something that a capture forbids.
//
// GraphKind::in_order: null too where a launch does not depend on all of the one before, or
// allocates memory. A launch cannot tell whether others follow it in the same graph, unless they
// begin before it has ended.
//
// GraphKind::apart: the same, and none begins before that.
enum class GraphKind { any, in_order, apart };
std::shared_ptr<Replay> cuda_record(const std::function<void()>& launch, int count, GraphKind kind,
                                    Device& device);

// NVTX range and profiler bracket of the one profiled launch; no-ops without CUDA.
void profiler_start(const std::string& range, const std::string& inner_range);
void profiler_stop();

}  // namespace spmmbench
