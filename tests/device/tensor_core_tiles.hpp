#pragma once
// Single instructions of tensor cores, one for each tile.

#include "spmmbench/device.hpp"

namespace spmmbench::test {

enum class Instruction { wgmma, wgmma_a_in_registers, wgmma_sp, mma };

inline constexpr int kTileRows = 64, kTileColumns = 32, kTileBytes = 32;
// k of one instruction; of wgmma_sp those that are left of twice as many, every first and second of
// four.
inline int tile_k(Precision precision) {
  return kTileBytes / static_cast<int>(bytes_of(storage_type(precision)));
}

// sums[64 x 32] += A[64 x k] * B[k x 32] for each tile, all row-major, but B column-major. False
// where there is no such instruction: wgmma_sp in 32 bits; in 8 bits all but wgmma.
bool multiply_tiles(Instruction instruction, Precision precision, const void* a, const void* b,
                    float* sums, int tiles, Stream stream);

}  // namespace spmmbench::test
