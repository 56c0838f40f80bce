#include "common/empty_rows.hpp"

#include <cuda_runtime.h>

#include "common/device_arrays.hpp"
#include "gpu/cuda_check.hpp"

namespace spmmbench {
namespace {

constexpr int kThreads = 256;

__global__ void __launch_bounds__(kThreads)
    mark_rows(const std::int32_t* list, std::int64_t count, const std::int32_t* row_ids,
              std::uint32_t* bits) {
  constexpr int kRowsOfWord = EmptyRows::kRowsOfWord;
  const std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i >= count) return;
  const std::int32_t row = row_ids == nullptr ? list[i] : row_ids[list[i]];
  atomicOr(bits + row / kRowsOfWord, 1U << (row % kRowsOfWord));
}

}  // namespace

EmptyRows::EmptyRows(const Buffer& list, std::int64_t count, const std::int32_t* row_ids,
                     std::int64_t rows, Device& device) {
  if (count == 0) return;
  rows_ = rows;
  count_ = count;
  bits_ = device.allocate((rows + kRowsOfWord - 1) / kRowsOfWord * sizeof(std::uint32_t));
  device.fill_bytes(bits_.data(), 0, bits_.bytes());
  const auto ctas = static_cast<unsigned>((count + kThreads - 1) / kThreads);
  mark_rows<<<ctas, kThreads, 0, stream_of(device)>>>(list.as<std::int32_t>(), count, row_ids,
                                                      bits_.as<std::uint32_t>());
  SPMMBENCH_CUDA_LAUNCHED();
}

}  // namespace spmmbench
