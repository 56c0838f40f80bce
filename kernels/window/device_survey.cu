// Counts on samples of a matrix on the device.

#include "common/device_arrays.hpp"
#include "window/device_column_reuse.hpp"
#include "window/device_survey.hpp"

#include <cuda_runtime.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <type_traits>
#include <vector>

#include "core/row_lengths.hpp"
#include "format/wcsr.hpp"
#include "gpu/cuda_check.hpp"
#include "gpu/told_to_host.hpp"
#include "ptx/griddepcontrol.cuh"
#include "select/features.hpp"
#include "window/device_window.cuh"
#include "window/group_windows.cuh"
#include "window/row_at_nonzero.cuh"

namespace spmmbench {
namespace {

using window::kCountsOfGroup, window::kGroupRows, window::kMostInAll, window::kWindowsOfGroup,
    window::SurveyCounts, window::SurveyGrid;

constexpr int kLargeSurvey = 1024, kSmallSurvey = 256;  // of a CTA for each window
constexpr int kSamplesPart = kWindowsOfGroup;  // the part of a grid that reads samples of rows
constexpr std::int64_t kMostGroups = 256;      // of an order whose nonzeros have no offsets

// By all threads.
template <int kThreads>
__device__ void read_samples(const DeviceCsr& a, SurveyCounts* told) {
  constexpr int kLanes = kThreads / kSampledRows;
  const int thread = static_cast<int>(threadIdx.x), sample = thread / kLanes;
  if (a.nnz > 0) {
    const std::int64_t row = row_at_nonzero<kLanes>(a, sample, thread % kLanes);
    if (thread % kLanes == 0) {
      told->lengths[sample] = a.row_ptr[row + 1] - a.row_ptr[row];
      told->groups[sample] = static_cast<std::int32_t>(row / kGroupRows);
    }
  }
  const window::EmptyRows rows = window::count_empty_rows<kThreads>(a);
  if (thread != 0) return;
  told->empty = rows.empty;
  told->sampled = rows.sampled;
}

// Spare CTAs of a group of rows in natural order.
__device__ int spare_of(const DeviceCsr& a, const SurveyGrid& grid, std::int64_t group) {
  if (group >= grid.groups) return 0;
  const std::int64_t end = a.row_ptr[min(a.rows, (group + 1) * kGroupRows)];
  return grid.spare_of(static_cast<std::int32_t>(end - a.row_ptr[group * kGroupRows]));
}

// Of spare CTA `number`; of no group where there are not so many shares. By all threads.
template <int kThreads>
__device__ SurveyGrid::Share share_of_spare(const DeviceCsr& a, const SurveyGrid& grid,
                                            int number) {
  bool has_long = false;
  for (int i = static_cast<int>(threadIdx.x); i < grid.groups; i += kThreads)
    has_long |= spare_of(a, grid, i) > 0;
  if (__syncthreads_or(has_long) == 0) return {-1, 0, 0};
  const int lane = static_cast<int>(threadIdx.x) % wcsr::kWarpLanes;
  int before = 0;  // spare CTAs of earlier groups
  for (int first = 0; first < grid.groups; first += wcsr::kWarpLanes) {
    const int own = spare_of(a, grid, first + lane), end = before + wcsr::sum_to(own);
    const unsigned later = __ballot_sync(wcsr::kAllLanes, end > number);
    if (later != 0) {
      const int found = __ffs(static_cast<int>(later)) - 1;
      const int all = __shfl_sync(wcsr::kAllLanes, own, found);
      return {first + found, all - __shfl_sync(wcsr::kAllLanes, end, found) + number + 1, all + 1};
    }
    before = __shfl_sync(wcsr::kAllLanes, end, wcsr::kWarpLanes - 1);
  }
  return {-1, 0, 0};
}

// Samples in one group share it. By all threads.
template <int kThreads>
__device__ SurveyGrid::Share share_of(const DeviceCsr& a, const SurveyGrid& grid) {
  const int index = static_cast<int>(blockIdx.x);
  const std::int64_t all = (a.rows + kGroupRows - 1) / kGroupRows;
  if (!grid.at_nonzeros) {
    const auto groups = static_cast<int>(grid.groups);
    if (grid.spare > 0 && index >= groups) return share_of_spare<kThreads>(a, grid, index - groups);
    const SurveyGrid::Share share = grid.share(index);
    return {all * share.group / grid.groups, share.index, share.count};
  }
  const std::int64_t group = shared_row_at_nonzero<kThreads>(a, index) / kGroupRows;
  const std::int64_t end = a.row_ptr[min(a.rows, (group + 1) * kGroupRows)];
  const int sample = static_cast<int>(threadIdx.x);
  const std::int64_t entry = sample < kSampledRows ? sampled_nonzero(a, sample) : end;
  const bool is_here = entry >= a.row_ptr[group * kGroupRows] && entry < end;
  const int before = __syncthreads_count(is_here && sample < index);
  return {group, before, __syncthreads_count(is_here)};
}

// A CTA for each window of each group, or for a share of it: its distinct columns. One CTA of the
// part after the windows reads samples of rows; blockIdx.y counts parts from `first_part`.
template <int kThreads>
__global__ void __launch_bounds__(kThreads)
    survey_rows(DeviceCsr matrix, const std::int32_t* row_of, SurveyGrid grid, int first_part,
                SurveyCounts* told) {
  constexpr std::int32_t kManyEntries = 4096;  // of a window that is shared
  ptx::griddepcontrol_launch_dependents();
  const int part = first_part + static_cast<int>(blockIdx.y);
  if (part == kSamplesPart) {
    if (blockIdx.x == 0) read_samples<kThreads>(matrix, told);
    return;
  }
  SurveyGrid::Share share = share_of<kThreads>(matrix, grid);
  if (grid.spare > 0 && blockIdx.x >= grid.groups) {
    if (threadIdx.x == 0 && part == 0)
      told->group_of_spare[blockIdx.x - grid.groups] = static_cast<std::int32_t>(share.group);
    if (share.group < 0) return;
  }
  std::int32_t entries = 0;
  const auto take = [&](const wcsr::Csr& a, wcsr::Window& window) {
    entries = window.count();
    if (grid.spare > 0 && share.index == 0 && entries > kManyEntries)
      share.count = 1 + spare_of(matrix, grid, share.group);
    const bool is_shared = share.count > 1 && entries > kManyEntries;
    if (is_shared) wcsr::take_part<kThreads>(a, share.index, share.count, window);
    return is_shared || share.index == 0;
  };
  const window::WindowCount counted =
      window::count_window<kThreads>(matrix, row_of, share.group, part, take);
  if (threadIdx.x != 0) return;
  std::int32_t* const out = told->counts + std::int64_t{blockIdx.x} * kCountsOfGroup;
  out[part] = counted.distinct;
  if (part == kWindowsOfGroup - 1) out[kWindowsOfGroup] = share.index == 0 ? entries : 0;
}

// Enqueues: the windows of the grid's groups, and samples of rows if asked for.
void count_windows(const DeviceCsr& a, const std::int32_t* row_of, const SurveyGrid& counted,
                   bool with_samples, SurveyCounts* to, Device& device) {
  const auto launch = [&]<int kThreads>(std::integral_constant<int, kThreads>) {
    const std::size_t shared = wcsr::bytes_of_marks<kThreads>(a.cols);
    const int first_part = counted.groups > 0 ? 0 : kSamplesPart;
    const dim3 grid(static_cast<unsigned>(std::max<std::int64_t>(counted.ctas(), 1)),
                    kWindowsOfGroup - first_part + (with_samples ? 1 : 0));
    survey_rows<kThreads>
        <<<grid, kThreads, shared, stream_of(device)>>>(a, row_of, counted, first_part, to);
    SPMMBENCH_CUDA_LAUNCHED();
  };
  // Of a row, in the mean: where all CTAs run at a time, and where they do not.
  constexpr std::int64_t kManyOfFew = 32, kManyEntries = 128;
  constexpr int kLargeOfSm = 2;
  const bool few = counted.ctas() * kWindowsOfGroup <= kLargeOfSm * device.info().sm_count;
  if (a.nnz > (few ? kManyOfFew : kManyEntries) * a.rows)
    launch(std::integral_constant<int, kLargeSurvey>{});
  else launch(std::integral_constant<int, kSmallSurvey>{});
}

// The same, and waits.
const SurveyCounts& survey(const DeviceCsr& a, const std::int32_t* row_of,
                           const SurveyGrid& counted, bool with_samples, const ToldToHost& there,
                           Device& device) {
  count_windows(a, row_of, counted, with_samples, there.as<SurveyCounts>(), device);
  device.synchronize();
  return there.read<SurveyCounts>(SurveyCounts::bytes(counted.ctas()));
}

// The same in natural order for one that goes on from there.
const SurveyCounts& survey(const DeviceCsr& a, const SurveyGrid& counted,
                           window::SurveyFollower& follower, const ToldToHost& there,
                           Device& device) {
  count_windows(a, nullptr, counted, true, follower.counts(), device);
  auto* const told = there.as<SurveyCounts>();
  const Signal signal = make_signal(&told->signal);
  follower.follow(counted, told);
  wait_for(signal, device);
  return there.read<SurveyCounts>(SurveyCounts::bytes(counted.ctas()));
}

std::int64_t groups_of(const DeviceCsr& a) { return (a.rows + kGroupRows - 1) / kGroupRows; }

bool has_few_groups(const DeviceCsr& a) {
  return groups_of(a) <= kMostInAll && a.nnz <= window::kMostEntriesInAll &&
         a.nnz <= window::kMostEntriesOfGroup * groups_of(a);
}

// Of each of so many groups that are evenly spaced.
std::int64_t shares_of(const DeviceCsr& a, std::int64_t groups) {
  const std::int64_t wanted = a.nnz / groups_of(a) / window::kEntriesOfShare;
  return std::clamp<std::int64_t>(wanted, 1, std::max<std::int64_t>(kMostInAll / groups, 1));
}

// Of all groups in natural order, with CTAs that share long ones.
SurveyGrid grid_of_all(const DeviceCsr& a) {
  SurveyGrid out{.groups = groups_of(a)};
  const auto nnz = static_cast<std::int32_t>(a.nnz);  // at most kMostEntriesInAll
  out.of_spare = std::max(window::kLeastOfSpare, (nnz - 1) / window::kMostSpare + 1);
  out.spare = nnz / out.of_spare;
  return out;
}

double empty_share_of(const SurveyCounts& told) {
  return static_cast<double>(told.empty) / static_cast<double>(told.sampled);
}

struct HubCounts {
  std::int32_t drawn, columns;  // nonzeros drawn that are in hub columns; these
};

__global__ void __launch_bounds__(kLargeSurvey)
    count_hubs(DeviceCsr a, HubSample sample, std::uint32_t* seen, HubCounts* told) {
  __shared__ HubCounts found;
  if (threadIdx.x == 0) found = {};
  for (std::int64_t i = threadIdx.x; i < sample.draws; i += kLargeSurvey)
    atomicAdd(seen + hub_counter(a.col_idx[hub_draw(i, a.nnz)]), 1U);
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.x); i < 1 << kHubCounterBits; i += kLargeSurvey) {
    const std::uint32_t times = atomicAdd(seen + i, 0U);
    if (times < sample.least) continue;
    atomicAdd(&found.drawn, static_cast<std::int32_t>(times));
    atomicAdd(&found.columns, 1);
  }
  __syncthreads();
  if (threadIdx.x == 0) *told = found;
}

