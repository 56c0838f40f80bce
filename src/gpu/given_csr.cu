// CSR of a caller on the device: one pass checks and converts it, and tells the host what it has
// found. Whether the columns of all rows
// ascend follows from two counts: of the entries whose column does not exceed that of the entry
// before, and of those among them that begin a row. They ascend where both are equal.

#include "gpu/given_csr.hpp"

#include <cuda_runtime.h>
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cub/device/device_radix_sort.cuh>
#include <limits>
#include <map>
#include <mutex>
#include <utility>

#include "core/greatest_magnitude.hpp"
#include "gpu/cuda_check.hpp"
#include "spmmbench/error.hpp"

namespace spmmbench {
namespace {

constexpr int kCsrThreads = 256;

// The legacy default stream: that of a device is ordered with it, and changing from one to the
// other would make each launch wait for the other stream.
constexpr cudaStream_t kStream = nullptr;

constexpr unsigned long long kNone = ~0ULL;
struct Findings {
  // The first of each kind; kNone: there is none.
  unsigned long long falls = kNone;    // row behind which row_ptr is less
  unsigned long long outside = kNone;  // entry whose column is not in [0, cols)
  // Entries of a row whose column does not exceed the one before, modulo 2^64.
  unsigned long long unsorted = 0;
  std::int64_t first = 0, last = 0;  // of row_ptr
};

// Where they are gathered. The CTA that arrives last leaves it as it was.
struct Gathered {
  Findings found;
  unsigned arrivals = 0;
};

template <class Function>
__device__ void visit_on_device(ElementType type, const Function& function) {
  switch (type) {
#define SPMMBENCH_CASE(id, ...) \
  case ElementType::id: return function(Element<ElementType::id>{});
    SPMMBENCH_ELEMENT_TYPES(SPMMBENCH_CASE)
#undef SPMMBENCH_CASE
  }
}

struct Values {
  const void* from;  // null: all are 1
  ElementType type;
  void* to;
  ElementType stored;
  Precision precision;
  float divisor;

