#include "row_order/degree_order.hpp"

#include <cuda_runtime.h>

#include <algorithm>
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_select.cuh>

#include "gpu/cuda_check.hpp"
#include "spmmbench/error.hpp"

namespace spmmbench {
namespace {

constexpr int kRowThreads = 256;

unsigned row_ctas(std::int64_t threads) {
  return static_cast<unsigned>(
      std::max<std::int64_t>(1, (threads + kRowThreads - 1) / kRowThreads));
}

cudaStream_t row_stream(const Device& device) {
  return static_cast<cudaStream_t>(device.stream().handle);
}

__global__ void number_rows_and_lengths(DeviceCsr a, std::int32_t* rows, std::int32_t* lengths) {
  const std::int64_t row = std::int64_t{blockIdx.x} * kRowThreads + threadIdx.x;
  if (row >= a.rows) return;
  rows[row] = static_cast<std::int32_t>(row);
  if (lengths != nullptr)
    lengths[row] = static_cast<std::int32_t>(a.row_ptr[row + 1] - a.row_ptr[row]);
}

__global__ void look_up(const std::int32_t* from, const std::int32_t* places, std::int32_t* to,
                        std::int64_t count) {
  const std::int64_t i = std::int64_t{blockIdx.x} * kRowThreads + threadIdx.x;
  if (i < count) to[i] = from[places[i]];
}

Buffer numbered_rows(const DeviceCsr& a, std::int32_t* lengths, Device& device) {
  Buffer rows = device.allocate(a.rows * sizeof(std::int32_t));
  number_rows_and_lengths<<<row_ctas(a.rows), kRowThreads, 0, row_stream(device)>>>(
      a, rows.as<std::int32_t>(), lengths);
  SPMMBENCH_CUDA_LAUNCHED();
  return rows;
}

template <bool kEmpty>
struct HasLength {
  const std::int64_t* row_ptr;
  __device__ bool operator()(std::int32_t row) const {
    return (row_ptr[row + 1] == row_ptr[row]) == kEmpty;
  }
};

// The rows of `from` that `chosen` takes, in `to`; returns how many.
template <class Chosen>
std::int64_t choose_rows(const std::int32_t* from, std::int64_t rows, const Chosen& chosen,
                         Buffer& to, Device& device) {
  to = device.allocate(rows * sizeof(std::int32_t));
  const Buffer counted = device.allocate(sizeof(std::int32_t));
  std::size_t bytes = 0;
  const auto choose = [&](void* temporary) {
    SPMMBENCH_CUDA(cub::DeviceSelect::If(
        temporary, bytes, from, to.as<std::int32_t>(), counted.as<std::int32_t>(),
        static_cast<std::int32_t>(rows), chosen, row_stream(device)));
  };
  choose(nullptr);
  const Buffer temporary = device.allocate(std::max<std::size_t>(bytes, 1));
  choose(temporary.data());
  std::int32_t count = 0;
  device.download(&count, counted.data(), sizeof count);
  return count;
}

}  // namespace

Buffer degree_order(const DeviceCsr& a, Device& device) {
  if (a.nnz > INT32_MAX) throw Error("rows of 2^31 nonzeros and more are not sorted by length");
  Buffer order = device.allocate(a.rows * sizeof(std::int32_t));
  const Buffer lengths = device.allocate(a.rows * sizeof(std::int32_t));
  const Buffer sorted = device.allocate(a.rows * sizeof(std::int32_t));
  const Buffer rows = numbered_rows(a, lengths.as<std::int32_t>(), device);
  std::size_t bytes = 0;
  const auto sort = [&](void* temporary) {
    SPMMBENCH_CUDA(cub::DeviceRadixSort::SortPairsDescending(
        temporary, bytes, static_cast<const std::int32_t*>(lengths.as<std::int32_t>()),
        sorted.as<std::int32_t>(), static_cast<const std::int32_t*>(rows.as<std::int32_t>()),
        order.as<std::int32_t>(), static_cast<std::int32_t>(a.rows), 0, 31, row_stream(device)));
  };
  sort(nullptr);
  const Buffer temporary = device.allocate(std::max<std::size_t>(bytes, 1));
  sort(temporary.data());
  device.synchronize();
  return order;
}

DeviceNonemptyRows split_empty_rows(const DeviceCsr& a, const Buffer& order, Device& device) {
  const Buffer natural = numbered_rows(a, nullptr, device);
  const Buffer& given = order.data() == nullptr ? natural : order;
  DeviceNonemptyRows out;
  out.count =
      choose_rows(given.as<std::int32_t>(), a.rows, HasLength<false>{a.row_ptr}, out.rows, device);
  out.empty_count = choose_rows(natural.as<std::int32_t>(), a.rows, HasLength<true>{a.row_ptr},
                                out.empty, device);
  return out;
}

Buffer rows_at_places(const std::int32_t* from, const Buffer& places, std::int64_t count,
                      Device& device) {
  Buffer to = device.allocate(count * sizeof(std::int32_t));
  look_up<<<row_ctas(count), kRowThreads, 0, row_stream(device)>>>(from, places.as<std::int32_t>(),
                                                                   to.as<std::int32_t>(), count);
  SPMMBENCH_CUDA_LAUNCHED();
  device.synchronize();
  return to;
}

}  // namespace spmmbench
