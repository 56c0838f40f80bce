#include <cuda_runtime.h>

#include <algorithm>
#include <limits>
#include <type_traits>

#include "gpu/cuda_check.hpp"
#include "gpu/element.cuh"
#include "gpu/rows_of_b.hpp"

namespace spmmbench {
namespace {

template <class T>
__global__ void fill_rows_kernel(T* data, std::int64_t count, std::int64_t cols, std::int64_t ld,
                                 const std::int32_t* rows, ValuesOfB values) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t at = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
       at < count; at += step) {
    const std::int32_t row = rows[at / ld];
    const std::int64_t column = at % ld;
    double value = std::numeric_limits<double>::quiet_NaN();
    if (column < cols) value = row < 0 ? 0 : values(row, column);
    data[at] = from_double<T>(value);
  }
}

}  // namespace

void cuda_fill_rows(const DenseView& view, const std::int32_t* rows, const ValuesOfB& values,
                    Device& device) {
  constexpr std::int64_t kThreads = 256, kMostBlocks = 4096;  // each block then takes several rows
  const std::int64_t count = view.rows * view.ld;
  if (count == 0) return;
  const auto blocks =
      static_cast<unsigned>(std::min((count + kThreads - 1) / kThreads, kMostBlocks));
  visit_every_element_type(view.type, [&](auto* tag) {
    using T = std::remove_pointer_t<decltype(tag)>;
    fill_rows_kernel<<<blocks, kThreads, 0, static_cast<cudaStream_t>(device.stream().handle)>>>(
        static_cast<T*>(view.data), count, view.cols, view.ld, rows, values);
  });
  SPMMBENCH_CUDA_LAUNCHED();
}

}  // namespace spmmbench
