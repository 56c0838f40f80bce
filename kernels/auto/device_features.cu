// Counts on a matrix on the device, from which its features follow.

#include "auto/device_features.hpp"
#include "common/device_arrays.hpp"

#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "gpu/cuda_check.hpp"
#include "select/row_overlap.hpp"
#include "window/device_survey.hpp"
#include "window/row_at_nonzero.cuh"

namespace spmmbench {
namespace {

constexpr int kThreads = 256;
constexpr std::int64_t kBandRows = 128, kBlockColumns = 64;

__global__ void find_longest(DeviceCsr a, unsigned long long* longest) {
  unsigned long long most = 0;
  for (std::int64_t row = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; row < a.rows;
       row += std::int64_t{gridDim.x} * blockDim.x)
    most = max(most, static_cast<unsigned long long>(a.row_ptr[row + 1] - a.row_ptr[row]));
  for (int lane = 16; lane > 0; lane /= 2)
    most = max(most, __shfl_xor_sync(0xFFFFFFFF, most, lane));
  if (threadIdx.x % 32 == 0) atomicMax(longest, most);
}

double longest_row_of(const DeviceCsr& a, Device& device) {
  constexpr std::int64_t kMostCtas = 512;
  const Buffer longest = device.allocate(sizeof(unsigned long long));
  device.fill_bytes(longest.data(), 0, longest.bytes());
  const auto ctas = std::min(kMostCtas, (a.rows + kThreads - 1) / kThreads);
  find_longest<<<static_cast<unsigned>(ctas), kThreads, 0, stream_of(device)>>>(
      a, longest.as<unsigned long long>());
  SPMMBENCH_CUDA_LAUNCHED();
  return static_cast<double>(downloaded<unsigned long long>(longest, device)[0]);
}

struct BandCount {
  std::int64_t blocks, nnz;
};

// A CTA for the band of each sampled row: its blocks with a nonzero, marked in shared memory.
__global__ void __launch_bounds__(kThreads) count_blocks(DeviceCsr a, int words, BandCount* out) {
  extern __shared__ unsigned seen[];
  __shared__ int blocks;
  const std::int64_t first =
      row_at_nonzero(a, static_cast<int>(blockIdx.x)) / kBandRows * kBandRows;
  const std::int64_t begin = a.row_ptr[first], end = a.row_ptr[min(first + kBandRows, a.rows)];
  for (int word = static_cast<int>(threadIdx.x); word < words; word += kThreads) seen[word] = 0;
  if (threadIdx.x == 0) blocks = 0;
  __syncthreads();
  for (std::int64_t e = begin + threadIdx.x; e < end; e += kThreads) {
    const auto block = static_cast<unsigned>(a.col_idx[e] / kBlockColumns);
    atomicOr(seen + block / 32, 1U << block % 32);
  }
  __syncthreads();
  int own = 0;
  for (int word = static_cast<int>(threadIdx.x); word < words; word += kThreads)
    own += __popc(seen[word]);
  atomicAdd(&blocks, own);
  __syncthreads();
  if (threadIdx.x == 0) out[blockIdx.x] = {blocks, end - begin};
}

// Where shared memory cannot mark all blocks of a band, they are as good as empty.
void count_blocks_of(const DeviceCsr& a, Device& device, MatrixFeatures& out) {
  constexpr std::int64_t kMostBytes = 48 << 10;
  const std::int64_t words = a.cols / kBlockColumns / 32 + 1;
  if (words * std::int64_t{sizeof(unsigned)} > kMostBytes) return;
  const Buffer counts = device.allocate(kSampledRows * sizeof(BandCount));
  count_blocks<<<kSampledRows, kThreads, words * sizeof(unsigned), stream_of(device)>>>(
      a, static_cast<int>(words), counts.as<BandCount>());
  SPMMBENCH_CUDA_LAUNCHED();
  double slots_per_nonzero = 0;
  for (const BandCount& band : downloaded<BandCount>(counts, device)) {
    out.band_blocks += static_cast<double>(band.blocks) / kSampledRows;
    slots_per_nonzero += static_cast<double>(band.blocks * kBandRows * kBlockColumns) /
                         static_cast<double>(band.nnz) / kSampledRows;
  }
  out.block_fill = std::min(1.0, 1 / slots_per_nonzero);
}

// Whether the bits of a floating-point number are those of 0 or -0.
__device__ bool is_zero(const void* values, std::size_t bytes, std::int64_t e) {
  switch (bytes) {
    case 1: return (static_cast<const std::uint8_t*>(values)[e] & 0x7FU) == 0;
    case 2: return (static_cast<const std::uint16_t*>(values)[e] & 0x7FFFU) == 0;
    case 4: return (static_cast<const std::uint32_t*>(values)[e] & 0x7FFFFFFFU) == 0;
    default: return (static_cast<const std::uint64_t*>(values)[e] << 1) == 0;
  }
}

// A CTA for the first entries of each sampled row: the most nonzeros in four neighbouring columns.
__global__ void find_most_of_four(DeviceCsr a, std::size_t value_bytes, int* most) {
  const std::int64_t row = row_at_nonzero(a, static_cast<int>(blockIdx.x));
  const std::int64_t first = a.row_ptr[row], end = min(a.row_ptr[row + 1], first + blockDim.x);
  const std::int64_t own = first + threadIdx.x;
  if (own >= end) return;
  int nonzeros = 0;
  for (std::int64_t e = own; e < end && a.col_idx[e] / 4 == a.col_idx[own] / 4; ++e)
    nonzeros += is_zero(a.values, value_bytes, e) ? 0 : 1;
  atomicMax(most, nonzeros);
}

double most_of_four_of(const DeviceCsr& a, Device& device) {
  constexpr int kMostEntries = 64;  // of a row
  const Buffer most = device.allocate(sizeof(int));
  device.fill_bytes(most.data(), 0, most.bytes());
  find_most_of_four<<<kSampledRows, kMostEntries, 0, stream_of(device)>>>(a, bytes_of(a.value_type),
                                                                          most.as<int>());
  SPMMBENCH_CUDA_LAUNCHED();
  return std::max(1, downloaded<int>(most, device)[0]);
}

// Columns of sampled rows, for which other rows are sought.
constexpr int kProbedRows = 16, kProbesOfRow = 2, kProbes = kProbedRows * kProbesOfRow;
constexpr int kOthers = 2;  // rows that are compared for each probe
constexpr int kSlotBits = 12;
constexpr unsigned long long kNone = ~0ULL;
constexpr int kEntryBits = 40;  // of the number of an entry, below those of its hash

struct Probe {
  std::int32_t column;      // -1: none
  std::int64_t begin, end;  // the entries of its row
};

__device__ unsigned hashed(std::uint64_t value, unsigned seed) {
  value = (value + seed) * 0x9E3779B97F4A7C15ULL;
  return static_cast<unsigned>((value ^ value >> 29) * 0xBF58476D1CE4E5B9ULL >> 32);
}

__device__ Probe probe_at(const DeviceCsr& a, int index) {
  constexpr int kEvery = kSampledRows / kProbedRows;
  const int sample = index / kProbesOfRow * kEvery + kEvery / 2;
  const std::int64_t row = row_at_nonzero(a, sample);
  const std::int64_t begin = a.row_ptr[row], end = a.row_ptr[row + 1];
  const bool again = sample >= kEvery && row_at_nonzero(a, sample - kEvery) == row;
  if (end - begin < 2 || again) return {-1, begin, end};
  const std::int64_t place = (2 * (index % kProbesOfRow) + 1) * (end - begin) / (2 * kProbesOfRow);
  return {a.col_idx[begin + place], begin, end};
}

// For each probe the entries in other rows with the least of two hashes: so which are found does
// not depend on the order of the threads. One of `every` chunks of entries is read.
__global__ void __launch_bounds__(kThreads)
    find_others(DeviceCsr a, std::int64_t every, unsigned long long* found) {
  __shared__ Probe probes[kProbes];
  __shared__ std::int8_t slots[1 << kSlotBits];
  const auto slot_of = [](std::int32_t column) {
    return hashed(static_cast<unsigned>(column), 0) >> (32 - kSlotBits);
  };
  for (int i = static_cast<int>(threadIdx.x); i < 1 << kSlotBits; i += kThreads) slots[i] = -1;
  if (threadIdx.x < kProbes) probes[threadIdx.x] = probe_at(a, static_cast<int>(threadIdx.x));
  __syncthreads();
  if (threadIdx.x == 0)
    for (int i = 0; i < kProbes; ++i)
      if (probes[i].column >= 0 && slots[slot_of(probes[i].column)] < 0)
        slots[slot_of(probes[i].column)] = static_cast<std::int8_t>(i);
  __syncthreads();
  for (std::int64_t chunk = std::int64_t{blockIdx.x} * every; chunk * kThreads < a.nnz;
       chunk += std::int64_t{gridDim.x} * every) {
    const std::int64_t e = chunk * kThreads + threadIdx.x;
    if (e >= a.nnz) break;
    const std::int32_t column = a.col_idx[e];
    const int at = slots[slot_of(column)];
    if (at < 0 || probes[at].column != column) continue;
    if (e >= probes[at].begin && e < probes[at].end) continue;
    for (int other = 0; other < kOthers; ++other) {
      const unsigned long long key =
          (std::uint64_t{hashed(e, other + 1)} >> (kEntryBits - 32) << kEntryBits) |
          static_cast<std::uint64_t>(e);
      unsigned long long* const least = found + at * kOthers + other;
      if (key < *static_cast<volatile unsigned long long*>(least)) atomicMin(least, key);
    }
  }
}

__device__ bool has_column(const DeviceCsr& a, std::int64_t begin, std::int64_t end,
                           std::int32_t column) {
  while (begin < end) {
    const std::int64_t middle = (begin + end) / 2;
    if (a.col_idx[middle] == column) return true;
    if (a.col_idx[middle] < column) begin = middle + 1;
    else end = middle;
  }
  return false;
}

// A thread for each row that was found: the share of the other columns of the probe's row that it
// has too; -1 where none was found, -2 where there is no probe.
__global__ void compare_rows(DeviceCsr a, const unsigned long long* found, float* shares) {
  constexpr std::int64_t kMostCompared = 24;
  const int index = static_cast<int>(threadIdx.x);
  const Probe probe = probe_at(a, index / kOthers);
  shares[index] = probe.column < 0 ? -2.0F : -1.0F;
  if (probe.column < 0 || found[index] == kNone) return;
  const auto entry = static_cast<std::int64_t>(found[index] & ((1ULL << kEntryBits) - 1));
  std::int64_t low = 0, high = a.rows;  // row_ptr[low] <= entry < row_ptr[high]
  while (high - low > 1) {
    const std::int64_t middle = (low + high) / 2;
    (a.row_ptr[middle] <= entry ? low : high) = middle;
  }
  const std::int64_t length = probe.end - probe.begin, count = min(kMostCompared, length);
  int compared = 0, shared = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int32_t column = a.col_idx[probe.begin + (2 * i + 1) * length / (2 * count)];
    if (column == probe.column) continue;
    ++compared;
    shared += has_column(a, a.row_ptr[low], a.row_ptr[low + 1], column) ? 1 : 0;
  }
  shares[index] = compared == 0 ? 0.0F : static_cast<float>(shared) / static_cast<float>(compared);
}

}  // namespace