  __device__ void convert(std::int64_t i) const {
    double value = 1;
    if (from != nullptr)
      visit_on_device(type, [&](auto element) {
        value = element.decode(static_cast<const typename decltype(element)::Bits*>(from)[i]);
      });
    visit_on_device(stored, [&](auto element) {
      using To = decltype(element);
      static_cast<typename To::Bits*>(to)[i] =
          To::encode(round_to(precision, static_cast<typename To::Value>(value / divisor)));
    });
  }
};

// Of the finite values, as bits of fp32, which ascend with it.
__global__ void __launch_bounds__(kCsrThreads)
    find_greatest(const void* values, ElementType type, std::int64_t count, unsigned* greatest) {
  constexpr unsigned kInfinity = 0x7F800000U, kMagnitude = 0x7FFFFFFFU;
  unsigned own = 0;
  const std::int64_t step = std::int64_t{gridDim.x} * kCsrThreads;
  for (std::int64_t i = std::int64_t{blockIdx.x} * kCsrThreads + threadIdx.x; i < count; i += step)
    visit_on_device(type, [&](auto element) {
      const auto value = static_cast<float>(
          element.decode(static_cast<const typename decltype(element)::Bits*>(values)[i]));
      const unsigned bits = __float_as_uint(value) & kMagnitude;
      if (bits < kInfinity) own = max(own, bits);
    });
  own = __reduce_max_sync(0xFFFFFFFFU, own);
  if (threadIdx.x % 32 == 0) atomicMax(greatest, own);
}

template <class Offset, class Column>
__global__ void __launch_bounds__(kCsrThreads)
    check_and_copy(const Offset* row_ptr, const Column* col_idx, std::int64_t rows,
                   std::int64_t cols, std::int64_t nnz, std::int64_t* row_ptr_out,
                   std::int32_t* col_idx_out, Values values, Gathered* gathered, Findings* told) {
  const std::int64_t step = std::int64_t{gridDim.x} * kCsrThreads;
  const bool checks = gathered != nullptr;
  Findings& found = gathered->found;
  int not_ascending = 0;  // less those that begin a row
  for (std::int64_t i = std::int64_t{blockIdx.x} * kCsrThreads + threadIdx.x; i <= max(rows, nnz);
       i += step) {
    if (i <= rows) {
      const auto begin = static_cast<std::int64_t>(row_ptr[i]);
      row_ptr_out[i] = begin;
      if (checks && i == 0) found.first = begin;
      if (checks && i == rows) found.last = begin;
      if (checks && i < rows) {
        const auto end = static_cast<std::int64_t>(row_ptr[i + 1]);
        if (end < begin) atomicMin(&found.falls, static_cast<unsigned long long>(i));
        if (begin < end && begin > 0 && begin < nnz)
          not_ascending -= col_idx[begin] <= col_idx[begin - 1] ? 1 : 0;
      }
    }
    if (i < nnz) {
      const auto column = static_cast<std::int64_t>(col_idx[i]);
      col_idx_out[i] = static_cast<std::int32_t>(column);
      values.convert(i);
      if (checks && (column < 0 || column >= cols))
        atomicMin(&found.outside, static_cast<unsigned long long>(i));
      if (checks && i > 0) not_ascending += col_idx[i] <= col_idx[i - 1] ? 1 : 0;
    }
  }
  if (!checks) return;
  __shared__ int of_cta;
  if (threadIdx.x == 0) of_cta = 0;
  __syncthreads();
  if (not_ascending != 0) atomicAdd(&of_cta, not_ascending);
  __syncthreads();
  if (threadIdx.x != 0) return;
  if (of_cta != 0)
    atomicAdd(&found.unsorted, static_cast<unsigned long long>(static_cast<std::int64_t>(of_cta)));
  __threadfence();
  if (atomicInc(&gathered->arrivals, gridDim.x - 1) != gridDim.x - 1) return;
  __threadfence();
  *told = found;
  found = Findings{};
}

__device__ std::int32_t row_of(const std::int64_t* row_ptr, std::int64_t rows, std::int64_t entry) {
  std::int64_t low = 0, high = rows;  // row_ptr[low] <= entry < row_ptr[high]
  while (high - low > 1) {
    const std::int64_t middle = (low + high) / 2;
    (row_ptr[middle] <= entry ? low : high) = middle;
  }
  return static_cast<std::int32_t>(low);
}

__global__ void find_repeated(DeviceCsr a, unsigned long long* first) {
  const std::int64_t i = std::int64_t{blockIdx.x} * kCsrThreads + threadIdx.x + 1;
  if (i < a.nnz && a.col_idx[i] == a.col_idx[i - 1] &&
      row_of(a.row_ptr, a.rows, i) == row_of(a.row_ptr, a.rows, i - 1))
    atomicMin(first, static_cast<unsigned long long>(i));
}

// Of each entry its row and, in the lower half, its number. Here neighbours look at the same
// offsets for it; once they are sorted, each looks elsewhere.
__global__ void number(DeviceCsr a, std::uint64_t* out) {
  const std::int64_t i = std::int64_t{blockIdx.x} * kCsrThreads + threadIdx.x;
  if (i < a.nnz)
    out[i] = std::uint64_t{static_cast<std::uint32_t>(row_of(a.row_ptr, a.rows, i))} << 32 |
             static_cast<std::uint32_t>(i);
}

// Of A^T: from the entries of A sorted by column, with the numbers of `number`. `source_of_a`: of
// each entry of A; null: the same.
template <class Bits>
__global__ void fill_transposed(DeviceCsr a, const std::int32_t* source_of_a,
                                const std::int32_t* sorted_columns, const std::uint64_t* numbers,
                                std::int32_t* source, std::int64_t* row_ptr, std::int32_t* col_idx,
                                Bits* values) {
  const std::int64_t i = std::int64_t{blockIdx.x} * kCsrThreads + threadIdx.x;
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

template <class From, class To>
__global__ void convert(const typename From::Bits* from, const std::int32_t* source,
                        typename To::Bits* to, Precision precision, std::int64_t count) {
  const std::int64_t i = std::int64_t{blockIdx.x} * kCsrThreads + threadIdx.x;
  if (i >= count) return;
  using Value = typename To::Value;
  const auto value =
      from == nullptr ? Value{1}
                      : static_cast<Value>(From::decode(from[source == nullptr ? i : source[i]]));
  to[i] = To::encode(round_to(precision, value));
}

unsigned blocks_for(std::int64_t threads) {
  return static_cast<unsigned>(
      std::max<std::int64_t>(1, (threads + kCsrThreads - 1) / kCsrThreads));
}

template <class T>
T read(Device& device, const T* at) {
  T out{};
  device.download(&out, at, sizeof out);
  return out;
}

// An index of either width.
std::int64_t read_index(Device& device, const void* indices, bool wide, std::int64_t at) {
  if (wide) return read(device, static_cast<const std::int64_t*>(indices) + at);
  return read(device, static_cast<const std::int32_t*>(indices) + at);
}

// Throws Error where the findings are none of a matrix, its columns apart.
void require_sound(const Findings& found, const GivenCsr& given, Device& device) {
  if (found.first != 0)
    throw Error(fmt::format("spmmbench_csr: expected row pointers from 0, got {}", found.first));
  if (found.falls != kNone)
    throw Error(fmt::format("spmmbench_csr: row_ptr falls at row {}", found.falls));
  if (found.last != given.nnz)
    throw Error(
        fmt::format("spmmbench_csr: row_ptr ends with {}, nnz is {}", found.last, given.nnz));
  if (found.outside != kNone) {
    const auto entry = static_cast<std::int64_t>(found.outside);
    throw Error(fmt::format("spmmbench_csr: index {} is not in [0, {}]: column of entry {}",
                            read_index(device, given.col_idx, given.wide_col_idx, entry),
                            given.cols - 1, entry));
  }
}

void require_no_repetition(const DeviceCsr& a, Device& device) {
  const Buffer first = device.allocate(sizeof(unsigned long long));
  device.fill_bytes(first.data(), 0xFF, first.bytes());
  find_repeated<<<blocks_for(a.nnz), kCsrThreads, 0, kStream>>>(a, first.as<unsigned long long>());
  SPMMBENCH_CUDA_LAUNCHED();
  const auto entry = static_cast<std::int64_t>(read(device, first.as<unsigned long long>()));
  if (entry < 0) return;
  // The row by the offsets that the device has: as many reads as its number has bits.
  std::int64_t low = 0, high = a.rows;
  while (high - low > 1) {
    const std::int64_t middle = (low + high) / 2;
    (read(device, a.row_ptr + middle) <= entry ? low : high) = middle;
  }
  throw Error(fmt::format("spmmbench_csr: row {}: column {} appears twice", low,
                          read(device, a.col_idx + entry)));
}

template <class Function>
void with_index_types(const GivenCsr& given, const Function& function) {
  const auto of_offsets = [&](auto* row_ptr) {
    if (given.wide_col_idx) function(row_ptr, static_cast<const std::int64_t*>(given.col_idx));
    else function(row_ptr, static_cast<const std::int32_t*>(given.col_idx));
  };
  if (given.wide_row_ptr) of_offsets(static_cast<const std::int64_t*>(given.row_ptr));
  else of_offsets(static_cast<const std::int32_t*>(given.row_ptr));
}

void require_arrays(const GivenCsr& given, Device& device) {
  const std::int64_t value_bytes = static_cast<std::int64_t>(bytes_of(given.value_type));
  require_device_memory(given.row_ptr, (given.rows + 1) * (given.wide_row_ptr ? 8 : 4),
                        "spmmbench_csr.row_ptr", device);
  require_device_memory(given.col_idx, given.nnz * (given.wide_col_idx ? 8 : 4),
                        "spmmbench_csr.col_idx", device);
  if (given.values != nullptr)
    require_device_memory(given.values, given.nnz * value_bytes, "spmmbench_csr.values", device);
}

}  // namespace

void require_device_memory(const void* data, std::int64_t bytes, const char* what, Device& device) {
  if (bytes == 0) return;
  if (data == nullptr) throw Error(fmt::format("{} is NULL", what));
  for (const std::int64_t at : {std::int64_t{0}, bytes - 1}) {
    cudaPointerAttributes attributes{};
    const cudaError_t error =
        cudaPointerGetAttributes(&attributes, static_cast<const char*>(data) + at);
    if (error != cudaSuccess) (void)cudaGetLastError();
    const bool there =
        error == cudaSuccess && attributes.device == device.info().index &&
        (attributes.type == cudaMemoryTypeDevice || attributes.type == cudaMemoryTypeManaged);
    if (!there)
      throw Error(fmt::format("{}: byte {} of {} is not memory of GPU {}", what, at, bytes,
                              device.info().index));
  }
}

namespace {

// What checks on a device need, for one at a time. Kept until the program ends.
struct Checks {
  std::mutex mutex;
  Gathered* gathered = nullptr;
  Findings* told = nullptr;  // on the host

