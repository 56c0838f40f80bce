// A^T of CSR on the device: the entries of A sorted by column, stably, so that rows ascend in each.

#include <cuda_runtime.h>
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cub/device/device_radix_sort.cuh>
#include <limits>
#include <utility>

#include "gpu/cuda_check.hpp"
#include "gpu/given_csr.hpp"
#include "gpu/row_of_entry.cuh"
#include "spmmbench/error.hpp"

namespace spmmbench {
namespace {

constexpr int kTransposeThreads = 256;
constexpr cudaStream_t kSortsOn = nullptr;  // the legacy default stream, as A is read

unsigned transposing_ctas(std::int64_t threads) {
  return static_cast<unsigned>(
      std::max<std::int64_t>(1, (threads + kTransposeThreads - 1) / kTransposeThreads));
}

// Of each entry its row and, in the lower half, its number. Here neighbours look at the same
// offsets for it; once they are sorted, each looks elsewhere.
__global__ void number(DeviceCsr a, std::uint64_t* out) {
  const std::int64_t i = std::int64_t{blockIdx.x} * kTransposeThreads + threadIdx.x;
  if (i < a.nnz)
    out[i] = std::uint64_t{static_cast<std::uint32_t>(row_of_entry(a.row_ptr, a.rows, i))} << 32 |
             static_cast<std::uint32_t>(i);
}

// Of A^T: from the entries of A sorted by column, with the numbers of `number`. `source_of_a`: of
// each entry of A; null: the same.
template <class Bits>
__global__ void fill_transposed(DeviceCsr a, const std::int32_t* source_of_a,
                                const std::int32_t* sorted_columns, const std::uint64_t* numbers,
                                std::int32_t* source, std::int64_t* row_ptr, std::int32_t* col_idx,
                                Bits* values) {
  const std::int64_t i = std::int64_t{blockIdx.x} * kTransposeThreads + threadIdx.x;
  if (i < a.nnz) {
    const auto entry = static_cast<std::int32_t>(numbers[i]);
    col_idx[i] = static_cast<std::int32_t>(numbers[i] >> 32);
    values[i] = static_cast<const Bits*>(a.values)[entry];
    source[i] = source_of_a == nullptr ? entry : source_of_a[entry];
  }
  if (i > a.cols) return;
  std::int64_t low = 0, high = a.nnz;  // entries of columns below i are those before `high`
  while (low < high) {
    const std::int64_t middle = (low + high) / 2;
    if (sorted_columns[middle] < i) low = middle + 1;
    else high = middle;
  }
  row_ptr[i] = high;
}

ReorderedCsr enqueue_transpose(const DeviceCsr& a, const std::int32_t* given_source, float scale,
                               Device& device) {
  if (a.nnz >= std::numeric_limits<std::int32_t>::max())
    throw Error(fmt::format("{} nonzeros: at most 2^31 - 2 are sorted on the device", a.nnz));
  const auto count = static_cast<std::size_t>(a.nnz);
  Buffer row_ptr = device.allocate((a.cols + 1) * sizeof(std::int64_t));
  Buffer col_idx = device.allocate(count * sizeof(std::int32_t));
  Buffer values = device.allocate(count * bytes_of(a.value_type));
  Buffer source = device.allocate(count * sizeof(std::int32_t));
  const Buffer sorted_columns = device.allocate(count * sizeof(std::int32_t));
  const Buffer numbers = device.allocate(count * sizeof(std::uint64_t));
  const Buffer sorted_numbers = device.allocate(count * sizeof(std::uint64_t));
  number<<<transposing_ctas(a.nnz), kTransposeThreads, 0, kSortsOn>>>(a,
                                                                      numbers.as<std::uint64_t>());
  SPMMBENCH_CUDA_LAUNCHED();
  if (count > 0) {
    const int bits =
        std::bit_width(static_cast<std::uint64_t>(std::max<std::int64_t>(a.cols - 1, 1)));
    std::size_t bytes = 0;
    const auto sort = [&](void* temporary) {
      SPMMBENCH_CUDA(cub::DeviceRadixSort::SortPairs(
          temporary, bytes, a.col_idx, sorted_columns.as<std::int32_t>(),
          static_cast<const std::uint64_t*>(numbers.as<std::uint64_t>()),
          sorted_numbers.as<std::uint64_t>(), static_cast<std::int32_t>(count), 0, bits, kSortsOn));
    };
    sort(nullptr);
    const Buffer temporary = device.allocate(std::max<std::size_t>(bytes, 1));
    sort(temporary.data());
  }
  visit_element(a.value_type, [&](auto element) {
    using Bits = typename decltype(element)::Bits;
    fill_transposed<<<transposing_ctas(std::max(a.nnz, a.cols + 1)), kTransposeThreads, 0,
                      kSortsOn>>>(a, given_source, sorted_columns.as<std::int32_t>(),
                                  sorted_numbers.as<std::uint64_t>(), source.as<std::int32_t>(),
                                  row_ptr.as<std::int64_t>(), col_idx.as<std::int32_t>(),
                                  values.as<Bits>());
    SPMMBENCH_CUDA_LAUNCHED();
  });
  return {CsrOnDevice(a.cols, a.rows, a.nnz, a.value_type, std::move(row_ptr), std::move(col_idx),
                      std::move(values)),
          std::move(source), scale};
}

}  // namespace

ReorderedCsr enqueue_transpose(const ReorderedCsr& given, Device& device) {
  return enqueue_transpose(given.a.view(), given.source.as<std::int32_t>(), given.scale, device);
}

ReorderedCsr transpose_on_device(const DeviceCsr& a, Device& device) {
  ReorderedCsr transposed = enqueue_transpose(a, nullptr, a.scale, device);
  SPMMBENCH_CUDA(cudaStreamSynchronize(kSortsOn));
  return transposed;
}

ReorderedCsr transpose_on_device(const ReorderedCsr& a, Device& device) {
  ReorderedCsr transposed = enqueue_transpose(a, device);
  SPMMBENCH_CUDA(cudaStreamSynchronize(kSortsOn));
  return transposed;
}

}  // namespace spmmbench
