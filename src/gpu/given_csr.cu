// CSR of a caller on the device: one pass checks and converts it, and tells the host what it has
// found. Whether the columns of all rows ascend follows from two counts: of the entries whose
// column does not exceed that of the entry before, and of those among them that begin a row. They
// ascend where both are equal.
//
// If the host does not wait for the check, the CTA that arrives last replaces invalid arrays by a
// matrix with which nothing outside of them is read or written, before any later kernel reads them.

#include "gpu/given_csr.hpp"

#include <cuda_runtime.h>
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "core/greatest_magnitude.hpp"
#include "gpu/cuda_check.hpp"
#include "gpu/new_values.cuh"
#include "gpu/row_of_entry.cuh"
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

  __host__ __device__ bool sound(std::int64_t nnz) const {
    return first == 0 && falls == kNone && last == nnz && outside == kNone;
  }
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
    if (divisor != 1) value /= divisor;
    visit_on_device(stored, [&](auto element) {
      using To = decltype(element);
      static_cast<typename To::Bits*>(to)[i] =
          rounded<To>(static_cast<typename To::Value>(value), precision);
    });
  }
};

// Finds the greatest magnitude of the finite values. It is kept as bits of fp32, which ascend with
// the magnitude.
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

// By all threads of a CTA: all entries are in the last row and in column 0.
__device__ void make_harmless(std::int64_t rows, std::int64_t nnz, std::int64_t* row_ptr,
                              std::int32_t* col_idx) {
  for (std::int64_t i = threadIdx.x; i <= rows; i += kCsrThreads) row_ptr[i] = i < rows ? 0 : nnz;
  for (std::int64_t i = threadIdx.x; i < nnz; i += kCsrThreads) col_idx[i] = 0;
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
  __shared__ bool unsound;
  if (threadIdx.x == 0) {
    of_cta = 0;
    unsound = false;
  }
  __syncthreads();
  if (not_ascending != 0) atomicAdd(&of_cta, not_ascending);
  __syncthreads();
  if (threadIdx.x == 0) {
    if (of_cta != 0)
      atomicAdd(&found.unsorted,
                static_cast<unsigned long long>(static_cast<std::int64_t>(of_cta)));
    __threadfence();
    if (atomicInc(&gathered->arrivals, gridDim.x - 1) == gridDim.x - 1) {
      __threadfence();
      unsound = !found.sound(nnz);
      *told = found;
      found = Findings{};
    }
  }
  __syncthreads();
  if (unsound) make_harmless(rows, nnz, row_ptr_out, col_idx_out);
}

