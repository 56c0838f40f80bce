#include "row_order/degree_order.hpp"

#include <cuda_runtime.h>

#include <thrust/iterator/counting_iterator.h>
#include <algorithm>
#include <bit>
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_select.cuh>

#include "common/memory_layout.hpp"
#include "gpu/cuda_check.hpp"
#include "gpu/told_to_host.hpp"
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
  lengths[row] = static_cast<std::int32_t>(a.row_ptr[row + 1] - a.row_ptr[row]);
}

template <class T>
__global__ void look_up(const T* from, const std::int32_t* places, T* to, std::int64_t count) {
  const std::int64_t i = std::int64_t{blockIdx.x} * kRowThreads + threadIdx.x;
  if (i < count) to[i] = from[places[i]];
}

template <bool kEmpty>
struct HasLength {
  const std::int64_t* row_ptr;
  __device__ bool operator()(std::int32_t row) const {
    return (row_ptr[row + 1] == row_ptr[row]) == kEmpty;
  }
};

// Enqueues: the rows of `from` that `chosen` takes, in `to`, and how many. Returns memory that is
// in use until then.
template <class From, class Chosen>
[[nodiscard]] Buffer choose_rows(From from, std::int64_t rows, const Chosen& chosen,
                                 std::int32_t* to, std::int32_t* count, Device& device) {
  std::size_t bytes = 0;
  const auto choose = [&](void* temporary) {
    SPMMBENCH_CUDA(cub::DeviceSelect::If(temporary, bytes, from, to, count,
                                         static_cast<std::int32_t>(rows), chosen,
                                         row_stream(device)));
  };
  choose(nullptr);
  Buffer temporary = device.allocate(std::max<std::size_t>(bytes, 1));
  choose(temporary.data());
  return temporary;
}

}  // namespace

Buffer degree_order(const DeviceCsr& a, Device& device) {
  if (a.nnz > INT32_MAX) throw Error("rows of 2^31 nonzeros and more are not sorted by length");
  // No row is longer than A is wide. The sort takes a pass for each 8 bits.
  const int bits = std::bit_width(static_cast<std::uint64_t>(std::min(a.cols, a.nnz)));
  const auto rows = static_cast<std::int32_t>(a.rows);
  std::size_t bytes = 0;
  const auto sort = [&](void* temporary, const std::int32_t* lengths, std::int32_t* sorted,
                        const std::int32_t* natural, std::int32_t* order) {
    SPMMBENCH_CUDA(
        cub::DeviceRadixSort::SortPairsDescending(temporary, bytes, lengths, sorted, natural, order,
                                                  rows, 0, std::max(bits, 1), row_stream(device)));
  };
  sort(nullptr, nullptr, nullptr, nullptr, nullptr);
  MemoryLayout layout;
  const std::size_t each = a.rows * sizeof(std::int32_t);
  const std::size_t natural_at = layout.add(each), lengths_at = layout.add(each),
                    sorted_at = layout.add(each),
                    temporary_at = layout.add(std::max<std::size_t>(bytes, 1));
  const Buffer scratch = device.allocate(layout.bytes());
  Buffer order = device.allocate(each);
  auto* const natural = array_at<std::int32_t>(scratch, natural_at);
  auto* const lengths = array_at<std::int32_t>(scratch, lengths_at);
  number_rows_and_lengths<<<row_ctas(a.rows), kRowThreads, 0, row_stream(device)>>>(a, natural,
                                                                                    lengths);
  SPMMBENCH_CUDA_LAUNCHED();
  sort(array_at<void>(scratch, temporary_at), lengths, array_at<std::int32_t>(scratch, sorted_at),
       natural, order.as<std::int32_t>());
  return order;
}

DeviceNonemptyRows split_empty_rows(const DeviceCsr& a, const Buffer& order, Device& device) {
  struct Told {
    std::int32_t count, empty;
  };
  const ToldToHost there(device);
  auto* const told = there.as<Told>();
  const thrust::counting_iterator<std::int32_t> natural(0);
  DeviceNonemptyRows out;
  out.rows = device.allocate(a.rows * sizeof(std::int32_t));
  out.empty = device.allocate(a.rows * sizeof(std::int32_t));
  const auto choose_nonempty = [&](auto from) {
    return choose_rows(from, a.rows, HasLength<false>{a.row_ptr}, out.rows.as<std::int32_t>(),
                       &told->count, device);
  };
  const Buffer of_nonempty = order.data() == nullptr
                                 ? choose_nonempty(natural)
                                 : choose_nonempty(order.as<const std::int32_t>());
  const Buffer of_empty = choose_rows(natural, a.rows, HasLength<true>{a.row_ptr},
                                      out.empty.as<std::int32_t>(), &told->empty, device);
  device.synchronize();
  const Told found = there.read<Told>();
  out.count = found.count;
  out.empty_count = found.empty;
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

Buffer row_pointers_at(const DeviceCsr& a, const Buffer& rows, std::int64_t count, Device& device) {
  Buffer to = device.allocate((count + 1) * sizeof(std::int64_t));
  auto* const begins = to.as<std::int64_t>();
  look_up<<<row_ctas(count), kRowThreads, 0, row_stream(device)>>>(
      a.row_ptr, rows.as<std::int32_t>(), begins, count);
  SPMMBENCH_CUDA_LAUNCHED();
  SPMMBENCH_CUDA(cudaMemcpyAsync(begins + count, a.row_ptr + a.rows, sizeof *begins,
                                 cudaMemcpyDeviceToDevice, row_stream(device)));
  return to;
}

}  // namespace spmmbench
