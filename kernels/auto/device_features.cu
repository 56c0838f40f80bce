// Counts on a matrix on the device, from which its features follow: three kernels, one after
// another, and one copy to the host.
//
//   count_rows        windows at sampled nonzeros, the longest row, empty rows
//   look_for_others   blocks of bands, groups of four, columns in use, rows that share columns
//   compare_rows      how many more columns these share
//
// A glance is one kernel, which tells the host: all but the last two.
//
//   glance            what count_rows counts and blocks of bands, of fewer samples

#include "auto/device_counts.cuh"
#include "auto/device_features.hpp"
#include "common/device_arrays.hpp"

#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "core/row_lengths.hpp"
#include "format/wcsr.hpp"
#include "gpu/cuda_check.hpp"
#include "gpu/told_to_host.hpp"
#include "select/full_blocks.hpp"
#include "select/row_overlap.hpp"
#include "select/used_columns.hpp"
#include "window/choice.hpp"
#include "window/device_survey.hpp"
#include "window/device_window.cuh"
#include "window/row_at_nonzero.cuh"

namespace spmmbench::device_counts {
namespace {

constexpr int kThreads = 256;  // of look_for_others

// Columns of sampled rows, for which other rows are sought.
constexpr int kProbedRows = 16, kProbesOfRow = 2, kProbes = kProbedRows * kProbesOfRow;
constexpr int kOthers = 2;  // rows that are compared for each probe
constexpr int kSlotBits = 12;
constexpr unsigned long long kNone = ~0ULL;
constexpr int kEntryBits = 40;  // of the number of an entry, below those of its hash

constexpr int kLongestCtas = 128;  // of those that look for the longest row

struct Counts {
  Group groups[kSampledRows];                              // that have the sampled nonzeros
  std::int64_t rows[kSampledRows], lengths[kSampledRows];  // at the sampled nonzeros
  std::int64_t longest[kLongestCtas];                      // of the rows of each CTA
  window::EmptyRows empty_rows;
  BandCount bands[kSampledRows];
  int most_of_four[kSampledRows];
  // A glance goes without what follows.
  used_columns::Seen columns;
  // Of the columns of a probe's row, those that a row that was found has, too; -1: none was found;
  // -2: there is no probe.
  float shares[kProbes * kOthers];
  unsigned long long found[kProbes * kOthers];
};

// A CTA for each window of each group, for each part of the rows, and for empty rows.
constexpr int kWindowCtas = static_cast<int>(kSampledRows) * kWindowsOfGroup;
constexpr int kRowCtas = kWindowCtas + kLongestCtas + 1;
__global__ void __launch_bounds__(kRowThreads, 2) count_rows(DeviceCsr a, Counts* out) {
  const int cta = static_cast<int>(blockIdx.x);
  if (cta < kWindowCtas) {
    const int sample = cta / kWindowsOfGroup, part = cta % kWindowsOfGroup;
    const std::int64_t row = shared_row_at_nonzero<kRowThreads>(a, sample);
    count_window(a, row, part, out->groups[sample]);
    if (part > 0 || threadIdx.x > 0) return;
    out->rows[sample] = row;
    out->lengths[sample] = a.row_ptr[row + 1] - a.row_ptr[row];
  } else if (cta < kWindowCtas + kLongestCtas) {
    const std::int64_t longest = longest_of_cta(a, cta - kWindowCtas, kLongestCtas);
    if (threadIdx.x == 0) out->longest[cta - kWindowCtas] = longest;
  } else {
    const window::EmptyRows empty = window::count_empty_rows<kRowThreads>(a);
    if (threadIdx.x == 0) out->empty_rows = empty;
    if (threadIdx.x < kProbes * kOthers) out->found[threadIdx.x] = kNone;
  }
}

// Whether the host may want the blocks of bands: by the estimate of gathered_32, and somewhat above
// it, as sums may differ in their last bits. For all threads of a CTA.
__device__ bool may_want_blocks(const Group* groups) {
  constexpr double kSurely = 1.01;
  __shared__ __align__(16) float shares[kSampledRows];  // vectors of them are read
  if (threadIdx.x < kSampledRows) {
    const Group& group = groups[threadIdx.x];
    shares[threadIdx.x] = static_cast<float>(group.distinct[kWindowsOfGroup - 1]) /
                          static_cast<float>(max(group.nnz, 1));
  }
  __syncthreads();
  float sum = 0;
  for (int i = 0; i < kSampledRows; ++i) sum += shares[i];
  return sum / kSampledRows <= kSurely * kMostGatheredOfBlocks;
}

struct Probe {
  std::int32_t column;      // -1: none
  std::int64_t begin, end;  // the entries of its row
};

__device__ unsigned hashed(std::uint64_t value, unsigned seed) {
  value = (value + seed) * 0x9E3779B97F4A7C15ULL;
  return static_cast<unsigned>((value ^ value >> 29) * 0xBF58476D1CE4E5B9ULL >> 32);
}

// `rows`: at the sampled nonzeros.
__device__ Probe probe_at(const DeviceCsr& a, const std::int64_t* rows, int index) {
  constexpr int kEvery = kSampledRows / kProbedRows;
  const int sample = index / kProbesOfRow * kEvery + kEvery / 2;
  const std::int64_t row = rows[sample];
  const std::int64_t begin = a.row_ptr[row], end = a.row_ptr[row + 1];
  const bool again = sample >= kEvery && rows[sample - kEvery] == row;
  if (end - begin < 2 || again) return {-1, begin, end};
  const std::int64_t place = (2 * (index % kProbesOfRow) + 1) * (end - begin) / (2 * kProbesOfRow);
  return {a.col_idx[begin + place], begin, end};
}

// For each probe the entries in other rows with the least of two hashes: so which are found does
// not depend on the order of the threads. Of the chunks of entries that begin at `first` and lie
// `step` apart.
__device__ void find_others(const DeviceCsr& a, const std::int64_t* rows, std::int64_t first,
                            std::int64_t step, unsigned long long* found) {
  __shared__ Probe probes[kProbes];
  __shared__ std::int8_t slots[1 << kSlotBits];
  // A column that most rows have is found as often: by each CTA for itself first.
  __shared__ unsigned long long of_cta[kProbes * kOthers];
  const auto slot_of = [](std::int32_t column) {
    return hashed(static_cast<unsigned>(column), 0) >> (32 - kSlotBits);
  };
  for (int i = static_cast<int>(threadIdx.x); i < 1 << kSlotBits; i += kThreads) slots[i] = -1;
  if (threadIdx.x < kProbes) probes[threadIdx.x] = probe_at(a, rows, static_cast<int>(threadIdx.x));
  if (threadIdx.x < kProbes * kOthers) of_cta[threadIdx.x] = kNone;
  __syncthreads();
  if (threadIdx.x == 0)
    for (int i = 0; i < kProbes; ++i)
      if (probes[i].column >= 0 && slots[slot_of(probes[i].column)] < 0)
        slots[slot_of(probes[i].column)] = static_cast<std::int8_t>(i);
  __syncthreads();
  for (std::int64_t chunk = first; chunk * kThreads < a.nnz; chunk += step) {
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
      atomicMin(of_cta + at * kOthers + other, key);
    }
  }
  __syncthreads();
  if (threadIdx.x < kProbes * kOthers && of_cta[threadIdx.x] != kNone)
    atomicMin(found + threadIdx.x, of_cta[threadIdx.x]);
}

// What look_for_others has to look at, as the host knows it.
struct Wanted {
  int words;                // of the marks of blocks; 0: they are not counted
  std::size_t value_bytes;  // of values of which groups of four are counted; 0: none
  std::int64_t every;       // one of `every` chunks of entries is read for other rows
};

// A CTA for each sampled row, one for columns in use, then those that look for other rows.
constexpr int kLookCtas = static_cast<int>(kSampledRows) + 1;
__global__ void __launch_bounds__(kThreads)
    look_for_others(DeviceCsr a, Wanted wanted, Counts* counts) {
  if (blockIdx.x >= kLookCtas) {
    const std::int64_t cta = blockIdx.x - kLookCtas, ctas = gridDim.x - kLookCtas;
    return find_others(a, counts->rows, cta * wanted.every, ctas * wanted.every, counts->found);
  }
  if (blockIdx.x == kSampledRows) {
    const used_columns::Seen seen = count_columns<kThreads>(a, counts->rows);
    if (threadIdx.x == 0) counts->columns = seen;
    return;
  }
  const std::int64_t row = counts->rows[blockIdx.x];
  if (wanted.words > 0 && may_want_blocks(counts->groups)) {
    const BandCount band = count_blocks<kThreads>(a, row, wanted.words);
    if (threadIdx.x == 0) counts->bands[blockIdx.x] = band;
  }
  if (wanted.value_bytes == 0) return;
  const int most = most_of_four(a, wanted.value_bytes, row);
  if (threadIdx.x == 0) counts->most_of_four[blockIdx.x] = most;
}

// A glance counts one of so many groups and bands: so few CTAs that all run at once. Its CTAs by
// what they count: the first behind each.
constexpr int kGlanced = 4;
constexpr int kGlancedGroups = static_cast<int>(kSampledRows) / kGlanced;
constexpr int kGlanceWindows = kGlancedGroups * kWindowsOfGroup;
constexpr int kGlanceBands = kGlanceWindows + kGlancedGroups;
constexpr int kGlanceLengths = kGlanceBands + static_cast<int>(kSampledRows);
constexpr int kGlanceLongestCtas = kLongestCtas / 2;
constexpr int kGlanceLongest = kGlanceLengths + kGlanceLongestCtas;
constexpr int kGlanceCtas = kGlanceLongest + 1;  // and one for empty rows
__host__ __device__ constexpr int sample_of_glance(int group) {
  return group * kGlanced + kGlanced / 2;
}

__device__ void glance_at_band(const DeviceCsr& a, int words, std::size_t value_bytes, int sample,
                               Counts* out) {
  const std::int64_t row = shared_row_at_nonzero<kRowThreads>(a, sample);
  if (words > 0) {
    const BandCount band = count_blocks<kRowThreads>(a, row, words);
    if (threadIdx.x == 0) out->bands[sample] = band;
  }
  if (value_bytes == 0) return;
  const int most = most_of_four(a, value_bytes, row);
  if (threadIdx.x == 0) out->most_of_four[sample] = most;
}

__global__ void __launch_bounds__(kRowThreads, 2)
    glance(DeviceCsr a, int words, std::size_t value_bytes, Counts* out) {
  const int cta = static_cast<int>(blockIdx.x);
  if (cta < kGlanceWindows) {
    const int sample = sample_of_glance(cta / kWindowsOfGroup);
    count_window(a, shared_row_at_nonzero<kRowThreads>(a, sample), cta % kWindowsOfGroup,
                 out->groups[sample]);
  } else if (cta < kGlanceBands) {
    glance_at_band(a, words, value_bytes, sample_of_glance(cta - kGlanceWindows), out);
  } else if (cta < kGlanceLengths) {
    const std::int64_t row = shared_row_at_nonzero<kRowThreads>(a, cta - kGlanceBands);
    if (threadIdx.x == 0) out->lengths[cta - kGlanceBands] = a.row_ptr[row + 1] - a.row_ptr[row];
  } else if (cta < kGlanceLongest) {
    const std::int64_t longest = longest_of_cta(a, cta - kGlanceLengths, kGlanceLongestCtas);
    if (threadIdx.x == 0) out->longest[cta - kGlanceLengths] = longest;
  } else {
    const window::EmptyRows empty = window::count_empty_rows<kRowThreads>(a);
    if (threadIdx.x == 0) out->empty_rows = empty;
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

// The row of an entry, by the lanes of a warp.
__device__ std::int64_t row_by_warp(const DeviceCsr& a, std::int64_t entry) {
  const std::int64_t next = std::int64_t{threadIdx.x % 32} + 1;
  std::int64_t low = 0, high = a.rows;  // row_ptr[low] <= entry < row_ptr[high]
  while (high - low > 1) {
    const std::int64_t step = (high - low + 31) / 32, at = low + next * step;
    low += step * __popc(__ballot_sync(0xFFFFFFFF, at < high && a.row_ptr[at] <= entry));
    high = min(low + step, high);
  }
  return low;
}

// A warp for each row that was found, and a lane for each column of the probe's row.
__global__ void compare_rows(DeviceCsr a, Counts* counts) {
  constexpr std::int64_t kMostCompared = 24;
  const int index = static_cast<int>(blockIdx.x), lane = static_cast<int>(threadIdx.x);
  const Probe probe = probe_at(a, counts->rows, index / kOthers);
  const unsigned long long found = counts->found[index];
  if (probe.column < 0 || found == kNone) {
    if (lane == 0) counts->shares[index] = probe.column < 0 ? -2.0F : -1.0F;
    return;
  }
  const std::int64_t row =
      row_by_warp(a, static_cast<std::int64_t>(found & ((1ULL << kEntryBits) - 1)));
  const std::int64_t length = probe.end - probe.begin, count = min(kMostCompared, length);
  bool compared = false, shared = false;
  if (lane < count) {
    const std::int32_t column = a.col_idx[probe.begin + (2 * lane + 1) * length / (2 * count)];
    compared = column != probe.column;
    shared = compared && has_column(a, a.row_ptr[row], a.row_ptr[row + 1], column);
  }
  const int all = __popc(__ballot_sync(0xFFFFFFFF, compared));
  const int same = __popc(__ballot_sync(0xFFFFFFFF, shared));
  if (lane == 0)
    counts->shares[index] = all == 0 ? 0.0F : static_cast<float>(same) / static_cast<float>(all);
}

// Where shared memory cannot mark all blocks of a band, they are as good as empty.
int words_of_blocks(const DeviceCsr& a) {
  constexpr std::int64_t kMostBytes = 40 << 10;  // beside what find_others has
  const std::int64_t words = a.cols / kBlockColumns / 32 + 1;
  return words * std::int64_t{sizeof(unsigned)} > kMostBytes ? 0 : static_cast<int>(words);
}

// Of values of which groups of four are counted.
std::size_t bytes_of_four(const DeviceCsr& a, bool may_be_two_four) {
  return may_be_two_four ? bytes_of(a.value_type) : 0;
}

// What was counted: of every `every`th sample from `first` on, and for the longest row.
struct Seen {
  Counts counts;
  int first = 0, every = 1;
  int longest = kLongestCtas;
  bool others = true;  // rows that share columns and columns in use, too
};

Seen look(const DeviceCsr& a, bool may_be_two_four, Device& device) {
  constexpr std::int64_t kMostRead = 1 << 24, kMostCtas = 1024;
  const Buffer counts = device.allocate(sizeof(Counts));
  auto* const out = counts.as<Counts>();
  count_rows<<<kRowCtas, kRowThreads, wcsr::bytes_of_marks<kRowThreads>(a.cols),
               stream_of(device)>>>(a, out);
  SPMMBENCH_CUDA_LAUNCHED();
  const Wanted wanted{words_of_blocks(a), bytes_of_four(a, may_be_two_four),
                      (a.nnz + kMostRead - 1) / kMostRead};
  const std::int64_t read = kThreads * wanted.every;  // by a CTA at a time
  const std::int64_t ctas = kLookCtas + std::min((a.nnz + read - 1) / read, kMostCtas);
  const int words = std::max(wanted.words, kWordsOfColumns);
  look_for_others<<<static_cast<unsigned>(ctas), kThreads, words * sizeof(unsigned),
                    stream_of(device)>>>(a, wanted, out);
  SPMMBENCH_CUDA_LAUNCHED();
  compare_rows<<<kProbes * kOthers, 32, 0, stream_of(device)>>>(a, out);
  SPMMBENCH_CUDA_LAUNCHED();
  return {downloaded<Counts>(counts, device)[0]};
}

Seen see_at_a_glance(const DeviceCsr& a, bool may_be_two_four, Device& device) {
  const ToldToHost told(device);
  const int words = words_of_blocks(a);
  const std::size_t shared =
      std::max(wcsr::bytes_of_marks<kRowThreads>(a.cols), words * sizeof(unsigned));
  glance<<<kGlanceCtas, kRowThreads, shared, stream_of(device)>>>(
      a, words, bytes_of_four(a, may_be_two_four), told.as<Counts>());
  SPMMBENCH_CUDA_LAUNCHED();
  device.synchronize();
  return {told.read<Counts>(offsetof(Counts, columns)), sample_of_glance(0), kGlanced,
          kGlanceLongestCtas, false};
}

// Groups were drawn in proportion to their nonzeros, so each counts the same. One of which no entry
// was counted says nothing.
WcsrEstimate windows_of(const Seen& seen) {
  constexpr double kTile = WcsrShape{}.tile_columns;
  WcsrEstimate out;
  double groups = 0;
  for (int sample = seen.first; sample < kSampledRows; sample += seen.every)
    groups += seen.counts.groups[sample].nnz > 0 ? 1 : 0;
  if (groups == 0) return {{1, 1, 1}, {1, 1, 1}};
  for (int sample = seen.first; sample < kSampledRows; sample += seen.every) {
    const Group& group = seen.counts.groups[sample];
    if (group.nnz == 0) continue;
    for (int part = 0; part < kWindowsOfGroup; ++part) {
      const int height = part < 4 ? 0 : part < 6 ? 1 : 2;
      const double distinct = group.distinct[part];
      const double all = static_cast<double>(group.nnz) * groups;
      out.gathered_share[height] += distinct / all;
      out.stored_share[height] += std::ceil(distinct / kTile) * kTile / all;
    }
  }
  return out;
}

void set_blocks(const Seen& seen, MatrixFeatures& out) {
  const double samples = static_cast<double>(kSampledRows) / seen.every;
  double slots_per_nonzero = 0;
  for (int i = seen.first; i < kSampledRows; i += seen.every) {
    const BandCount& band = seen.counts.bands[i];
    out.band_blocks += static_cast<double>(band.blocks) / samples;
    slots_per_nonzero += static_cast<double>(band.blocks * kBandRows * kBlockColumns) /
                         static_cast<double>(band.nnz) / samples;
  }
  out.block_fill = std::min(1.0, 1 / slots_per_nonzero);
}

int most_of_four_seen(const Seen& seen) {
  int most = 1;
  for (int i = seen.first; i < kSampledRows; i += seen.every)
    most = std::max(most, seen.counts.most_of_four[i]);
  return most;
}

double overlap_of(const float* shares) {
  constexpr int kOfRow = kProbesOfRow * kOthers;
  double sum = 0;
  int asked = 0, rows = 0;  // that have a probe; for which another row was found
  for (int row = 0; row < kProbedRows; ++row) {
    const float most = *std::max_element(shares + row * kOfRow, shares + (row + 1) * kOfRow);
    asked += most > -2 ? 1 : 0;
    rows += most >= 0 ? 1 : 0;
    sum += std::max(most, 0.0F);
  }
  const int least = std::max(1, std::min(kProbedRows / 8, asked));
  return rows < least ? kUnknownRowOverlap : sum / rows;
}

MatrixFeatures features_by(Seen (*see)(const DeviceCsr&, bool, Device&), const DeviceCsr& a,
                           Device& device) {
  MatrixFeatures out;
  out.rows = static_cast<double>(a.rows);
  out.cols = static_cast<double>(a.cols);
  out.nnz = static_cast<double>(a.nnz);
  out.row_overlap = kUnknownRowOverlap;
  if (a.nnz == 0) return out;
  out.mean_row = out.nnz / out.rows;
  const bool may_be_two_four = out.mean_row >= kLeastOfTwoFour * out.cols;
  const Seen seen = see(a, may_be_two_four, device);
  const Counts& counts = seen.counts;
  out.cv_row = row_length_variation(counts.lengths, a.rows, a.nnz);
  out.max_row =
      static_cast<double>(*std::max_element(counts.longest, counts.longest + seen.longest));
  out.empty_rows = static_cast<double>(counts.empty_rows.empty) / counts.empty_rows.sampled;
  set_windows(windows_of(seen), out);
  if (!may_fill_blocks(out)) take_all_blocks(out);
  else if (words_of_blocks(a) > 0) set_blocks(seen, out);
  out.most_of_four = may_be_two_four ? most_of_four_seen(seen) : 4;
  if (seen.others) {
    out.row_overlap = overlap_of(counts.shares);
    out.used_cols = used_columns::estimate(counts.columns, out.nnz, out.cols);
  }
  return out;
}

}  // namespace
}  // namespace spmmbench::device_counts

namespace spmmbench {

MatrixFeatures features_on_device(const DeviceCsr& a, Device& device) {
  return device_counts::features_by(device_counts::look, a, device);
}

MatrixFeatures features_at_a_glance(const DeviceCsr& a, Device& device) {
  return device_counts::features_by(device_counts::see_at_a_glance, a, device);
}

std::optional<WcsrEstimate> windows_in_known_order(const SparseOperand& a, Device& device,
                                                   StageTimer& stages) {
  auto* const made = dynamic_cast<SharedOrders*>(a.orders);
  if (made == nullptr || a.on_device == nullptr) return std::nullopt;
  ResidentOrders orders(made, device);
  for (const char* order : {window::kMatch, window::kMatchByNeed})
    if (made->on_device().contains(order))
      return DeviceSurvey(a, orders, device).order(order, stages).estimate;
  return std::nullopt;
}

}  // namespace spmmbench
