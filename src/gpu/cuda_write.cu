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

template <std::size_t kMost>
struct Places {
  std::array<const unsigned char*, kMost> at{};
};

// One block for each place.
template <std::size_t kMost>
__global__ void __launch_bounds__(kPieceBytes)
    read_pieces_kernel(const __grid_constant__ Places<kMost> places, unsigned char* to) {
  to[blockIdx.x * kPieceBytes + threadIdx.x] = places.at[blockIdx.x][threadIdx.x];
}

template <std::size_t kMost>
void read_pieces(std::span<const unsigned char* const> places, unsigned char* to, Device& device) {
  Places<kMost> launched;
  std::ranges::copy(places, launched.at.begin());
  read_pieces_kernel<<<static_cast<unsigned>(places.size()), kPieceBytes, 0,
                       static_cast<cudaStream_t>(device.stream().handle)>>>(launched, to);
  SPMMBENCH_CUDA_LAUNCHED();
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
  constexpr std::size_t kMany = 256;  // 2 KiB of addresses: a launch has at most 4 of arguments
  struct Scratch {
    std::size_t room = 0;
    std::shared_ptr<unsigned char> memory;
  };
  thread_local std::array<Scratch, 2> both;
  std::swap(both[0], both[1]);
  Scratch& scratch = both[0];
  if (const std::size_t wanted = std::max(places.size(), kMostPieces); wanted > scratch.room)
    scratch = {wanted, host_memory(wanted * kPieceBytes)};
  unsigned char* to = scratch.memory.get();
  for (; places.size() > kMostPieces; to += kMany * kPieceBytes) {
    const auto now = places.first(std::min(kMany, places.size()));
    read_pieces<kMany>(now, to, device);
    places = places.subspan(now.size());
  }
  if (!places.empty()) read_pieces<kMostPieces>(places, to, device);
  return scratch.memory.get();
}

}  // namespace spmmbench
