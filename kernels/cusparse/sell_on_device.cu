// Builds sliced ELLPACK on the device:
//
//   count_all       entries of all slices, for those who only ask
//   count_slices    entries of each slice, whose sums are the offsets; the last comes to the host
//   fill_slices     columns and values

#include "cusparse/sell_on_device.hpp"

#include <cuda_runtime.h>

#include <algorithm>
#include <cub/device/device_scan.cuh>

#include "common/device_arrays.hpp"
#include "common/scratch.hpp"
#include "gpu/cuda_check.hpp"

namespace spmmbench::cusparse_sell {
namespace {

constexpr unsigned kAllLanes = 0xFFFFFFFFU;
constexpr int kCountThreads = 256;
constexpr unsigned kMostCountCtas = 1024;  // each warp of them adds to the same sum once
// Of a slice. They read neighbouring entries of a row at the same time, and share a long row.
constexpr int kFillWarps = 4;

__device__ int lane_of_warp() { return static_cast<int>(threadIdx.x) % kSliceRows; }
__device__ std::int64_t warp_of_grid() {
  return (std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x) / kSliceRows;
}

// Where the row of a lane begins, and how long it is. Rows behind the last are empty.
struct Row {
  std::int64_t begin;
  std::uint32_t length;
};
__device__ Row row_of_lane(const DeviceCsr& a, std::int64_t slice) {
  const std::int64_t row = slice * kSliceRows + lane_of_warp();
  if (row >= a.rows) return {a.nnz, 0};
  const std::int64_t begin = a.row_ptr[row];
  return {begin, static_cast<std::uint32_t>(a.row_ptr[row + 1] - begin)};
}

// Each lane has this number of entries of the slice.
__device__ std::uint32_t longest_row(const DeviceCsr& a, std::int64_t slice) {
  return __reduce_max_sync(kAllLanes, row_of_lane(a, slice).length);
}

__global__ void __launch_bounds__(kCountThreads)
    count_all(DeviceCsr a, std::int64_t slices, unsigned long long* entries) {
  const std::int64_t warps = std::int64_t{gridDim.x} * kCountThreads / kSliceRows;
  unsigned long long sum = 0;
  for (std::int64_t slice = warp_of_grid(); slice < slices; slice += warps)
    sum += longest_row(a, slice);
  if (lane_of_warp() == 0) atomicAdd(entries, sum * kSliceRows);
}

// 0 behind the last slice, where the scan leaves the sum.
__global__ void __launch_bounds__(kCountThreads)
    count_slices(DeviceCsr a, std::int64_t slices, std::int32_t* entries) {
  const std::int64_t slice = warp_of_grid();
  if (slice > slices) return;
  const std::uint32_t longest = slice < slices ? longest_row(a, slice) : 0;
  if (lane_of_warp() == 0) entries[slice] = static_cast<std::int32_t>(longest * kSliceRows);
}

// A CTA for each slice.
template <class Bits>
__global__ void __launch_bounds__(kFillWarps* kSliceRows)
    fill_slices(DeviceCsr a, const std::int32_t* offset, std::int32_t* col_idx, Bits* values) {
  const std::int64_t slice = blockIdx.x, first = offset[slice];
  const auto longest = static_cast<std::uint32_t>(offset[slice + 1] - first) / kSliceRows;
  const Row row = row_of_lane(a, slice);
  const auto* const bits = static_cast<const Bits*>(a.values);
#pragma unroll 4
  for (std::uint32_t i = threadIdx.x / kSliceRows; i < longest; i += kFillWarps) {
    const std::int64_t to = first + std::int64_t{i} * kSliceRows + lane_of_warp();
    col_idx[to] = i < row.length ? __ldg(a.col_idx + row.begin + i) : -1;
    values[to] = i < row.length ? __ldg(bits + row.begin + i) : Bits{0};
  }
}

std::int64_t slices_of(const DeviceCsr& a) { return (a.rows + kSliceRows - 1) / kSliceRows; }

// A warp for each of `warps`.
unsigned count_ctas(std::int64_t warps) {
  constexpr int kWarps = kCountThreads / kSliceRows;
  return static_cast<unsigned>((warps + kWarps - 1) / kWarps);
}

void find_offsets(const DeviceCsr& a, DeviceSlices& out, Device& device) {
  const cudaStream_t stream = stream_of(device);
  const std::int64_t slices = slices_of(a);
  out.offset = device.allocate((slices + 1) * sizeof(std::int32_t));
  auto* const offset = out.offset.as<std::int32_t>();
  std::size_t bytes = 0;
  const auto sum = [&](void* temporary) {
    SPMMBENCH_CUDA(cub::DeviceScan::ExclusiveSum(temporary, bytes, offset, offset,
                                                 static_cast<std::int32_t>(slices + 1), stream));
  };
  sum(nullptr);
  const Buffer temporary = device.allocate(std::max<std::size_t>(bytes, 1));
  count_slices<<<count_ctas(slices + 1), kCountThreads, 0, stream>>>(a, slices, offset);
  SPMMBENCH_CUDA_LAUNCHED();
  sum(temporary.data());
  std::int32_t stored = 0;
  device.download(&stored, offset + slices, sizeof stored);
  out.stored = stored;
}

template <class Bits>
void fill(const DeviceCsr& a, const DeviceSlices& out, cudaStream_t stream) {
  fill_slices<<<static_cast<unsigned>(slices_of(a)), kFillWarps * kSliceRows, 0, stream>>>(
      a, out.offset.as<std::int32_t>(), out.col_idx.as<std::int32_t>(), out.values.as<Bits>());
  SPMMBENCH_CUDA_LAUNCHED();
}

}  // namespace

std::int64_t count_entries(const DeviceCsr& a) {
  const Scratch scratch(sizeof(unsigned long long));
  const std::int64_t slices = slices_of(a);
  if (slices > 0) {
    count_all<<<std::min(count_ctas(slices), kMostCountCtas), kCountThreads>>>(
        a, slices, scratch.as<unsigned long long>());
    SPMMBENCH_CUDA_LAUNCHED();
  }
  return static_cast<std::int64_t>(scratch.read<unsigned long long>());
}

DeviceSlices build_slices(const DeviceCsr& a, Device& device) {
  DeviceSlices out;
  find_offsets(a, out, device);
  const std::size_t value_bytes = bytes_of(a.value_type);
  out.col_idx = device.allocate(out.stored * sizeof(std::int32_t));
  out.values = device.allocate(out.stored * value_bytes);
  if (out.stored > 0) {
    const auto fill_bits = value_bytes == 2   ? fill<std::uint16_t>
                           : value_bytes == 4 ? fill<std::uint32_t>
                                              : fill<unsigned long long>;
    fill_bits(a, out, stream_of(device));
  }
  device.synchronize();
  return out;
}

}  // namespace spmmbench::cusparse_sell