// Of the groups of a grid, or of its samples.
std::vector<GroupCounts> counts_of(const SurveyCounts& told, const SurveyGrid& grid) {
  std::vector<GroupCounts> out(grid.groups);
  const auto add = [&](std::int64_t cta, GroupCounts& to) {
    for (int i = 0; i < kCountsOfGroup; ++i) to[i] += told.counts[cta * kCountsOfGroup + i];
  };
  if (!grid.at_nonzeros) {
    const std::int64_t first_spare = grid.ctas() - grid.spare;
    for (std::int64_t cta = 0; cta < first_spare; ++cta) add(cta, out[grid.share(cta).group]);
    for (int i = 0; i < grid.spare; ++i)
      if (told.group_of_spare[i] >= 0) add(first_spare + i, out[told.group_of_spare[i]]);
    return out;
  }
  for (std::int64_t first = 0, end = 0; first < grid.groups; first = end) {
    for (; end < grid.groups && told.groups[end] == told.groups[first]; ++end) add(end, out[first]);
    std::fill(out.begin() + first, out.begin() + end, GroupCounts(out[first]));
  }
  return out;
}

// Of `sampled` groups that `at(sample)` gives. Those at sampled nonzeros are drawn in proportion to
// their nonzeros, so each counts the same; evenly spaced ones count by their nonzeros.
template <class At>
WcsrEstimate estimate_from(std::int64_t sampled, bool at_nonzeros, At at) {
  WcsrEstimate out;
  double weights = 0;
  for (std::int64_t sample = 0; sample < sampled; ++sample) {
    const window::GroupSums sums = window::sums_of(at(sample).data());
    if (sums.nnz == 0) continue;
    const double weight = at_nonzeros ? 1 / sums.nnz : 1;
    weights += weight * sums.nnz;
    for (std::size_t h = 0; h < kWcsrHeights.size(); ++h) {
      out.gathered_share[h] += weight * sums.gathered[h];
      out.stored_share[h] += weight * sums.stored[h];
    }
  }
  if (weights == 0) return {{1, 1, 1}, {1, 1, 1}};  // only empty groups
  for (std::size_t h = 0; h < kWcsrHeights.size(); ++h) {
    out.gathered_share[h] /= weights;
    out.stored_share[h] /= weights;
  }
  return out;
}

}  // namespace