MatrixFeatures features_on_device(const SparseOperand& operand, Device& device) {
  const DeviceCsr& a = *operand.on_device;
  MatrixFeatures out;
  out.rows = static_cast<double>(a.rows);
  out.cols = static_cast<double>(a.cols);
  out.nnz = static_cast<double>(a.nnz);
  if (a.nnz == 0) return out;
  SparseOperand unknown = operand;
  unknown.features = nullptr;
  ResidentOrders orders(nullptr, device);
  DeviceSurvey survey(unknown, orders, device);
  StageTimer of_caller;
  out.mean_row = out.nnz / out.rows;
  out.cv_row = survey.length_variation();
  out.max_row = longest_row_of(a, device);
  out.empty_rows = share_of_empty_rows(a, device);
  set_windows(survey.order("natural", of_caller).estimate, out);
  if (may_fill_blocks(out)) count_blocks_of(a, device, out);
  else take_all_blocks(out);
  out.most_of_four = out.mean_row >= kLeastOfTwoFour * out.cols ? most_of_four_of(a, device) : 4;
  return out;
}

double row_overlap_on_device(const DeviceCsr& a, Device& device) {
  constexpr std::int64_t kMostRead = 1 << 24, kMostCtas = 1024;
  if (a.nnz == 0) return kUnknownRowOverlap;
  const Buffer found = device.allocate(kProbes * kOthers * sizeof(unsigned long long));
  const Buffer compared = device.allocate(kProbes * kOthers * sizeof(float));
  device.fill_bytes(found.data(), 0xFF, found.bytes());  // kNone
  const std::int64_t every = (a.nnz + kMostRead - 1) / kMostRead;
  const std::int64_t chunks = (a.nnz + kThreads * every - 1) / (kThreads * every);
  find_others<<<static_cast<unsigned>(std::min(chunks, kMostCtas)), kThreads, 0,
                stream_of(device)>>>(a, every, found.as<unsigned long long>());
  SPMMBENCH_CUDA_LAUNCHED();
  compare_rows<<<1, kProbes * kOthers, 0, stream_of(device)>>>(a, found.as<unsigned long long>(),
                                                               compared.as<float>());
  SPMMBENCH_CUDA_LAUNCHED();
  const std::vector<float> shares = downloaded<float>(compared, device);
  constexpr int kOfRow = kProbesOfRow * kOthers;
  double sum = 0;
  int asked = 0, rows = 0;  // that have a probe; for which another row was found
  for (int row = 0; row < kProbedRows; ++row) {
    const float most =
        *std::max_element(shares.begin() + row * kOfRow, shares.begin() + (row + 1) * kOfRow);
    asked += most > -2 ? 1 : 0;
    rows += most >= 0 ? 1 : 0;
    sum += std::max(most, 0.0F);
  }
  const int least = std::max(1, std::min(kProbedRows / 8, asked));
  return rows < least ? kUnknownRowOverlap : sum / rows;
}

}  // namespace spmmbench
