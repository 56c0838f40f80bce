// A^T of CSR on the device: the entries of A sorted by column, stably, so that rows ascend in each.
// In one launch where they are few, else by the radix sort of CUB.

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
#include "gpu/transpose_at_once.cuh"
#include "spmmbench/error.hpp"

namespace spmmbench {
namespace {

constexpr int kTransposeThreads = 256;
constexpr cudaStream_t kSortsOn = nullptr;  // the legacy default stream, as A is read

unsigned transposing_ctas(std::int64_t threads) {
  return static_cast<unsigned>(
      std::max<std::int64_t>(1, (threads + kTransposeThreads - 1) / kTransposeThreads));
}

// Writes for each entry its row (upper half) and its number (lower half). At this point
// neighbouring threads search the same offsets for the row; once entries are sorted, each would
// search elsewhere.
__global__ void number(DeviceCsr a, std::uint64_t* out) {
  const std::int64_t i = std::int64_t{blockIdx.x} * kTransposeThreads + threadIdx.x;
  if (i < a.nnz)
    out[i] = std::uint64_t{static_cast<std::uint32_t>(row_of_entry(a.row_ptr, a.rows, i))} << 32 |
             static_cast<std::uint32_t>(i);
}

// Fills A^T from the entries of A sorted by column, with the numbers that `number` wrote.
// `source_of_a`: where the value of each entry of A lies; null: at the entry's own place.
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

// The arrays of A^T.
struct Arrays {
  Buffer row_ptr, col_idx, values, source;
};

// How many bits the number of a column takes.
int bits_of_columns(const DeviceCsr& a) {
  return std::bit_width(static_cast<std::uint64_t>(std::max<std::int64_t>(a.cols - 1, 1)));
}

// Up to so many entries one launch saves the host more time (42 us on an H200) than it costs the
// device (docs/decisions/preparation.md).
constexpr std::int64_t kMostAtOnce = std::int64_t{1} << 20;

void transpose_at_once(const DeviceCsr& a, const std::int32_t* source_of_a, const Arrays& to,
                       Device& device) {
  using namespace transposing;
  const std::int64_t ctas = std::clamp<std::int64_t>(
      (a.nnz + kTile - 1) / kTile, 1, std::int64_t{kCtasPerSm} * device.info().sm_count);
  const auto count = static_cast<std::size_t>(a.nnz);
  const Buffer numbers = device.allocate(2 * count * sizeof(std::uint64_t));
  const Buffer columns = device.allocate(2 * count * sizeof(std::int32_t));
  const Buffer counts = device.allocate(ctas * kDigits * sizeof(std::int32_t));
  const auto of_pass = [&](std::size_t i) {
    return Sorted{columns.as<std::int32_t>() + i * count, numbers.as<std::uint64_t>() + i * count};
  };
  const Sorting sorting{a,
                        source_of_a,
                        (bits_of_columns(a) + kDigitBits - 1) / kDigitBits,
                        {of_pass(0), of_pass(1)},
                        counts.as<std::int32_t>()};
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeCooperative;
  attribute.val.cooperative = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(static_cast<unsigned>(ctas));
  config.blockDim = dim3(transposing::kThreads);
  config.stream = kSortsOn;
  config.attrs = &attribute;
  config.numAttrs = 1;
  visit_element(a.value_type, [&](auto element) {
    using Bits = typename decltype(element)::Bits;
    const Transposed<Bits> out{to.row_ptr.as<std::int64_t>(), to.col_idx.as<std::int32_t>(),
                               to.values.as<Bits>(), to.source.as<std::int32_t>()};
    SPMMBENCH_CUDA(cudaLaunchKernelEx(&config, transposing::transpose_at_once<Bits>, sorting, out));
    SPMMBENCH_CUDA_LAUNCHED();
  });
}

void transpose_by_sort(const DeviceCsr& a, const std::int32_t* source_of_a, const Arrays& to,
                       Device& device) {
  const auto count = static_cast<std::size_t>(a.nnz);
  const Buffer sorted_columns = device.allocate(count * sizeof(std::int32_t));
  const Buffer numbers = device.allocate(count * sizeof(std::uint64_t));
  const Buffer sorted_numbers = device.allocate(count * sizeof(std::uint64_t));
  number<<<transposing_ctas(a.nnz), kTransposeThreads, 0, kSortsOn>>>(a,
                                                                      numbers.as<std::uint64_t>());
  SPMMBENCH_CUDA_LAUNCHED();
  std::size_t bytes = 0;
  const auto sort = [&](void* temporary) {
    SPMMBENCH_CUDA(cub::DeviceRadixSort::SortPairs(
        temporary, bytes, a.col_idx, sorted_columns.as<std::int32_t>(),
        static_cast<const std::uint64_t*>(numbers.as<std::uint64_t>()),
        sorted_numbers.as<std::uint64_t>(), static_cast<std::int32_t>(count), 0, bits_of_columns(a),
        kSortsOn));
  };
  sort(nullptr);
  const Buffer temporary = device.allocate(std::max<std::size_t>(bytes, 1));
  sort(temporary.data());
  visit_element(a.value_type, [&](auto element) {
    using Bits = typename decltype(element)::Bits;
    fill_transposed<<<transposing_ctas(std::max(a.nnz, a.cols + 1)), kTransposeThreads, 0,
                      kSortsOn>>>(a, source_of_a, sorted_columns.as<std::int32_t>(),
                                  sorted_numbers.as<std::uint64_t>(), to.source.as<std::int32_t>(),
                                  to.row_ptr.as<std::int64_t>(), to.col_idx.as<std::int32_t>(),
                                  to.values.as<Bits>());
    SPMMBENCH_CUDA_LAUNCHED();
  });
}

ReorderedCsr enqueue_transpose(const DeviceCsr& a, const std::int32_t* source_of_a, float scale,
                               Device& device) {
  if (a.nnz >= std::numeric_limits<std::int32_t>::max())
    throw Error(fmt::format("{} nonzeros: at most 2^31 - 2 are sorted on the device", a.nnz));
  const auto count = static_cast<std::size_t>(a.nnz);
  Arrays to{device.allocate((a.cols + 1) * sizeof(std::int64_t)),
            device.allocate(count * sizeof(std::int32_t)),
            device.allocate(count * bytes_of(a.value_type)),
            device.allocate(count * sizeof(std::int32_t))};
  (a.nnz <= kMostAtOnce ? transpose_at_once : transpose_by_sort)(a, source_of_a, to, device);
  return {CsrOnDevice(a.cols, a.rows, a.nnz, a.value_type, std::move(to.row_ptr),
                      std::move(to.col_idx), std::move(to.values)),
          std::move(to.source), scale};
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
