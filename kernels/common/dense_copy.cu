#include "common/dense_copy.hpp"

#include <cuda_runtime.h>
#include <fmt/format.h>

#include <cstdint>
#include <type_traits>

#include "common/resident_csr.hpp"
#include "gpu/cuda_check.hpp"
#include "gpu/element.cuh"

namespace spmmbench {
namespace {

constexpr int kScatterThreads = 256;
constexpr int kScatterWarps = kScatterThreads / 32;
constexpr int kCtasPerSm = 16;

// A warp per row, all warps of the grid in turn.
template <class T>
__global__ void scatter_rows(std::int64_t rows, const std::int64_t* row_ptr,
                             const std::int32_t* col_idx, const T* values, T* dense,
                             std::int64_t ld) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * kScatterWarps;
  for (std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * kScatterWarps + threadIdx.x / 32;
       row < rows; row += step)
    for (std::int64_t e = row_ptr[row] + threadIdx.x % 32; e < row_ptr[row + 1]; e += 32)
      dense[row * ld + col_idx[e]] = values[e];
}

}  // namespace

DenseView dense_shape(const SparseOperand& a) {
  return make_dense_view(a.m(), a.k(), Layout::row_major, storage_type(a.precision));
}

Support supports_dense(const SparseOperand& a, const DeviceInfo& device) {
  const DenseView shape = dense_shape(a);
  const std::size_t bytes = shape.bytes();
  if (bytes > device.memory_bytes / 4)
    return Support::no(fmt::format("dense A takes {:.0f} GB, more than a quarter of the device",
                                   static_cast<double>(bytes) * 1e-9));
  return Support::yes(bytes + resident_bytes(a));
}

Buffer upload_dense(const SparseOperand& a, const DenseView& shape, Device& device,
                    StageTimer& stages) {
  const ResidentCsr csr(a, device, stages);
  const auto timed = stages.scope("upload");
  const DeviceCsr& from = csr.view();
  Buffer dense = device.allocate(shape.bytes());
  device.fill_bytes(dense.data(), 0, dense.bytes());
  visit_every_element_type(shape.type, [&](auto* tag) {
    using T = std::remove_pointer_t<decltype(tag)>;
    scatter_rows<<<kCtasPerSm * device.info().sm_count, kScatterThreads, 0,
                   static_cast<cudaStream_t>(device.stream().handle)>>>(
        shape.rows, from.row_ptr, from.col_idx, static_cast<const T*>(from.values), dense.as<T>(),
        shape.ld);
  });
  SPMMBENCH_CUDA_LAUNCHED();
  device.synchronize();
  return dense;
}

}  // namespace spmmbench