  Checks() {
    constexpr Gathered kNothing;
    SPMMBENCH_CUDA(cudaMalloc(&gathered, sizeof kNothing));
    SPMMBENCH_CUDA(cudaMemcpy(gathered, &kNothing, sizeof kNothing, cudaMemcpyHostToDevice));
    SPMMBENCH_CUDA(cudaMallocHost(&told, sizeof *told));
  }
};

Checks& checks_of(const Device& device) {
  static std::mutex mutex;
  static auto& all = *new std::map<int, Checks>;
  const std::scoped_lock lock(mutex);
  return all[device.info().index];
}

float greatest_on_device(const GivenCsr& given, unsigned blocks, Device& device) {
  const Buffer greatest = device.allocate(sizeof(unsigned));
  device.fill_bytes(greatest.data(), 0, greatest.bytes());
  find_greatest<<<blocks, kCsrThreads, 0, kStream>>>(given.values, given.value_type, given.nnz,
                                                     greatest.as<unsigned>());
  SPMMBENCH_CUDA_LAUNCHED();
  return std::bit_cast<float>(read(device, greatest.as<unsigned>()));
}

// Enqueues a copy and, unless `checks` is null, its check.
ReorderedCsr enqueue_reading(const GivenCsr& given, Precision precision, Checks* checks,
                             Device& device) {
  const auto count = static_cast<std::size_t>(given.nnz);
  const ElementType stored = storage_type(precision);
  Buffer row_ptr = device.allocate((given.rows + 1) * sizeof(std::int64_t));
  Buffer col_idx = device.allocate(count * sizeof(std::int32_t));
  Buffer values = device.allocate(count * bytes_of(stored));
  constexpr std::int64_t kBlocksPerSm = 8;  // as many as an SM holds
  const auto blocks = static_cast<unsigned>(std::min<std::int64_t>(
      blocks_for(std::max(given.rows, given.nnz) + 1), kBlocksPerSm * device.info().sm_count));
  const float divisor =
      is_scaled(precision) && given.value_type != stored && given.values != nullptr
          ? nonzero_scale_of(precision, greatest_on_device(given, blocks, device))
          : 1.0F;
  with_index_types(given, [&](const auto* offsets, const auto* columns) {
    check_and_copy<<<blocks, kCsrThreads, 0, kStream>>>(
        offsets, columns, given.rows, given.cols, given.nnz, row_ptr.as<std::int64_t>(),
        col_idx.as<std::int32_t>(),
        Values{given.values, given.value_type, values.data(), stored, precision, divisor},
        checks == nullptr ? nullptr : checks->gathered, checks == nullptr ? nullptr : checks->told);
    SPMMBENCH_CUDA_LAUNCHED();
  });
  return {CsrOnDevice(given.rows, given.cols, given.nnz, stored, std::move(row_ptr),
                      std::move(col_idx), std::move(values)),
          {},
          given.scale * divisor};
}

// Waits for what was enqueued. Whether the columns of each row ascend. Throws Error where the
// arrays are no matrix.
bool ascends(const Checks& checks, const GivenCsr& given, Device& device) {
  SPMMBENCH_CUDA(cudaStreamSynchronize(kStream));
  require_sound(*checks.told, given, device);
  return checks.told->unsorted == 0;
}

// Whatever the arrays of `given` hold, nothing outside of them is read.
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
  number<<<blocks_for(a.nnz), kCsrThreads, 0, kStream>>>(a, numbers.as<std::uint64_t>());
  SPMMBENCH_CUDA_LAUNCHED();
  if (count > 0) {
    const int bits =
        std::bit_width(static_cast<std::uint64_t>(std::max<std::int64_t>(a.cols - 1, 1)));
    std::size_t bytes = 0;
    const auto sort = [&](void* temporary) {
      SPMMBENCH_CUDA(cub::DeviceRadixSort::SortPairs(
          temporary, bytes, a.col_idx, sorted_columns.as<std::int32_t>(),
          static_cast<const std::uint64_t*>(numbers.as<std::uint64_t>()),
          sorted_numbers.as<std::uint64_t>(), static_cast<std::int32_t>(count), 0, bits, kStream));
    };
    sort(nullptr);
    const Buffer temporary = device.allocate(std::max<std::size_t>(bytes, 1));
    sort(temporary.data());
  }
  visit_element(a.value_type, [&](auto element) {
    using Bits = typename decltype(element)::Bits;
    fill_transposed<<<blocks_for(std::max(a.nnz, a.cols + 1)), kCsrThreads, 0, kStream>>>(
        a, given_source, sorted_columns.as<std::int32_t>(), sorted_numbers.as<std::uint64_t>(),
        source.as<std::int32_t>(), row_ptr.as<std::int64_t>(), col_idx.as<std::int32_t>(),
        values.as<Bits>());
    SPMMBENCH_CUDA_LAUNCHED();
  });
  return {CsrOnDevice(a.cols, a.rows, a.nnz, a.value_type, std::move(row_ptr), std::move(col_idx),
                      std::move(values)),
          std::move(source), scale};
}
ReorderedCsr enqueue_transpose(const ReorderedCsr& given, Device& device) {
  return enqueue_transpose(given.a.view(), given.source.as<std::int32_t>(), given.scale, device);
}

// Twice transposed, a matrix is itself with ascending columns.
ReorderedCsr sorted(ReorderedCsr a, Device& device) {
  a = transpose_on_device(a, device);
  a = transpose_on_device(a, device);
  require_no_repetition(a.a.view(), device);
  return a;
}

}  // namespace

ReorderedCsr read_csr_on_device(const GivenCsr& given, Precision precision, Device& device) {
  if (!given.checked) return enqueue_reading(given, precision, nullptr, device);
  require_arrays(given, device);
  Checks& checks = checks_of(device);
  std::unique_lock lock(checks.mutex);
  ReorderedCsr as_given = enqueue_reading(given, precision, &checks, device);
  if (ascends(checks, given, device)) return as_given;
  lock.unlock();
  return sorted(std::move(as_given), device);
}

ReorderedCsr read_transposed_on_device(const GivenCsr& given, Precision precision, Device& device) {
  if (!given.checked)
    return enqueue_transpose(enqueue_reading(given, precision, nullptr, device), device);
  require_arrays(given, device);
  Checks& checks = checks_of(device);
  std::unique_lock lock(checks.mutex);
  ReorderedCsr as_given = enqueue_reading(given, precision, &checks, device);
  ReorderedCsr transposed = enqueue_transpose(as_given, device);
  if (ascends(checks, given, device)) return transposed;
  lock.unlock();
  return transpose_on_device(sorted(std::move(as_given), device), device);
}

ReorderedCsr transpose_on_device(const DeviceCsr& a, Device& device) {
  ReorderedCsr transposed = enqueue_transpose(a, nullptr, a.scale, device);
  SPMMBENCH_CUDA(cudaStreamSynchronize(kStream));
  return transposed;
}

ReorderedCsr transpose_on_device(const ReorderedCsr& a, Device& device) {
  ReorderedCsr transposed = enqueue_transpose(a, device);
  SPMMBENCH_CUDA(cudaStreamSynchronize(kStream));
  return transposed;
}

void convert_values(const void* from, ElementType type, const std::int32_t* source, void* to,
                    Precision precision, std::int64_t count, Stream stream) {
  if (count == 0) return;
  visit_element(type, [&](auto of_from) {
    visit_element(storage_type(precision), [&](auto of_to) {
      using From = decltype(of_from);
      using To = decltype(of_to);
      convert<From, To>
          <<<blocks_for(count), kCsrThreads, 0, static_cast<cudaStream_t>(stream.handle)>>>(
              static_cast<const typename From::Bits*>(from), source,
              static_cast<typename To::Bits*>(to), precision, count);
      SPMMBENCH_CUDA_LAUNCHED();
    });
  });
}

}  // namespace spmmbench