window::Surveyed DeviceSurvey::order(const std::string& name, StageTimer& stages) {
  const Buffer& rows = orders_.get(a_, name, stages);
  window::Surveyed out{rows.data() == nullptr, nullptr, {}};
  if (a_.nnz == 0) return out;
  // In natural order each kernel counts, and goes on from there.
  auto& all = out.is_natural ? own_ : orders_.surveyed();
  const std::string counted = out.is_natural ? "natural" : name;
  const auto& surveyed = all.get(counted, [&](StageTimer& cost) {
    const auto timed = cost.scope("compare");
    return count(counted, rows);
  });
  stages.add_once("windows in " + counted, "compare", surveyed.cost.total_ms());
  out.estimate = surveyed.part.estimate;
  counted_[name] = &surveyed.part.groups;
  return out;
}

SurveyedWindows DeviceSurvey::count(const std::string& name, const Buffer& rows) {
  const bool is_natural = rows.data() == nullptr;
  const std::int64_t groups = groups_of(a_);
  const bool in_all = has_few_groups(a_);
  const std::int64_t sampled = is_natural ? kSampledRows : std::min(groups, kMostGroups);
  const bool at_nonzeros = is_natural && !in_all;
  const std::int64_t counted = in_all ? groups : sampled;
  const SurveyGrid grid = is_natural && in_all
                              ? grid_of_all(a_)
                              : SurveyGrid{at_nonzeros, counted, name == "degree",
                                           is_natural ? 1 : shares_of(a_, counted)};
  const ToldToHost there(device_);
  const SurveyCounts& told =
      is_natural && follower_ != nullptr
          ? survey(a_, grid, *follower_, there, device_)
          : survey(a_, rows.as<std::int32_t>(), grid, is_natural, there, device_);
  if (is_natural) samples_ = Samples{std::to_array(told.lengths), empty_share_of(told)};
  std::vector<GroupCounts> counts = counts_of(told, grid);
  SurveyedWindows out;
  out.estimate = estimate_from(sampled, is_natural, [&](std::int64_t sample) {
    const std::int64_t group = is_natural ? told.groups[sample] : groups * sample / sampled;
    return counts[in_all ? group : sample];
  });
  if (in_all) out.groups = std::move(counts);
  return out;
}

