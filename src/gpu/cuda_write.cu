// A few bytes at several places of a CUDA device's memory: written in one launch that nothing waits
// for, whose arguments they are, or read. And many bytes at one place, copied to another.

#include <cuda_runtime.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cuda/std/chrono>
#include <memory>
#include <vector>

#include "gpu/backend.hpp"
#include "gpu/cuda_check.hpp"

namespace spmmbench {
namespace {

struct Bytes {
  unsigned char* at = nullptr;
  unsigned count = 0;
  std::array<unsigned char, kPieceBytes> bytes{};
};

struct Pieces {
  unsigned count = 0;
  std::array<Bytes, kMostPieces> all{};
};

__device__ std::int64_t now_ns() {
  return cuda::std::chrono::duration_cast<cuda::std::chrono::nanoseconds>(
             cuda::std::chrono::system_clock::now().time_since_epoch())
      .count();
}

__global__ void __launch_bounds__(kPieceBytes)
    write_pieces_kernel(const __grid_constant__ Pieces pieces, std::int64_t after_ns) {
#if __CUDA_ARCH__ >= 900
  cudaTriggerProgrammaticLaunchCompletion();
#endif
  const std::int64_t start = now_ns();
  while (now_ns() - start < after_ns) {
  }
  for (unsigned i = 0; i < pieces.count; ++i) {
    const Bytes& piece = pieces.all[i];
    if (threadIdx.x < piece.count) piece.at[threadIdx.x] = piece.bytes[threadIdx.x];
    __syncthreads();  // pieces may overlap, and the last one counts
  }
}

struct Places {
  std::array<const unsigned char*, kMostPieces> at{};
};

// One block for each place.
__global__ void __launch_bounds__(kPieceBytes)
    read_pieces_kernel(const __grid_constant__ Places places, unsigned char* to) {
  to[blockIdx.x * kPieceBytes + threadIdx.x] = places.at[blockIdx.x][threadIdx.x];
}

// Memory of the host to which a kernel writes.
std::shared_ptr<unsigned char> host_memory(std::size_t bytes) {
  void* made = nullptr;
  SPMMBENCH_CUDA(cudaHostAlloc(&made, bytes, cudaHostAllocMapped | cudaHostAllocPortable));
  return {static_cast<unsigned char*>(made),
          [](unsigned char* memory) { SPMMBENCH_CUDA_NOEXCEPT(cudaFreeHost(memory)); }};
}

}  // namespace

void cuda_write(std::span<const Piece> pieces, Device& device, double after_us) {
  while (!pieces.empty()) {
    const std::span<const Piece> now = pieces.first(std::min(pieces.size(), kMostPieces));
    Pieces launched;
    for (const Piece& piece : now) {
      Bytes& bytes = launched.all[launched.count++];
      bytes.at = piece.at;
      bytes.count = static_cast<unsigned>(piece.bytes.size());
      std::ranges::copy(piece.bytes, bytes.bytes.begin());
    }
    write_pieces_kernel<<<1, kPieceBytes, 0, static_cast<cudaStream_t>(device.stream().handle)>>>(
        launched, static_cast<std::int64_t>(after_us * 1e3));
    after_us = 0;
    SPMMBENCH_CUDA_LAUNCHED();
    pieces = pieces.subspan(now.size());
  }
}

void cuda_copy(const void* from, std::size_t bytes, void* to, Device& device) {
  SPMMBENCH_CUDA(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice,
                                 static_cast<cudaStream_t>(device.stream().handle)));
}

const unsigned char* cuda_read(std::span<const unsigned char* const> places, Device& device) {
  thread_local std::size_t room = 0;
  thread_local std::shared_ptr<unsigned char> scratch;
  if (const std::size_t wanted = std::max(places.size(), kMostPieces); wanted > room) {
    scratch = host_memory(wanted * kPieceBytes);
    room = wanted;
  }
  for (std::size_t first = 0; first < places.size(); first += kMostPieces) {
    const auto now = places.subspan(first, std::min(kMostPieces, places.size() - first));
    Places launched;
    std::ranges::copy(now, launched.at.begin());
    read_pieces_kernel<<<static_cast<unsigned>(now.size()), kPieceBytes, 0,
                         static_cast<cudaStream_t>(device.stream().handle)>>>(
        launched, scratch.get() + first * kPieceBytes);
    SPMMBENCH_CUDA_LAUNCHED();
  }
  return scratch.get();
}

}  // namespace spmmbench
