// Counts on samples of a matrix on the device.

#include "common/device_arrays.hpp"
#include "window/device_survey.hpp"

#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/row_lengths.hpp"
#include "format/wcsr.hpp"
#include "gpu/cuda_check.hpp"
#include "window/device_window.cuh"
#include "window/row_at_nonzero.cuh"

namespace spmmbench {
namespace {

constexpr int kSurveyThreads = 1024;
constexpr int kGroupRows = kWcsrHeights[2];  // a group is a window of the largest height
constexpr int kWindowsOfGroup = 7;           // four of 8 rows, two of 16, one of 32
constexpr int kCountsOfGroup = 8;            // and its nonzeros

__global__ void sample_lengths(DeviceCsr a, std::int64_t* lengths) {
  const std::int64_t row = row_at_nonzero(a, static_cast<int>(threadIdx.x));
  lengths[threadIdx.x] = a.row_ptr[row + 1] - a.row_ptr[row];
}

// A CTA for each window of each group: its distinct columns. Groups lie at sampled nonzeros, or,
// where rows have another order, evenly among the places.
__global__ void __launch_bounds__(kSurveyThreads)
    count_groups(DeviceCsr matrix, const std::int32_t* row_of, std::int32_t* counts) {
  extern __shared__ __align__(16) unsigned char shared[];
  __shared__ wcsr::Window window;
  __shared__ wcsr::ScatteredColumns<kSurveyThreads> scattered;
  const int part = static_cast<int>(blockIdx.y);
  const int height = part < 4 ? kGroupRows / 4 : part < 6 ? kGroupRows / 2 : kGroupRows;
  const int index = part < 4 ? part : part < 6 ? part - 4 : 0;
  const std::int64_t groups = (matrix.rows + kGroupRows - 1) / kGroupRows;
  const std::int64_t group = row_of == nullptr
                                 ? row_at_nonzero(matrix, static_cast<int>(blockIdx.x)) / kGroupRows
                                 : groups * blockIdx.x / gridDim.x;
  const std::int64_t first_place = group * kGroupRows + index * height;
  std::int32_t* const out = counts + std::int64_t{blockIdx.x} * kCountsOfGroup;
  if (first_place >= matrix.rows) {
    if (threadIdx.x == 0) out[part] = 0;
    return;
  }
  const wcsr::Csr a{matrix.row_ptr, matrix.col_idx, row_of, matrix.rows, height};
  wcsr::read_window(a, first_place, window);
  const std::int32_t distinct = wcsr::count_distinct<kSurveyThreads>(a, window, shared, scattered);
  if (threadIdx.x != 0) return;
  out[part] = distinct;
  if (height == kGroupRows) out[kWindowsOfGroup] = window.count();
}

__global__ void count_empty_rows(DeviceCsr a, std::int64_t places, int* empty, int* sampled) {
  const std::int64_t place = threadIdx.x / kRowsOfPlace;
  const std::int64_t row = max(kRowsOfPlace, a.rows / places) * place + threadIdx.x % kRowsOfPlace;
  if (place >= places || row >= a.rows) return;
  atomicAdd(sampled, 1);
  if (a.row_ptr[row] == a.row_ptr[row + 1]) atomicAdd(empty, 1);
}

struct HubCounts {
  std::int32_t drawn, columns;  // nonzeros drawn that are in hub columns; these
};

__global__ void __launch_bounds__(kSurveyThreads)
    count_hubs(DeviceCsr a, HubSample sample, std::uint32_t* seen, HubCounts* out) {
  for (std::int64_t i = threadIdx.x; i < sample.draws; i += kSurveyThreads)
    atomicAdd(seen + hub_counter(a.col_idx[hub_draw(i, a.nnz)]), 1U);
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.x); i < 1 << kHubCounterBits; i += kSurveyThreads) {
    const std::uint32_t times = atomicAdd(seen + i, 0U);
    if (times < sample.least) continue;
    atomicAdd(&out->drawn, static_cast<std::int32_t>(times));
    atomicAdd(&out->columns, 1);
  }
}

// Sums over the windows of each height: distinct columns, and tiles of them filled up.
struct GroupSums {
  std::array<double, 3> gathered{}, stored{};
  double nnz = 0;
};

GroupSums sums_of(const std::int32_t* counts) {
  constexpr double kTile = WcsrShape{}.tile_columns;
  GroupSums out;
  for (int part = 0; part < kWindowsOfGroup; ++part) {
    const int height = part < 4 ? 0 : part < 6 ? 1 : 2;
    out.gathered[height] += counts[part];
    out.stored[height] += std::ceil(counts[part] / kTile) * kTile;
  }
  out.nnz = counts[kWindowsOfGroup];
  return out;
}

}  // namespace