__global__ void find_repeated(DeviceCsr a, unsigned long long* first) {
  const std::int64_t i = std::int64_t{blockIdx.x} * kCsrThreads + threadIdx.x + 1;
  if (i < a.nnz && a.col_idx[i] == a.col_idx[i - 1] &&
      row_of_entry(a.row_ptr, a.rows, i) == row_of_entry(a.row_ptr, a.rows, i - 1))
    atomicMin(first, static_cast<unsigned long long>(i));
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

// `transposed`: of the transpose of the matrix that is spoken of.
void require_no_repetition(const DeviceCsr& a, bool transposed, Device& device) {
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
  std::int64_t row = low, column = read(device, a.col_idx + entry);
  if (transposed) std::swap(row, column);
  throw Error(fmt::format("spmmbench_csr: row {}: column {} appears twice", row, column));
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

// Where checks gather what they find: they run one after the other, on one stream. Kept until the
// program ends.
Gathered* made_gathered() {
  constexpr Gathered kNothing;
  Gathered* out = nullptr;
  SPMMBENCH_CUDA(cudaMalloc(&out, sizeof kNothing));
  SPMMBENCH_CUDA(cudaMemcpy(out, &kNothing, sizeof kNothing, cudaMemcpyHostToDevice));
  return out;
}

Gathered* gathered_on(const Device& device) {
  static std::mutex mutex;
  static auto& all = *new std::map<int, Gathered*>;
  const std::scoped_lock lock(mutex);
  Gathered*& found = all[device.info().index];
  if (found == nullptr) found = made_gathered();
  return found;
}

// Memory of the host for the findings of a check, with an event. A check that nobody has waited for
// may still write to it, so it goes to other checks alone, which write behind it. Both are kept
// until the program ends, since making them takes as long as a launch.
class ToldFindings {
 public:
  explicit ToldFindings(const Device& device) {
    const std::scoped_lock lock(mutex());
    free_ = &free_of(device);
    if (free_->empty()) add_to(*free_);
    told_ = free_->back();
    free_->pop_back();
  }
  ToldFindings(const ToldFindings&) = delete;
  ToldFindings& operator=(const ToldFindings&) = delete;
  ~ToldFindings() {
    const std::scoped_lock lock(mutex());
    free_->push_back(told_);
  }
  Findings* get() const { return told_.memory; }
  cudaEvent_t event() {
    if (told_.event == nullptr)
      SPMMBENCH_CUDA(cudaEventCreateWithFlags(&told_.event, cudaEventDisableTiming));
    return told_.event;
  }

 private:
  struct Told {
    Findings* memory = nullptr;
    cudaEvent_t event = nullptr;
  };
  using Free = std::vector<Told>;

  static std::mutex& mutex() {
    static std::mutex one;
    return one;
  }
  static Free& free_of(const Device& device) {
    static auto& all = *new std::map<int, Free>;
    return all[device.info().index];
  }
  static void add_to(Free& free) {
    constexpr std::size_t kAtOnce = 64;
    Findings* memory = nullptr;
    SPMMBENCH_CUDA(cudaMallocHost(&memory, kAtOnce * sizeof(Findings)));
    free.reserve(free.capacity() + kAtOnce);  // as many as there are
    for (std::size_t i = 0; i < kAtOnce; ++i) free.push_back({memory + i});
  }

  Free* free_;
  Told told_;
};

float greatest_on_device(const GivenCsr& given, unsigned blocks, Device& device) {
  const Buffer greatest = device.allocate(sizeof(unsigned));
  device.fill_bytes(greatest.data(), 0, greatest.bytes());
  find_greatest<<<blocks, kCsrThreads, 0, kStream>>>(given.values, given.value_type, given.nnz,
                                                     greatest.as<unsigned>());
  SPMMBENCH_CUDA_LAUNCHED();
  return std::bit_cast<float>(read(device, greatest.as<unsigned>()));
}

// Enqueues a copy and, unless `told` is null, its check, whose findings are written there.
ReorderedCsr enqueue_reading(const GivenCsr& given, Precision precision, Findings* told,
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
        told == nullptr ? nullptr : gathered_on(device), told);
    SPMMBENCH_CUDA_LAUNCHED();
  });
  return {CsrOnDevice(given.rows, given.cols, given.nnz, stored, std::move(row_ptr),
                      std::move(col_idx), std::move(values)),
          {},
          given.scale * divisor};
}

// Waits for what was enqueued. Whether the columns of each row ascend. Throws Error where the
// arrays are no matrix.
bool ascends(const ToldFindings& told, const GivenCsr& given, Device& device) {
  SPMMBENCH_CUDA(cudaStreamSynchronize(kStream));
  require_sound(*told.get(), given, device);
  return told.get()->unsorted == 0;
}

// Twice transposed, a matrix is itself with ascending columns.
ReorderedCsr sorted(ReorderedCsr a, Device& device) {
  a = transpose_on_device(a, device);
  a = transpose_on_device(a, device);
  require_no_repetition(a.a.view(), false, device);
  return a;
}

}  // namespace

ReorderedCsr read_csr_on_device(const GivenCsr& given, Precision precision, Device& device) {
  if (!given.checked) return enqueue_reading(given, precision, nullptr, device);
  require_arrays(given, device);
  const ToldFindings told(device);
  ReorderedCsr as_given = enqueue_reading(given, precision, told.get(), device);
  return ascends(told, given, device) ? std::move(as_given) : sorted(std::move(as_given), device);
}

