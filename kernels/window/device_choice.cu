// Chooses the height of windows from the counts of a survey, by one CTA.

#include "window/device_choice.hpp"

#include <cuda_runtime.h>

#include "window/launch_next.cuh"
#include "window/sum_tiles.cuh"

namespace spmmbench::window {
namespace {

constexpr int kChoiceThreads = wcsr::kSumThreads;
constexpr int kEstimateSums = 7;  // shares of each height, samples that count

__device__ double sum_of_lanes(double mine, int lanes) {
  for (int step = lanes / 2; step > 0; step /= 2)
    mine += __shfl_xor_sync(wcsr::kAllLanes, mine, step);
  return mine;
}

// The counts of the group of each sample.
struct SampledCounts {
  std::int32_t of[kSampledRows][kCountsOfGroup];

  // By all threads; ends with a barrier.
  __device__ void read(const SurveyCounts& found, bool at_nonzeros) {
    static_assert(kSampledRows * kCountsOfGroup <= kChoiceThreads);
    const int sample = static_cast<int>(threadIdx.x) / kCountsOfGroup;
    const int part = static_cast<int>(threadIdx.x) % kCountsOfGroup;
    if (sample < kSampledRows) {
      const std::int32_t group = found.groups[sample];
      const int at = at_nonzeros ? sample : group;
      std::int32_t count = found.counts[at * kCountsOfGroup + part];
      // Samples of one group follow one another, and each has a share of its columns.
      const auto is_of_group = [&](int other) {
        return at_nonzeros && other >= 0 && other < kSampledRows && found.groups[other] == group;
      };
      for (int other = sample - 1; is_of_group(other); --other)
        count += found.counts[other * kCountsOfGroup + part];
      for (int other = sample + 1; is_of_group(other); ++other)
        count += found.counts[other * kCountsOfGroup + part];
      of[sample][part] = count;
    }
    __syncthreads();
  }
};

// The sums over all samples, by the first of them. By all threads; ends with a barrier.
struct EstimateSums {
  double of[kSampledRows / wcsr::kWarpLanes][kEstimateSums];

