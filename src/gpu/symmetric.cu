// Whether A equals its transpose: each entry is sought in the row of its column.

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>

#include "gpu/cuda_check.hpp"
#include "gpu/given_csr.hpp"
#include "gpu/row_of_entry.cuh"
#include "gpu/told_to_host.hpp"

namespace spmmbench {
namespace {

constexpr int kMirrorThreads = 256;

constexpr unsigned kMissing = 1U << 16;  // in the count of CTAs that have arrived: it misses one

// A CTA ends with the first entry that it does not find. Most matrices that are not symmetric show
// it in the first round of every CTA. `told`: how many CTAs miss one, by the last that arrives.
template <class Bits>
__global__ void __launch_bounds__(kMirrorThreads)
    seek_mirrored(DeviceCsr a, const Bits* values, unsigned* arrivals, unsigned* told) {
  bool misses = false;
  const std::int64_t step = std::int64_t{gridDim.x} * kMirrorThreads;
  for (std::int64_t first = std::int64_t{blockIdx.x} * kMirrorThreads; first < a.nnz && !misses;
       first += step) {
    const std::int64_t i = first + threadIdx.x;
    bool alone = false;
    if (i < a.nnz) {
      const std::int32_t row = row_of_entry(a.row_ptr, a.rows, i), column = a.col_idx[i];
      std::int64_t low = a.row_ptr[column];
      const std::int64_t end = a.row_ptr[column + 1];
      for (std::int64_t high = end; low < high;) {
        const std::int64_t middle = (low + high) / 2;
        if (a.col_idx[middle] < row) low = middle + 1;
        else high = middle;
      }
      alone = low == end || a.col_idx[low] != row || values[low] != values[i];
    }
    misses = __syncthreads_or(alone ? 1 : 0) != 0;
  }
  if (threadIdx.x != 0) return;
  const unsigned own = misses ? kMissing + 1 : 1;
  const unsigned all = atomicAdd(arrivals, own) + own;
  if (all % kMissing != gridDim.x) return;
  *told = all / kMissing;
  *arrivals = 0;
}

}  // namespace

bool is_symmetric(const DeviceCsr& a, Device& device) {
  if (a.rows != a.cols) return false;
  if (a.nnz == 0) return true;
  constexpr std::int64_t kCtasPerSm = 8;      // as many as an SM holds
  constexpr cudaStream_t kOrdered = nullptr;  // with what A was read on
  const auto ctas = static_cast<unsigned>(std::min<std::int64_t>(
      (a.nnz + kMirrorThreads - 1) / kMirrorThreads, kCtasPerSm * device.info().sm_count));
  const ToldToHost told(device);
  visit_element(a.value_type, [&](auto element) {
    using Bits = typename decltype(element)::Bits;
    seek_mirrored<<<ctas, kMirrorThreads, 0, kOrdered>>>(a, static_cast<const Bits*>(a.values),
                                                         told.arrivals(), told.as<unsigned>());
    SPMMBENCH_CUDA_LAUNCHED();
  });
  SPMMBENCH_CUDA(cudaStreamSynchronize(kOrdered));
  return told.read<unsigned>() == 0;
}

}  // namespace spmmbench
