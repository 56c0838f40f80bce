// Builds WCSR on the device without sorting. The rows of a window are sorted already, so an entry's
// place among the window's distinct columns follows from searching its column in the window's rows:
//
//   first     an entry is its column's first in the window: no earlier row of the window has it
//   S         exclusive sum of `first` over all entries, in CSR order
//   rank(c)   sum over the window's rows of  S[position of c in the row] - S[start of the row]
//
// An entry costs one search per row of its window, all of them in the caches.

#include <cuda_runtime.h>
#include <fmt/format.h>

#include <algorithm>
#include <cub/device/device_scan.cuh>
#include <limits>
#include <utility>

#include "async_wcsr/device_build.hpp"
#include "gpu/cuda_check.hpp"
#include "gpu/element.cuh"
#include "spmmbench/error.hpp"

namespace spmmbench {
namespace {

constexpr int kThreads = 256;

struct Csr {
  const std::int64_t* row_ptr;
  const std::int32_t* col_idx;
  const float* values;
  const std::int32_t* row_of;    // by place; null: the places are the rows
  const std::int32_t* place_of;  // by row; null likewise
  std::int32_t rows;
  std::int32_t nnz;
  int window_rows;
  int tile_columns;

  __device__ std::int32_t row(std::int32_t place) const {
    return row_of == nullptr ? place : row_of[place];
  }
  __device__ std::int32_t place(std::int32_t row) const {
    return place_of == nullptr ? row : place_of[row];
  }
  __device__ std::int32_t row_of_entry(std::int32_t entry) const {
    std::int32_t low = 0, high = rows;  // row_ptr[low] <= entry < row_ptr[high]
    while (high - low > 1) {
      const std::int32_t middle = low + (high - low) / 2;
      (row_ptr[middle] <= entry ? low : high) = middle;
    }
    return low;
  }
  // The first entry of the row whose column is not below `column`.
  __device__ std::int32_t lower_bound(std::int32_t row, std::int32_t column) const {
    auto low = static_cast<std::int32_t>(row_ptr[row]);
    auto high = static_cast<std::int32_t>(row_ptr[row + 1]);
    while (low < high) {
      const std::int32_t middle = low + (high - low) / 2;
      if (col_idx[middle] < column) low = middle + 1;
      else high = middle;
    }
    return low;
  }
};

__global__ void invert(const std::int32_t* row_of, std::int32_t rows, std::int32_t* place_of) {
  const std::int32_t place = blockIdx.x * blockDim.x + threadIdx.x;
  if (place < rows) place_of[row_of[place]] = place;
}

// first[nnz] = 0 closes the exclusive sum.
__global__ void mark_first(Csr a, std::int32_t* first) {
  const std::int64_t entry = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (entry > a.nnz) return;
  if (entry == a.nnz) {
    first[entry] = 0;
    return;
  }
  const std::int32_t column = a.col_idx[entry];
  const std::int32_t place = a.place(a.row_of_entry(static_cast<std::int32_t>(entry)));
  bool is_first = true;
  for (std::int32_t p = place / a.window_rows * a.window_rows; p < place && is_first; ++p) {
    const std::int32_t row = a.row(p);
    const std::int32_t at = a.lower_bound(row, column);
    is_first = at == a.row_ptr[row + 1] || a.col_idx[at] != column;
  }
  first[entry] = is_first ? 1 : 0;
}

// tiles[windows] = 0 closes the exclusive sum.
__global__ void count_tiles(Csr a, const std::int32_t* sum, std::int32_t windows,
                            std::int32_t* tiles) {
  const std::int32_t window = blockIdx.x * blockDim.x + threadIdx.x;
  if (window > windows) return;
  std::int32_t columns = 0;
  const std::int32_t begin = window * a.window_rows;
  for (std::int32_t p = begin; p < min(begin + a.window_rows, a.rows); ++p) {
    const std::int32_t row = a.row(p);
    columns += sum[a.row_ptr[row + 1]] - sum[a.row_ptr[row]];
  }
  tiles[window] = window == windows ? 0 : max(1, (columns + a.tile_columns - 1) / a.tile_columns);
}

// A zero entry becomes -0: padding is +0.
__device__ std::uint32_t marked_bits(float value) {
  const std::uint32_t bits = __float_as_uint(value);
  return bits == 0 ? 0x80000000U : bits;
}
__device__ std::uint16_t marked_bits(__half value) {
  const std::uint16_t bits = __half_as_ushort(value);
  return bits == 0 ? 0x8000U : bits;
}
__device__ std::uint16_t marked_bits(__nv_bfloat16 value) {
  const std::uint16_t bits = __bfloat16_as_ushort(value);
  return bits == 0 ? 0x8000U : bits;
}

template <class T, class Bits>
__global__ void place_entries(Csr a, const std::int32_t* first_sum, const std::int32_t* window_ptr,
                              std::int32_t* col_idx, Bits* values) {
  const std::int64_t entry = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (entry >= a.nnz) return;
  const std::int32_t column = a.col_idx[entry];
  const std::int32_t place = a.place(a.row_of_entry(static_cast<std::int32_t>(entry)));
  const std::int32_t window = place / a.window_rows, begin = window * a.window_rows;
  std::int32_t rank = 0;
  for (std::int32_t p = begin; p < min(begin + a.window_rows, a.rows); ++p) {
    const std::int32_t row = a.row(p);
    rank += first_sum[a.lower_bound(row, column)] - first_sum[a.row_ptr[row]];
  }
  const std::int64_t tile = window_ptr[window] + rank / a.tile_columns;
  const int slot = rank % a.tile_columns;
  if (first_sum[entry + 1] != first_sum[entry]) col_idx[tile * a.tile_columns + slot] = column;
  values[(tile * a.window_rows + (place - begin)) * a.tile_columns + slot] =
      marked_bits(from_float<T>(a.values[entry]));
}

unsigned blocks_for(std::int64_t threads) {
  return static_cast<unsigned>((threads + kThreads - 1) / kThreads);
}

void exclusive_sum(std::int32_t* data, std::int64_t count, Buffer& scratch, Device& device) {
  const auto stream = static_cast<cudaStream_t>(device.stream().handle);
  std::size_t bytes = 0;
  SPMMBENCH_CUDA(cub::DeviceScan::ExclusiveSum(nullptr, bytes, data, count, stream));
  if (bytes > scratch.bytes()) scratch = device.allocate(bytes);
  SPMMBENCH_CUDA(cub::DeviceScan::ExclusiveSum(scratch.data(), bytes, data, count, stream));
}

}  // namespace

DeviceWcsr build_wcsr(const CsrMatrix& matrix, const WcsrShape& shape, const Permutation& row_order,
                      Device& device, StageTimer& stages) {
  const std::int64_t windows = (matrix.rows + shape.window_rows - 1) / shape.window_rows;
  const std::int64_t nnz = matrix.nnz();
  if (nnz + windows >= std::numeric_limits<std::int32_t>::max())
    throw Error(fmt::format("WCSR on the device: {} nonzeros and {} windows, at most 2^31 - 2", nnz,
                            windows));
  Buffer row_ptr, columns, entries, row_of;
  {
    const auto timed = stages.scope("upload");
    row_ptr = device.upload(matrix.row_ptr);
    columns = device.upload(matrix.col_idx);
    entries = device.upload(matrix.values);
    row_of = device.upload(row_order);
    device.synchronize();
  }
  const auto timed = stages.scope("build");
  const auto stream = static_cast<cudaStream_t>(device.stream().handle);
  DeviceWcsr out;
  Buffer place_of = device.allocate(row_of.bytes());
  Buffer first_sum = device.allocate((nnz + 1) * sizeof(std::int32_t));
  Buffer scratch;
  const Csr a{row_ptr.as<std::int64_t>(),
              columns.as<std::int32_t>(),
              entries.as<float>(),
              row_of.as<std::int32_t>(),
              place_of.as<std::int32_t>(),
              static_cast<std::int32_t>(matrix.rows),
              static_cast<std::int32_t>(nnz),
              shape.window_rows,
              shape.tile_columns};
  if (!row_order.empty()) {
    invert<<<blocks_for(matrix.rows), kThreads, 0, stream>>>(a.row_of, a.rows,
                                                             place_of.as<std::int32_t>());
    SPMMBENCH_CUDA_LAUNCHED();
  }
  mark_first<<<blocks_for(nnz + 1), kThreads, 0, stream>>>(a, first_sum.as<std::int32_t>());
  SPMMBENCH_CUDA_LAUNCHED();
  exclusive_sum(first_sum.as<std::int32_t>(), nnz + 1, scratch, device);

  out.window_ptr = device.allocate((windows + 1) * sizeof(std::int32_t));
  count_tiles<<<blocks_for(windows + 1), kThreads, 0, stream>>>(a, first_sum.as<std::int32_t>(),
                                                                static_cast<std::int32_t>(windows),
                                                                out.window_ptr.as<std::int32_t>());
  SPMMBENCH_CUDA_LAUNCHED();
  exclusive_sum(out.window_ptr.as<std::int32_t>(), windows + 1, scratch, device);
  out.window_ptr_host.resize(windows + 1);
  device.download(out.window_ptr_host.data(), out.window_ptr.data(), out.window_ptr.bytes());
  std::int32_t gathered = 0;
  device.download(&gathered, first_sum.as<std::int32_t>() + nnz, sizeof(gathered));
  out.gathered = gathered;

  const std::int64_t slots = out.tiles() * shape.tile_columns;
  out.col_idx = device.allocate(slots * sizeof(std::int32_t));
  out.values = device.allocate(slots * shape.window_rows * bytes_of(shape.value_type));
  static_assert(Wcsr::kPadding == -1, "bytes of 0xFF");
  device.fill_bytes(out.col_idx.data(), 0xFF, out.col_idx.bytes());
  device.fill_bytes(out.values.data(), 0, out.values.bytes());
  if (nnz > 0)
    visit_element_type(shape.value_type, [&](auto* tag) {
      using T = std::remove_pointer_t<decltype(tag)>;
      using Bits = decltype(marked_bits(T{}));
      place_entries<T><<<blocks_for(nnz), kThreads, 0, stream>>>(
          a, first_sum.as<std::int32_t>(), out.window_ptr.as<std::int32_t>(),
          out.col_idx.as<std::int32_t>(), out.values.as<Bits>());
      SPMMBENCH_CUDA_LAUNCHED();
    });
  device.synchronize();
  return out;
}

DeviceWcsr upload_wcsr(const CsrMatrix& matrix, const WcsrShape& shape,
                       const Permutation& row_order, Device& device, StageTimer& stages) {
  Wcsr host;
  {
    const auto timed = stages.scope("build");
    host = Wcsr::build(matrix, shape, row_order);
  }
  const auto timed = stages.scope("upload");
  DeviceWcsr out;
  out.window_ptr = device.upload(host.window_ptr);
  out.col_idx = device.upload(host.col_idx);
  out.values = host.values16.empty() ? device.upload(host.values32) : device.upload(host.values16);
  out.gathered = static_cast<std::int64_t>(host.col_idx.size()) -
                 std::count(host.col_idx.begin(), host.col_idx.end(), Wcsr::kPadding);
  out.window_ptr_host = std::move(host.window_ptr);
  device.synchronize();
  return out;
}

}  // namespace spmmbench
