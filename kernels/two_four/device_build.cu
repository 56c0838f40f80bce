// Builds 2:4 on the device. A thread has 16 columns of a row, four groups: their indices are one
// half word, and their eight values 16 bytes, so it writes all of both, zeros included.

#include "two_four/device_build.hpp"

#include <cuda_runtime.h>

#include <algorithm>

#include "common/device_arrays.hpp"
#include "common/scratch.hpp"
#include "gpu/cuda_check.hpp"
#include "gpu/told_to_host.hpp"
#include "spmmbench/error.hpp"

namespace spmmbench::two_four {
namespace {

constexpr int kThreads = 256;
constexpr int kUnitCols = 16, kGroups = kUnitCols / TwoFour::kGroup;

// Of fp16 or bf16.
__device__ bool is_zero(std::uint16_t bits) { return (bits & 0x7FFFU) == 0; }

// The first entry of a row in column `column` or after it.
__device__ std::int64_t first_entry(const DeviceCsr& a, std::int64_t row, std::int64_t column) {
  std::int64_t low = a.row_ptr[row], high = a.row_ptr[row + 1];
  while (low < high) {
    const std::int64_t middle = (low + high) / 2;
    if (a.col_idx[middle] < column) low = middle + 1;
    else high = middle;
  }
  return low;
}

// The nonzeros of a group, at most two of them.
struct Pair {
  std::uint16_t value[TwoFour::kKept];
  int index[TwoFour::kKept];
  int count;

  // False where it is full.
  __device__ bool add(std::uint16_t bits, int column) {
    if (count == TwoFour::kKept) return false;
    value[count] = bits;
    index[count] = column;
    ++count;
    return true;
  }
  // One nonzero takes the slot that lets its index be unlike the other's.
  __device__ void fill() {
    constexpr int kLast = TwoFour::kGroup - 1;
    if (count == TwoFour::kKept) return;
    if (count == 0) {
      index[1] = 1;
    } else if (index[0] == kLast) {
      value[1] = value[0];
      value[0] = 0;
      index[1] = kLast;
      index[0] = 0;
    } else {
      index[1] = kLast;
    }
  }
};

__global__ void __launch_bounds__(kThreads)
    fill_blocks(DeviceCsr a, std::int64_t row_blocks, std::int64_t all, std::uint16_t* blocks,
                bool* beyond) {
  constexpr int kUnits = TwoFour::kCols / kUnitCols;  // of a block
  const std::int64_t thread = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (thread >= all) return;
  const std::int64_t units = row_blocks * kUnits, row = thread / units, unit = thread % units;
  const std::int64_t first = unit * kUnitCols;
  Pair groups[kGroups] = {};
  if (row < a.rows) {
    const std::int64_t end = a.row_ptr[row + 1];
    for (std::int64_t at = first_entry(a, row, first); at < end; ++at) {
      const std::int64_t column = a.col_idx[at] - first;
      if (column >= kUnitCols) break;
      const std::uint16_t bits = static_cast<const std::uint16_t*>(a.values)[at];
      if (is_zero(bits)) continue;
#pragma unroll
      for (int g = 0; g < kGroups; ++g)
        if (g == column / TwoFour::kGroup &&
            !groups[g].add(bits, static_cast<int>(column % TwoFour::kGroup)))
          *beyond = true;
    }
  }
  std::uint16_t* const block =
      blocks + (row / TwoFour::kRows * row_blocks + unit / kUnits) * TwoFour::kBlockHalves;
  const int row_in_block = static_cast<int>(row % TwoFour::kRows);
  const int col = static_cast<int>(unit % kUnits) * kUnitCols;
  unsigned indices = 0;
  std::uint32_t values[kGroups];
#pragma unroll
  for (int g = 0; g < kGroups; ++g) {
    groups[g].fill();
    const int at = col + g * TwoFour::kGroup;
    indices |= static_cast<unsigned>(groups[g].index[0] | groups[g].index[1] << 2)
               << TwoFour::index_shift(at);
    values[g] = static_cast<std::uint32_t>(groups[g].value[1]) << 16 | groups[g].value[0];
  }
  // Eight values lie side by side.
  *reinterpret_cast<uint4*>(block + TwoFour::value_at(row_in_block, col, 0)) =
      make_uint4(values[0], values[1], values[2], values[3]);
  block[TwoFour::indices_at(row_in_block, col)] = static_cast<std::uint16_t>(indices);
}

// A warp for each row, and a lane for each entry that begins a group: the first row of which a
// group has too many nonzeros.
__global__ void __launch_bounds__(kThreads) find_rows(DeviceCsr a, unsigned long long* first) {
  const std::int64_t row = (std::int64_t{blockIdx.x} * kThreads + threadIdx.x) / 32;
  if (row >= a.rows || static_cast<unsigned long long>(row) >= *first) return;
  const std::int64_t begin = a.row_ptr[row], end = a.row_ptr[row + 1];
  const auto* const values = static_cast<const std::uint16_t*>(a.values);
  for (std::int64_t at = begin + threadIdx.x % 32; at < end; at += 32) {
    const std::int32_t group = a.col_idx[at] / TwoFour::kGroup;
    if (at > begin && a.col_idx[at - 1] / TwoFour::kGroup == group) continue;
    int count = 0;
    for (std::int64_t i = at; i < end && a.col_idx[i] / TwoFour::kGroup == group; ++i)
      count += !is_zero(values[i]);
    if (count > TwoFour::kKept) atomicMin(first, static_cast<unsigned long long>(row));
  }
}

unsigned ctas_for(std::int64_t threads) {
  return static_cast<unsigned>(std::max<std::int64_t>(1, (threads + kThreads - 1) / kThreads));
}

}  // namespace

std::optional<std::int64_t> first_row_beyond_two_of_four(const DeviceCsr& a) {
  const Scratch first(sizeof(unsigned long long));
  constexpr int kNone = 0xFF;
  SPMMBENCH_CUDA(cudaMemsetAsync(first.as<void>(), kNone, sizeof(unsigned long long), nullptr));
  find_rows<<<ctas_for(a.rows * 32), kThreads>>>(a, first.as<unsigned long long>());
  SPMMBENCH_CUDA_LAUNCHED();
  const auto row = static_cast<std::int64_t>(first.read<unsigned long long>());
  return row < 0 ? std::nullopt : std::optional(row);
}

Buffer build_blocks(const DeviceCsr& a, Device& device) {
  Buffer blocks = device.allocate(TwoFour::bytes(a.rows, a.cols));
  const std::int64_t row_blocks = TwoFour::panel_blocks(a.cols);
  const std::int64_t threads =
      TwoFour::panels(a.rows) * TwoFour::kRows * row_blocks * (TwoFour::kCols / kUnitCols);
  if (threads == 0) return blocks;
  const ToldToHost told(device);
  bool& beyond = *told.as<bool>();
  beyond = false;
  fill_blocks<<<ctas_for(threads), kThreads, 0, stream_of(device)>>>(
      a, row_blocks, threads, blocks.as<std::uint16_t>(), &beyond);
  SPMMBENCH_CUDA_LAUNCHED();
  device.synchronize();
  if (beyond) throw Unsupported("two_four: a group of four columns has more than two nonzeros");
  return blocks;
}

}  // namespace spmmbench::two_four