window::Surveyed DeviceSurvey::order(const std::string& name, StageTimer& stages) {
  const Buffer& rows = orders_.get(a_, name, stages);
  window::Surveyed out{rows.data() == nullptr, nullptr, {}};
  if (a_.nnz == 0) return out;
  if (out.is_natural && features_ != nullptr) {
    out.estimate = windows_of(*features_);
    return out;
  }
  const auto& surveyed = orders_.surveyed().get(name, [&](StageTimer& cost) {
    const auto timed = cost.scope("compare");
    return count(rows);
  });
  stages.add_once("windows in " + name, "compare", surveyed.cost.total_ms());
  out.estimate = surveyed.part;
  return out;
}

WcsrEstimate DeviceSurvey::count(const Buffer& rows) {
  constexpr std::int64_t kMostGroups = 256;  // of an order whose nonzeros have no offsets
  const bool is_natural = rows.data() == nullptr;
  const std::int64_t groups = (a_.rows + kGroupRows - 1) / kGroupRows;
  const std::int64_t sampled = is_natural ? kSampledRows : std::min(groups, kMostGroups);
  const Buffer counts = device_.allocate(sampled * kCountsOfGroup * sizeof(std::int32_t));
  const std::int64_t columns = std::min<std::int64_t>(a_.cols, wcsr::kSlab<kSurveyThreads>);
  count_groups<<<dim3(static_cast<unsigned>(sampled), kWindowsOfGroup), kSurveyThreads,
                 (columns / wcsr::kGroup + 1) * wcsr::kBytesPerGroup, stream_of(device_)>>>(
      a_, rows.as<std::int32_t>(), counts.as<std::int32_t>());
  SPMMBENCH_CUDA_LAUNCHED();
  const std::vector<std::int32_t> host = downloaded<std::int32_t>(counts, device_);
  // Groups at sampled nonzeros are drawn in proportion to their nonzeros, so each counts the same;
  // evenly spaced ones count by their nonzeros.
  WcsrEstimate out;
  double weights = 0;
  for (std::int64_t g = 0; g < sampled; ++g) {
    const GroupSums sums = sums_of(host.data() + g * kCountsOfGroup);
    if (sums.nnz == 0) continue;
    const double weight = is_natural ? 1 / sums.nnz : 1;
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

const std::array<std::int64_t, kSampledRows>& DeviceSurvey::lengths() {
  if (lengths_) return *lengths_;
  lengths_.emplace();
  const Buffer sampled = device_.allocate(sizeof(*lengths_));
  sample_lengths<<<1, kSampledRows, 0, stream_of(device_)>>>(a_, sampled.as<std::int64_t>());
  SPMMBENCH_CUDA_LAUNCHED();
  device_.download(lengths_->data(), sampled.data(), sampled.bytes());
  return *lengths_;
}

double DeviceSurvey::length_variation() {
  if (features_ != nullptr) return features_->cv_row;
  return a_.nnz == 0 ? 0 : row_length_variation(lengths(), a_.rows, a_.nnz);
}

WcsrEstimate DeviceSurvey::expect_by_length() {
  return spmmbench::expect_by_length(lengths(), a_.nnz);
}

HubColumns find_hub_columns(const DeviceCsr& a, Device& device) {
  HubColumns hubs;
  const HubSample sample = hub_sample(a.rows, a.nnz);
  if (sample.draws == 0) return hubs;
  const Buffer seen = device.allocate((sizeof(std::uint32_t) << kHubCounterBits));
  const Buffer counts = device.allocate(sizeof(HubCounts));
  device.fill_bytes(seen.data(), 0, seen.bytes());
  device.fill_bytes(counts.data(), 0, counts.bytes());
  count_hubs<<<1, kSurveyThreads, 0, stream_of(device)>>>(a, sample, seen.as<std::uint32_t>(),
                                                          counts.as<HubCounts>());
  SPMMBENCH_CUDA_LAUNCHED();
  const HubCounts found = downloaded<HubCounts>(counts, device)[0];
  hubs.share = found.drawn / static_cast<double>(sample.draws);
  hubs.count = found.columns;
  return hubs;
}

double share_of_empty_rows(const DeviceCsr& a, Device& device) {
  const std::int64_t places = std::min(kSampledPlaces, (a.rows + kRowsOfPlace - 1) / kRowsOfPlace);
  const Buffer counts = device.allocate(2 * sizeof(int));
  device.fill_bytes(counts.data(), 0, counts.bytes());
  static_assert(kSampledPlaces * kRowsOfPlace == kSurveyThreads);
  count_empty_rows<<<1, kSurveyThreads, 0, stream_of(device)>>>(a, places, counts.as<int>(),
                                                                counts.as<int>() + 1);
  SPMMBENCH_CUDA_LAUNCHED();
  const std::vector<int> found = downloaded<int>(counts, device);
  return static_cast<double>(found[0]) / static_cast<double>(found[1]);
}

}  // namespace spmmbench