std::vector<double> DeviceSurvey::returned(const std::vector<std::string>& orders,
                                           std::int64_t kept, StageTimer& stages) {
  std::vector<std::string> untold;
  std::vector<const std::int32_t*> rows;  // of these
  for (const std::string& order : orders) {
    const Buffer& there = orders_.get(a_, order, stages);
    if (orders_.returned().contains({order, kept})) continue;
    untold.push_back(order);
    rows.push_back(there.as<std::int32_t>());
  }
  if (!untold.empty()) count_returned(untold, rows, kept);
  std::vector<double> shares;
  shares.reserve(orders.size());
  for (const std::string& order : orders) {
    const auto& counted = orders_.returned().at({order, kept});
    stages.add_once(fmt::format("{} rows kept in {}", kept, order), "compare",
                    counted.cost.total_ms());
    shares.push_back(counted.part);
  }
  return shares;
}

// One launch counts them all, so each is taken to cost the same part of it.
void DeviceSurvey::count_returned(const std::vector<std::string>& orders,
                                  const std::vector<const std::int32_t*>& rows, std::int64_t kept) {
  StageTimer all;
  const std::vector<double> shares = [&] {
    const auto timed = all.scope("compare");
    return new_column_shares(a_, rows, kept, device_);
  }();
  const double each_ms = all.total_ms() / static_cast<double>(orders.size());
  for (std::size_t i = 0; i < orders.size(); ++i)
    orders_.returned().get({orders[i], kept}, [&](StageTimer& cost) {
      cost.add("compare", each_ms);
      return shares[i];
    });
}

