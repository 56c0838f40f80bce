#pragma once
// The devices of this machine. In a build without CUDA, cuda_device_stub.cpp defines the CUDA part.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/available_memory.hpp"
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

// `left`: how much memory the host has left. The device allocates no more than that.
using HostMemory = std::size_t();
std::unique_ptr<Device> open_host_device(HostMemory* left = available_memory_bytes);

// `a` has values rounded to the precision; its row i is row row_ids[i] of C (empty: identity). The
// reference takes at most `memory_share` of the free memory, but at least a row.
std::unique_ptr<ReferenceChecker> make_cuda_reference(const CsrMatrix& a,
                                                      std::span<const std::int32_t> row_ids,
                                                      const DenseView& b, Device& device,
                                                      double memory_share = 0.25);

std::uint64_t cuda_checksum(const DenseView& view, Device& device);  // verify/reference.hpp

// At most 128 bytes, and where they belong in a device's memory.
struct Piece {
  unsigned char* at;
  std::span<const unsigned char> bytes;
};
// Enqueues writing the pieces, one after the other.
void cuda_write(std::span<const Piece> pieces, Device& device);

// NVTX range and profiler bracket of the one profiled launch; no-ops without CUDA.
void profiler_start(const std::string& range, const std::string& inner_range);
void profiler_stop();

}  // namespace spmmbench