  __device__ void add_up(const SampledCounts& counts) {
    const int sample = static_cast<int>(threadIdx.x);
    if (sample < kSampledRows) {
      const GroupSums sums = sums_of(counts.of[sample]);
      const double weight = sums.nnz > 0 ? 1 / sums.nnz : 0;
      const double all[kEstimateSums] = {weight * sums.gathered[0], weight * sums.gathered[1],
                                         weight * sums.gathered[2], weight * sums.stored[0],
                                         weight * sums.stored[1],   weight * sums.stored[2],
                                         sums.nnz > 0 ? 1.0 : 0.0};
      for (int i = 0; i < kEstimateSums; ++i) {
        const double sum = sum_of_lanes(all[i], wcsr::kWarpLanes);
        if (sample % wcsr::kWarpLanes == 0) of[sample / wcsr::kWarpLanes][i] = sum;
      }
    }
    __syncthreads();
  }
  __device__ double sum(int i) const { return of[0][i] + of[1][i]; }
  __device__ WcsrEstimate estimate() const {
    const double samples = sum(6);
    if (samples == 0) return {{1, 1, 1}, {1, 1, 1}};  // only empty groups
    WcsrEstimate out;
    for (int h = 0; h < 3; ++h) {
      out.gathered_share[h] = sum(h) / samples;
      out.stored_share[h] = sum(3 + h) / samples;
    }
    return out;
  }
};

// best_height, by a warp, a lane for each height: a division of doubles takes long.
__device__ Height best_of_lanes(const WcsrEstimate& estimate, const ChoiceRule& rule) {
  const int lane = static_cast<int>(threadIdx.x) % wcsr::kWarpLanes;
  const double own = best_height(estimate, rule.rows, rule.n, rule.value_bytes, rule.format,
                                 rule.sms, min(lane, 2))
                         .cost;
  Height best;
  for (int h = 0; h < 3; ++h) {
    const double cost = __shfl_sync(wcsr::kAllLanes, own, h);
    if (cost < best.cost) best = {h, cost};
  }
  return best;
}

// row_length_variation above kVariedLengths, by a warp.
__device__ bool lengths_vary(const SurveyCounts& found, const ChoiceRule& rule) {
  double mine = 0;
  for (int i = static_cast<int>(threadIdx.x); i < kSampledRows; i += wcsr::kWarpLanes)
    mine += static_cast<double>(found.lengths[i]) / kSampledRows;
  const double length = sum_of_lanes(mine, wcsr::kWarpLanes), mean = rule.nnz / rule.rows;
  return length / mean - 1 > kVariedLengths * kVariedLengths;
}

// expect_by_length (format/wcsr_estimate.hpp), by a warp: two lanes have a row, each with half of
// the columns.
__device__ WcsrEstimate expect_by_length_of_lanes(const SurveyCounts& found, double nnz) {
  constexpr int kLengths = 16, kEvery = static_cast<int>(kSampledRows) / kLengths;
  const auto length_of = [&](int i) {
    return static_cast<double>(found.lengths[i * kEvery + kEvery / 2]);
  };
  const int lane = static_cast<int>(threadIdx.x) % wcsr::kWarpLanes;
  const double row = length_of(lane % kLengths);
  double share[kWcsrHeightCount] = {};
  for (int i = lane / kLengths; i < kLengths; i += wcsr::kWarpLanes / kLengths) {
    const double q = fmin(1.0, row * length_of(i) / nnz), per_row = 1 / q;
    double none = (1 - q) * (1 - q);  // to the power of the height
    none *= none;
    for (std::size_t h = 0; h < kWcsrHeightCount; ++h) {
      none *= none;
      share[h] += (1 - none) * per_row / (wcsr_height(h) * kLengths);
    }
  }
  constexpr int kTile = WcsrShape{}.tile_columns;
  WcsrEstimate out;
  for (std::size_t h = 0; h < kWcsrHeightCount; ++h) {
    const double of_row = share[h] + __shfl_xor_sync(wcsr::kAllLanes, share[h], kLengths);
    const double gathered = of_row * wcsr_height(h) * row;
    const double filled = ceil(gathered / kTile) * kTile;
    out.gathered_share[h] = sum_of_lanes(of_row, kLengths) / kLengths;
    out.stored_share[h] = sum_of_lanes(filled / (wcsr_height(h) * row), kLengths) / kLengths;
  }
  return out;
}

// Whether the host will sort rows by length, to compare that with natural order. Where A is large
// the sort would wait long for windows to be placed that are then rarely taken. By a warp.
__device__ bool may_sort_rows(const SurveyCounts& found, const WcsrEstimate& natural, double cost,
                              const ChoiceRule& rule) {
  if (rule.nnz < rule.placed_soon || !lengths_vary(found, rule)) return false;
  if (!worth_order(natural, rule.rows, rule.cols, rule.nnz, rule.n, rule.value_bytes, rule.format))
    return false;
  const WcsrEstimate expected = expect_by_length_of_lanes(found, rule.nnz);
  return best_of_lanes(expected, rule).cost <= kSlackByLength * cost;
}

// Adds what spare CTAs have counted to the counts of their groups. By all threads; begins and ends
// with a barrier where there are such CTAs.
__device__ void add_spare(SurveyCounts& found, const SurveyGrid& grid) {
  static_assert(kMostSpare * kCountsOfGroup <= kChoiceThreads);
  if (grid.spare == 0) return;
  const int spare = static_cast<int>(threadIdx.x) / kCountsOfGroup;
  const int part = static_cast<int>(threadIdx.x) % kCountsOfGroup;
  const int group = spare < grid.spare ? found.group_of_spare[spare] : -1;
  if (__syncthreads_or(group >= 0) == 0) return;
  if (group >= 0)
    atomicAdd(found.counts + group * kCountsOfGroup + part,
              found.counts[(grid.groups + spare) * kCountsOfGroup + part]);
  __syncthreads();
}

// An index into kWcsrHeights; -1: none. By all threads; ends with a barrier.
__device__ int choose_height(const SurveyCounts& found, const SampledCounts& counts,
                             const ChoiceRule& rule) {
  __shared__ EstimateSums sums;
  __shared__ int chosen;
  sums.add_up(counts);
  if (threadIdx.x < wcsr::kWarpLanes) {
    const WcsrEstimate natural = sums.estimate();
    const Height best = best_of_lanes(natural, rule);
    const bool leaves_out = best.index == 0 && found.empty >= kLeastEmptyShare * found.sampled;
    const bool is_left = leaves_out || may_sort_rows(found, natural, best.cost, rule);
    if (threadIdx.x == 0) chosen = is_left ? -1 : best.index;
  }
  __syncthreads();
  return chosen;
}

// Brings the counts of all windows of the height together, and lists long ones.
__device__ void gather_counts(const SurveyCounts& found, int height_index,
                              const wcsr::Chosen& chosen) {
  const int of_group = windows_of_height(height_index), first = first_of_height(height_index);
  const auto windows = static_cast<int>(chosen.windows(wcsr_height(height_index)));
  for (int i = static_cast<int>(threadIdx.x); i < windows; i += kChoiceThreads) {
    const std::int32_t* const group = found.counts + i / of_group * kCountsOfGroup;
    chosen.counts[i] = group[first + i % of_group];
    if (group[kWindowsOfGroup] <= chosen.longs.most) continue;
    const std::int64_t row = std::int64_t{i} * wcsr_height(height_index);
    const std::int64_t end = min(chosen.places, row + wcsr_height(height_index));
    const auto entries = static_cast<std::int32_t>(chosen.row_ptr[end] - chosen.row_ptr[row]);
    if (entries > chosen.longs.most) chosen.longs.add(i, entries);
  }
}

__global__ void __launch_bounds__(kChoiceThreads)
    choose_windows(SurveyCounts* found, SurveyGrid grid, const __grid_constant__ ChoiceRule rule,
                   SurveyCounts* told, const __grid_constant__ wcsr::Chosen chosen) {
  follow_previous();
  if (threadIdx.x == 0) chosen.longs.count[0] = chosen.longs.count[1] = 0;
  const auto* const from = reinterpret_cast<const int4*>(found);
  auto* const to = reinterpret_cast<int4*>(told);
  // The signal comes last: a fence waits for what has been written, which takes as long as the
  // choice.
  const int vectors = static_cast<int>(SurveyCounts::bytes(grid.ctas()) / sizeof(int4));
  constexpr int kFirst = offsetof(SurveyCounts, lengths) / sizeof(int4);  // not the signal
  for (int i = kFirst + static_cast<int>(threadIdx.x); i < vectors; i += kChoiceThreads)
    to[i] = from[i];
  add_spare(*found, grid);
  __shared__ SampledCounts counts;
  counts.read(*found, grid.at_nonzeros);
  const int height_index = choose_height(*found, counts, rule);
  if (threadIdx.x == 0) *chosen.rows = height_index < 0 ? 0 : wcsr_height(height_index);
  if (!grid.at_nonzeros) {
    if (height_index >= 0) gather_counts(*found, height_index, chosen);
    __syncthreads();
    chosen.take_counts(true);
  }
  if (threadIdx.x == 0) give_signal({&told->signal});
}

}  // namespace

void choose_on_device(SurveyCounts* found, const SurveyGrid& grid, const ChoiceRule& rule,
                      SurveyCounts* told, const wcsr::Chosen& chosen, Device& device) {
  launch_next(choose_windows, 1, kChoiceThreads, 0, device.stream(), found, grid, rule, told,
              chosen);
}

}  // namespace spmmbench::window
