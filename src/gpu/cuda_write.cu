// A few bytes from the host at several places of a CUDA device's memory, in one launch that nothing
// waits for. They travel as the kernel's arguments.

#include <cuda_runtime.h>

#include <algorithm>
#include <array>
#include <cstddef>

#include "gpu/backend.hpp"
#include "gpu/cuda_check.hpp"

namespace spmmbench {
namespace {

constexpr std::size_t kBytes = 128;  // of a piece
constexpr std::size_t kPieces = 16;  // of a launch, whose arguments have at most 4 KiB

struct Bytes {
  unsigned char* at = nullptr;
  unsigned count = 0;
  std::array<unsigned char, kBytes> bytes{};
};

struct Pieces {
  unsigned count = 0;
  std::array<Bytes, kPieces> all{};
};

__global__ void __launch_bounds__(kBytes)
    write_pieces_kernel(const __grid_constant__ Pieces pieces) {
  for (unsigned i = 0; i < pieces.count; ++i) {
    const Bytes& piece = pieces.all[i];
    if (threadIdx.x < piece.count) piece.at[threadIdx.x] = piece.bytes[threadIdx.x];
    __syncthreads();  // pieces may overlap, and the last one counts
  }
}

}  // namespace

void cuda_write(std::span<const Piece> pieces, Device& device) {
  while (!pieces.empty()) {
    const std::span<const Piece> now = pieces.first(std::min(pieces.size(), kPieces));
    Pieces launched;
    for (const Piece& piece : now) {
      Bytes& bytes = launched.all[launched.count++];
      bytes.at = piece.at;
      bytes.count = static_cast<unsigned>(piece.bytes.size());
      std::ranges::copy(piece.bytes, bytes.bytes.begin());
    }
    write_pieces_kernel<<<1, kBytes, 0, static_cast<cudaStream_t>(device.stream().handle)>>>(
        launched);
    SPMMBENCH_CUDA_LAUNCHED();
    pieces = pieces.subspan(now.size());
  }
}

}  // namespace spmmbench
