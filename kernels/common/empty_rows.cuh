#pragma once
// Clears the rows of C that formats leave out (common/empty_rows.hpp).

#include <cuda_runtime.h>

#include <cstdint>

#include "common/empty_rows.hpp"
#include "ptx/griddepcontrol.cuh"

namespace spmmbench {

// Whole words of a vector's rows, a vector of 16 bytes by each lane. Stores of single rows would
// take twice as long (docs/decisions/jagged-slices.md).
template <class C>
__device__ void clear_vector(C* c, std::uint32_t own, int words) {
  constexpr int kRows = 16 / sizeof(C), kRowsOfWord = EmptyRows::kRowsOfWord;
  constexpr std::uint32_t kAllRows = (1U << kRows) - 1;
  const int lane = static_cast<int>(threadIdx.x) % 32, first = lane * kRows;
  for (int w = 0; w < words; w += kRows) {
    const std::uint32_t word = __shfl_sync(0xFFFFFFFFU, own, w + first / kRowsOfWord);
    const std::uint32_t bits = word >> (first % kRowsOfWord) & kAllRows;
    C* const to = c + w * kRowsOfWord + first;
    if (bits == kAllRows) {
      __stcs(reinterpret_cast<uint4*>(to), make_uint4(0, 0, 0, 0));
    } else {
#pragma unroll
      for (int i = 0; i < kRows; ++i)
        if ((bits >> i & 1) != 0) __stcs(to + i, C{});
    }
  }
}

// By a whole warp, of which this is lane threadIdx.x % 32: those of its rows that are empty. Whole
// rows with the padding to 16 bytes, in streaming stores, since C is not read. A vector has no
// padding between its values.
template <class C>
__device__ void clear_rows(C* c, std::int64_t row_stride, std::int64_t n, const Clearing& empty,
                           std::int64_t warp) {
  constexpr unsigned kAllLanes = 0xFFFFFFFFU;
  constexpr int kRowsOfWord = EmptyRows::kRowsOfWord;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const std::int64_t first = warp * empty.rows_of_warp;
  const int last = static_cast<int>(min(empty.rows - first, std::int64_t{empty.rows_of_warp}));
  if (last <= 0) return;
  std::uint32_t own =
      lane * kRowsOfWord < last ? __ldg(empty.bits + first / kRowsOfWord + lane) : 0;
  if (last < kRowsOfWord) own = own >> (first % kRowsOfWord) & ((1U << last) - 1);
  ptx::griddepcontrol_wait();
  ptx::griddepcontrol_launch_dependents();

  // As many lanes as a short row has vectors, rounded up to a power of two, take a row.
  const auto vectors = static_cast<int>((n * sizeof(C) + sizeof(uint4) - 1) / sizeof(uint4));
  const int lanes = vectors >= 32 ? 32 : 1 << (32 - __clz(vectors - 1));
  const int words = (last + kRowsOfWord - 1) / kRowsOfWord;
  if (n == 1 && row_stride == 1 && empty.rows_of_warp >= kRowsOfWord)
    return clear_vector(c + first, own, words);
  for (int w = 0; w < words; ++w) {
    const std::uint32_t bits = __shfl_sync(kAllLanes, own, w);
    C* const rows = c + (first + w * kRowsOfWord) * row_stride;
    if (n == 1) {
      if ((bits >> lane & 1) != 0) __stcs(rows + lane * row_stride, C{});
      continue;
    }
    const int here = min(kRowsOfWord, last - w * kRowsOfWord);
    for (int i = lane / lanes; i < here; i += 32 / lanes) {
      if ((bits >> i & 1) == 0) continue;
      auto* const row = reinterpret_cast<uint4*>(rows + i * row_stride);
      for (int v = lane % lanes; v < vectors; v += lanes) __stcs(row + v, make_uint4(0, 0, 0, 0));
    }
  }
}

}  // namespace spmmbench