ReorderedCsr read_transposed_on_device(const GivenCsr& given, Precision precision, Device& device) {
  if (!given.checked)
    return enqueue_transpose(enqueue_reading(given, precision, nullptr, device), device);
  require_arrays(given, device);
  const ToldFindings told(device);
  ReorderedCsr as_given = enqueue_reading(given, precision, told.get(), device);
  ReorderedCsr transposed = enqueue_transpose(as_given, device);
  if (ascends(told, given, device)) return transposed;
  return transpose_on_device(sorted(std::move(as_given), device), device);
}

namespace {

// Of what was enqueued when `mark` was called.
class WaitAhead : public PendingCheck {
 public:
  explicit WaitAhead(Device& device) : device_(device), told_(device) {}

  void mark() override {
    SPMMBENCH_CUDA(cudaEventRecord(told_.event(), kStream));
    marked_ = true;
  }
  void finish(ReorderedCsr&) override {
    if (marked_) SPMMBENCH_CUDA(cudaEventSynchronize(told_.event()));
    else SPMMBENCH_CUDA(cudaStreamSynchronize(kStream));
  }

 protected:
  Device& device_;
  ToldFindings told_;

 private:
  bool marked_ = false;
};

class CheckAhead final : public WaitAhead {
 public:
  CheckAhead(const GivenCsr& given, bool transposed, Device& device)
      : WaitAhead(device), given_(given), transposed_(transposed) {}
  Findings* told() const { return told_.get(); }

  void finish(ReorderedCsr& a) override {
    WaitAhead::finish(a);
    require_sound(*told(), given_, device_);
    if (told()->unsorted == 0) return;
    if (transposed_) require_no_repetition(a.a.view(), transposed_, device_);
    else sort_in_place(a);
  }

 private:
  void sort_in_place(ReorderedCsr& a) {
    ReorderedCsr ascending = enqueue_transpose(enqueue_transpose(a, device_), device_);
    require_no_repetition(ascending.a.view(), transposed_, device_);
    const DeviceCsr& from = ascending.a.view();
    const DeviceCsr& to = a.a.view();
    const auto copy = [](const void* there, const void* here, std::size_t bytes) {
      SPMMBENCH_CUDA(cudaMemcpyAsync(const_cast<void*>(there), here, bytes,
                                     cudaMemcpyDeviceToDevice, kStream));
    };
    const auto count = static_cast<std::size_t>(to.nnz);
    copy(to.col_idx, from.col_idx, count * sizeof(std::int32_t));
    copy(a.a.values(), ascending.a.values(), count * bytes_of(to.value_type));
    SPMMBENCH_CUDA(cudaStreamSynchronize(kStream));
    a.source = std::move(ascending.source);
  }

  GivenCsr given_;
  bool transposed_;
};

CsrReadAhead read_ahead(const GivenCsr& given, bool transposed, Precision precision,
                        Device& device) {
  require_arrays(given, device);
  auto check = std::make_unique<CheckAhead>(given, transposed, device);
  ReorderedCsr a = enqueue_reading(given, precision, check->told(), device);
  if (transposed) a = enqueue_transpose(a, device);
  return {std::move(a), std::move(check)};
}

}  // namespace

CsrReadAhead read_csr_ahead(const GivenCsr& given, Precision precision, Device& device) {
  return read_ahead(given, false, precision, device);
}

CsrReadAhead read_transposed_ahead(const GivenCsr& given, Precision precision, Device& device) {
  return read_ahead(given, true, precision, device);
}

CsrReadAhead transpose_ahead(const ReorderedCsr& a, Device& device) {
  return {enqueue_transpose(a, device), std::make_unique<WaitAhead>(device)};
}

}  // namespace spmmbench