std::vector<std::int32_t> DeviceSurvey::distinct_columns(const std::string& order,
                                                         int height_index) {
  std::vector<std::int32_t> out;
  const auto found = counted_.find(order);
  if (found == counted_.end() || found->second->empty()) return out;
  const int first = window::first_of_height(height_index);
  const int end = first + window::windows_of_height(height_index);
  const int height = kWcsrHeights[height_index];
  const std::int64_t windows = (a_.rows + height - 1) / height;
  out.reserve(found->second->size() * (end - first));
  for (const GroupCounts& group : *found->second)
    out.insert(out.end(), group.begin() + first, group.begin() + end);
  out.resize(windows);
  return out;
}

const DeviceSurvey::Samples& DeviceSurvey::samples() {
  if (samples_) return *samples_;
  const ToldToHost there(device_);
  const SurveyCounts& told = survey(a_, nullptr, SurveyGrid{}, true, there, device_);
  return samples_.emplace(Samples{std::to_array(told.lengths), empty_share_of(told)});
}

double DeviceSurvey::length_variation() {
  return a_.nnz == 0 ? 0 : row_length_variation(samples().lengths, a_.rows, a_.nnz);
}

double DeviceSurvey::empty_share() { return samples().empty_share; }

WcsrEstimate DeviceSurvey::expect_by_length() {
  return spmmbench::expect_by_length(samples().lengths, a_.nnz);
}

HubColumns find_hub_columns(const DeviceCsr& a, Device& device) {
  HubColumns hubs;
  const HubSample sample = hub_sample(a.rows, a.nnz);
  if (sample.draws == 0) return hubs;
  const Buffer seen = device.allocate((sizeof(std::uint32_t) << kHubCounterBits));
  const ToldToHost told(device);
  device.fill_bytes(seen.data(), 0, seen.bytes());
  count_hubs<<<1, kLargeSurvey, 0, stream_of(device)>>>(a, sample, seen.as<std::uint32_t>(),
                                                        told.as<HubCounts>());
  SPMMBENCH_CUDA_LAUNCHED();
  device.synchronize();
  const HubCounts found = told.read<HubCounts>();
  hubs.share = found.drawn / static_cast<double>(sample.draws);
  hubs.count = found.columns;
  return hubs;
}

double share_of_empty_rows(const DeviceCsr& a, Device& device) {
  const ToldToHost there(device);
  return empty_share_of(survey(a, nullptr, SurveyGrid{}, true, there, device));
}

bool leaves_out_empty_rows(const SparseOperand& a, const DeviceCsr& there, double least_share,
                           Device& device) {
  // Warps for fewer rows have room on the device all at once, and a sample would take a tenth of
  // the preparation.
  constexpr std::int64_t kManyRows = 1 << 17;
  if (there.rows < kManyRows) return false;
  const double share =
      a.features != nullptr ? a.features->empty_rows : share_of_empty_rows(there, device);
  return share >= least_share;
}

}  // namespace spmmbench
