// Each place in the order of the rows gets a key: the length of a residual row, 0 for an empty one,
// or more for a row in a window. A stable sort by the key gives all lists at once.

#include "common/device_arrays.hpp"
#include "rsh/device_partition.hpp"

#include <cuda_runtime.h>

#include <algorithm>
#include <array>
#include <cub/device/device_radix_sort.cuh>
#include <utility>

#include "common/memory_layout.hpp"
#include "format/wcsr.hpp"
#include "gpu/cuda_check.hpp"
#include "row_order/degree_order.hpp"
#include "window/device_survey.hpp"

namespace spmmbench::rsh {
namespace {

constexpr int kThreads = 256;
constexpr int kInWindow = Residual::kLengths, kKeyBits = 6;
static_assert(kInWindow < 1 << kKeyBits);

unsigned ctas_for(std::int64_t threads) {
  return static_cast<unsigned>(std::max<std::int64_t>(1, (threads + kThreads - 1) / kThreads));
}
// Rows of A by place.
struct Places {
  DeviceCsr a;
  const std::int32_t* order;  // null: as they come

  __device__ std::int32_t row(std::int64_t place) const {
    return order == nullptr ? static_cast<std::int32_t>(place) : order[place];
  }
  __device__ std::int64_t length(std::int32_t row) const {
    return a.row_ptr[row + 1] - a.row_ptr[row];
  }
  __device__ bool holds(std::int32_t row, std::int32_t column) const {
    std::int64_t first = a.row_ptr[row];
    const std::int64_t end = a.row_ptr[row + 1];
    for (std::int64_t last = end; first < last;) {
      const std::int64_t middle = first + (last - first) / 2;
      if (a.col_idx[middle] < column) first = middle + 1;
      else last = middle;
    }
    return first < end && a.col_idx[first] == column;
  }
  // Columns of the row at `place` that one of the rows at the next places holds, up to `end`.
  __device__ int shared_columns(std::int64_t place, std::int64_t end) const {
    const std::int32_t own = row(place);
    int shared = 0;
    for (std::int64_t at = a.row_ptr[own]; at < a.row_ptr[own + 1]; ++at) {
      bool found = false;
      for (std::int64_t other = place + 1; other < end && !found; ++other)
        found = holds(row(other), a.col_idx[at]);
      shared += found ? 1 : 0;
    }
    return shared;
  }
};

// Keys and rows of all places, and how many places each key has.
__global__ void __launch_bounds__(kThreads)
    give_keys(Places places, RsPartitionOptions options, unsigned char* keys, std::int32_t* rows,
              std::int32_t* counts) {
  const std::int64_t place = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (place >= places.a.rows) return;
  const std::int32_t row = places.row(place);
  const std::int64_t length = places.length(row);
  int key = length == 0 ? 0 : kInWindow;
  if (length > 0 && length <= options.tau_nnz) {
    const auto entries = static_cast<int>(length);
    const int shared =
        places.shared_columns(place, min(places.a.rows, place + options.window_rows));
    const int counted = options.rule == RsRule::printed ? entries - shared : shared;
    if (counted <= options.tau_delta) key = entries;
  }
  keys[place] = static_cast<unsigned char>(key);
  rows[place] = row;
  const unsigned alike = __match_any_sync(__activemask(), key);
  if (static_cast<int>(threadIdx.x) % 32 == __ffs(static_cast<int>(alike)) - 1)
    atomicAdd(counts + key, __popc(alike));
}

template <class Bits>
__global__ void __launch_bounds__(kThreads)
    gather_residual(DeviceCsr a, const std::int32_t* rows, const unsigned char* keys,
                    Residual residual, std::int32_t* cols, Bits* values) {
  const std::int32_t index = static_cast<std::int32_t>(blockIdx.x * kThreads + threadIdx.x);
  if (index >= residual.count) return;
  const int length = keys[index];
  const std::int32_t to = residual.entry[length] + (index - residual.first[length]) * length;
  const std::int64_t from = a.row_ptr[rows[index]];
  for (int i = 0; i < length; ++i) {
    cols[to + i] = a.col_idx[from + i];
    values[to + i] = static_cast<const Bits*>(a.values)[from + i];
  }
}

__global__ void __launch_bounds__(kThreads)
    count_short(const std::int64_t* row_ptr, std::int64_t rows, int most, std::int32_t* count) {
  const std::int64_t row = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  const std::int64_t length = row < rows ? row_ptr[row + 1] - row_ptr[row] : 0;
  const int of_cta = __syncthreads_count(length > 0 && length <= most);
  if (threadIdx.x == 0 && of_cta > 0) atomicAdd(count, of_cta);
}

Buffer copied(const std::int32_t* from, std::int64_t count, Device& device) {
  Buffer to = device.allocate(count * sizeof(std::int32_t));
  if (count > 0)
    SPMMBENCH_CUDA(
        cudaMemcpyAsync(to.data(), from, to.bytes(), cudaMemcpyDeviceToDevice, stream_of(device)));
  return to;
}

// Where the rows of each length begin, and their entries.
void set_lengths(const std::array<std::int32_t, kInWindow + 1>& counts, DevicePartition& out) {
  Residual& residual = out.residual;
  std::int32_t rows = 0, entries = 0;
  for (int length = 0; length < Residual::kLengths; ++length) {
    residual.first[length] = rows;
    residual.entry[length] = entries;
    rows += counts[length];
    entries += counts[length] * length;
  }
  residual.first[Residual::kLengths] = rows;
  residual.count = rows;
  out.residual_entries = entries;
}

// No row is residual but an empty one.
DevicePartition leave_out_empty_rows(const DeviceCsr& a, const Buffer& order, Device& device) {
  DevicePartition out;
  out.row_count = a.rows;
  if (a.nnz > 0 && share_of_empty_rows(a, device) >= kLeastEmptyShare) {
    DeviceNonemptyRows nonempty = split_empty_rows(a, order, device);
    out.rows = std::move(nonempty.rows);
    out.row_count = nonempty.count;
    out.residual_rows = std::move(nonempty.empty);
    set_lengths({static_cast<std::int32_t>(nonempty.empty_count)}, out);
  } else if (order.data() != nullptr) {
    out.rows = copied(order.as<std::int32_t>(), a.rows, device);
    device.synchronize();
  }
  return out;
}

}  // namespace

DevicePartition partition_rows(const DeviceCsr& a, const Buffer& order,
                               const RsPartitionOptions& options, Device& device) {
  if (options.tau_nnz == 0) return leave_out_empty_rows(a, order, device);
  const cudaStream_t stream = stream_of(device);
  const auto places = static_cast<std::int32_t>(a.rows);
  std::size_t sort_bytes = 0;
  const auto sort = [&](void* temporary, const unsigned char* keys, unsigned char* sorted_keys,
                        const std::int32_t* rows, std::int32_t* sorted_rows) {
    SPMMBENCH_CUDA(cub::DeviceRadixSort::SortPairs(temporary, sort_bytes, keys, sorted_keys, rows,
                                                   sorted_rows, places, 0, kKeyBits, stream));
  };
  sort(nullptr, nullptr, nullptr, nullptr, nullptr);
  std::array<std::int32_t, kInWindow + 1> counts{};
  MemoryLayout layout;
  const std::size_t of_rows = a.rows * sizeof(std::int32_t);
  const std::size_t counts_at = layout.add(sizeof counts), keys_at = layout.add(a.rows),
                    sorted_keys_at = layout.add(a.rows), rows_at = layout.add(of_rows),
                    sorted_rows_at = layout.add(of_rows),
                    temporary_at = layout.add(std::max<std::size_t>(sort_bytes, 1));
  const Buffer scratch = device.allocate(layout.bytes());
  auto* const keys = array_at<unsigned char>(scratch, keys_at);
  auto* const sorted_keys = array_at<unsigned char>(scratch, sorted_keys_at);
  auto* const rows = array_at<std::int32_t>(scratch, rows_at);
  auto* const sorted_rows = array_at<std::int32_t>(scratch, sorted_rows_at);
  auto* const counted = array_at<std::int32_t>(scratch, counts_at);
  device.fill_bytes(counted, 0, sizeof counts);
  give_keys<<<ctas_for(a.rows), kThreads, 0, stream>>>(Places{a, order.as<std::int32_t>()}, options,
                                                       keys, rows, counted);
  SPMMBENCH_CUDA_LAUNCHED();
  sort(array_at<void>(scratch, temporary_at), keys, sorted_keys, rows, sorted_rows);
  device.download(counts.data(), counted, sizeof counts);

  DevicePartition out;
  set_lengths(counts, out);
  out.row_count = counts[kInWindow];
  out.residual_rows = copied(sorted_rows, out.residual.count, device);
  out.rows = copied(sorted_rows + out.residual.count, out.row_count, device);
  out.residual_cols = device.allocate(out.residual_entries * sizeof(std::int32_t));
  out.residual_values = device.allocate(out.residual_entries * bytes_of(a.value_type));
  if (out.residual_entries > 0)
    visit_element(a.value_type, [&](auto element) {
      using Bits = typename decltype(element)::Bits;
      gather_residual<<<ctas_for(out.residual.count), kThreads, 0, stream>>>(
          a, sorted_rows, sorted_keys, out.residual, out.residual_cols.as<std::int32_t>(),
          out.residual_values.as<Bits>());
      SPMMBENCH_CUDA_LAUNCHED();
    });
  device.synchronize();  // before `scratch` goes
  return out;
}

std::int64_t count_short_rows(const DeviceCsr& a, int most, Device& device) {
  const Buffer counted = device.allocate(sizeof(std::int32_t));
  device.fill_bytes(counted.data(), 0, counted.bytes());
  count_short<<<ctas_for(a.rows), kThreads, 0, stream_of(device)>>>(a.row_ptr, a.rows, most,
                                                                    counted.as<std::int32_t>());
  SPMMBENCH_CUDA_LAUNCHED();
  std::int32_t count = 0;
  device.download(&count, counted.data(), sizeof count);
  return count;
}

}  // namespace spmmbench::rsh
