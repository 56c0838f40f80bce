#pragma once
// How a kernel of the window engine is launched: shape of the CTA, cut of the work, workspace.

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <cuda_runtime.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <mutex>
#include <span>
#include <tuple>
#include <type_traits>

#include "common/grid_limit.hpp"
#include "common/shared_limit.hpp"
#include "format/tile_work.hpp"
#include "gpu/cuda_check.hpp"
#include "ptx/tf32.cuh"
#include "spmmbench/device.hpp"
#include "spmmbench/error.hpp"
#include "spmmbench/problem.hpp"
#include "window/choice.hpp"
#include "window/stage.cuh"

namespace spmmbench::window {

// The most columns for which CTAs of one feature tile of this many bytes are a grid.
inline std::int64_t max_features(int value_bytes, int tile) {
  return kMaxGridY * tile / value_bytes;
}

// One instance of a kernel's template.
template <class... Parameters>
struct Variant {
  void (*kernel)(Parameters...) = nullptr;
  int row_bytes = 0;  // of a feature tile, of B
  int features = 0;   // of a feature tile
  int ring_bytes = 0;
  int sum_vectors = 0;  // float4 of sums per lane

  bool for_vectors() const { return features == 1; }  // N = 1 alone
};

constexpr const char* kWrites = "writes C in fp32, or in 16 bits as B is";
inline bool writes(ElementType c_type, Precision precision) {
  return c_type == ElementType::f32 || c_type == storage_type(precision);
}

// What make.operator()<Input, C, kWindowRows, kRowBytes>() returns: the feature tile is the option
// "feature_tile" or what the matrix suggests. Without Make::kNarrow and in 32 bits a tile has at
// least 128 bytes. Make::kFp8, Make::kFp32: it takes fp8, fp32, with C in fp32.
template <class Make>
auto make_variant(Precision precision, const Options& options, const spmmbench::Shape& shape,
                  std::int64_t tiles, std::int64_t windows, int window_rows, const Make& make) {
  const std::int64_t row_bytes =
      shape.n * static_cast<std::int64_t>(bytes_of(storage_type(precision)));
  const int chosen = precision == Precision::fp32
                         ? (row_bytes > kShortRow ? kLongRow : kShortRow)
                         : choose_feature_tile(tiles, windows, row_bytes, window_rows);
  const int tile = kFeatureTile(options).value_or(chosen);
  const auto of_types = [&]<class Input, class C>(Input, C) {
    const auto of_tile = [&]<int kRowBytes>(std::integral_constant<int, kRowBytes>) {
      // 32 rows of 256 bytes would need more accumulators than a thread has registers to spare, and
      // fp8 needs those of twice the bytes.
      constexpr int kMost = kInputBytes<Input> == 1 ? kShortRow : kLongRow;
      constexpr int kBytes = std::min(kRowBytes, kMost);
      if (window_rows == 32)
        return make.template operator()<Input, C, 32, std::min(kRowBytes, kMost / 2)>();
      if (window_rows == 16) return make.template operator()<Input, C, 16, kBytes>();
      return make.template operator()<Input, C, 8, kBytes>();
    };
    if constexpr (Make::kNarrow && kInputBytes<Input> <= 2) {
      if (tile == kShortestRow) return of_tile(std::integral_constant<int, kShortestRow>{});
      if (tile == kNarrowRow) return of_tile(std::integral_constant<int, kNarrowRow>{});
    }
    if (tile == kLongRow) return of_tile(std::integral_constant<int, kLongRow>{});
    return of_tile(std::integral_constant<int, kShortRow>{});
  };
  const auto of_input = [&]<class Input>(Input input) {
    return shape.c_type == ElementType::f32 ? of_types(input, float{}) : of_types(input, input);
  };
  switch (precision) {
    case Precision::fp16: return of_input(__half{});
    case Precision::bf16: return of_input(__nv_bfloat16{});
    case Precision::tf32: return of_types(ptx::Tf32{}, float{});
    case Precision::fp32:
      if constexpr (Make::kFp32) return of_types(float{}, float{});
      break;
    case Precision::fp8_e4m3:
      if constexpr (Make::kFp8) return of_types(__nv_fp8_e4m3{}, float{});
      break;
    case Precision::fp8_e5m2:
      if constexpr (Make::kFp8) return of_types(__nv_fp8_e5m2{}, float{});
      break;
    default: break;
  }
  throw Error(fmt::format("windows of {} are not multiplied", to_string(precision)));
}

struct LaunchShape {
  int cta_feature_tiles = 1;         // of a CTA
  unsigned feature_tile_groups = 1;  // CTAs side by side
  int warps = 1;
  std::size_t shared_bytes = 0;
  std::int64_t resident_ctas = 0;  // on all SMs
  TileCut cut;

  std::int64_t feature_tiles() const {
    return std::int64_t{cta_feature_tiles} * feature_tile_groups;
  }
  dim3 cta() const {
    return {32, static_cast<unsigned>(cta_feature_tiles), static_cast<unsigned>(cut.team)};
  }
};

struct TileCounts : WindowSizes {
  MeanLimits limits;  // of the kernel
};

// How many CTAs of a kernel an SM holds; the kernel may then be launched with this many bytes. The
// answer is kept, since asking takes longer than the rest of a choice.
template <class... Parameters>
int resident_ctas_per_sm(void (*kernel)(Parameters...), int threads, std::size_t shared_bytes,
                         const DeviceInfo& device) {
  static std::mutex mutex;
  static std::map<std::tuple<int, const void*, int, std::size_t>, int> known;
  const std::tuple key{device.index, reinterpret_cast<const void*>(kernel), threads, shared_bytes};
  const std::scoped_lock lock(mutex);
  if (const auto found = known.find(key); found != known.end()) return found->second;
  allow_shared_bytes(kernel, static_cast<int>(shared_bytes));
  int ctas = 0;
  SPMMBENCH_CUDA(
      cudaOccupancyMaxActiveBlocksPerMultiprocessor(&ctas, kernel, threads, shared_bytes));
  return known[key] = std::max(ctas, 1);
}

// With CTAs of `wanted` warps, from the options "cta_tiles", "span", "whole" and "part", and from
// what the matrix suggests. `cta_row`: bytes of a row of B for a CTA, at most.
template <class... Parameters>
LaunchShape launch_of(int wanted, const Options& options, const Variant<Parameters...>& variant,
                      std::int64_t n, const TileCounts& a, int cta_row, const DeviceInfo& device) {
  LaunchShape out;
  const std::int64_t feature_tiles = (n + variant.features - 1) / variant.features;
  const int fit = std::min(wanted, cta_row / variant.row_bytes);
  const auto given = kCtaTiles(options);
  const int most = given ? std::min(wanted, *given)
                         : cta_feature_tiles(fit, static_cast<double>(a.windows),
                                             static_cast<double>(feature_tiles), device.sm_count);
  out.feature_tile_groups = static_cast<unsigned>((feature_tiles + most - 1) / most);
  out.cta_feature_tiles =
      static_cast<int>((feature_tiles + out.feature_tile_groups - 1) / out.feature_tile_groups);
  const int team = std::max(1, wanted / out.cta_feature_tiles);
  out.warps = team * out.cta_feature_tiles;
  out.shared_bytes = static_cast<std::size_t>(out.warps) * variant.ring_bytes;
  const int ctas_per_sm =
      resident_ctas_per_sm(variant.kernel, out.warps * 32, out.shared_bytes, device);
  out.resident_ctas = std::int64_t{ctas_per_sm} * device.sm_count;
  out.cut = choose_cut({.tiles = static_cast<double>(a.tiles),
                        .windows = static_cast<double>(a.windows),
                        .feature_tiles = static_cast<double>(feature_tiles),
                        .ctas_of_window = static_cast<double>(out.feature_tile_groups),
                        .team = team,
                        .sms = static_cast<double>(device.sm_count),
                        .warps = static_cast<double>(device.sm_count) * ctas_per_sm * out.warps,
                        .many_at_once = variant.for_vectors(),
                        .limits = a.limits});
  out.cut.span_tiles = kSpan(options).value_or(out.cut.span_tiles);
  out.cut.whole_tiles = kWhole(options).value_or(out.cut.whole_tiles);
  out.cut.part_tiles = kPart(options).value_or(out.cut.part_tiles);
  out.cut.split_tiles = std::min(out.cut.split_tiles, out.cut.part_tiles);
  return out;
}

// The same with the warps of the option "warps". If no window is shared, the warps of a CTA do not
// need each other, and small CTAs fill free places sooner: two warps take 0.97 to 0.99 of the time
// of four (docs/decisions/window-cuts.md).
template <class... Parameters>
LaunchShape choose_launch(const Options& options, const Variant<Parameters...>& variant,
                          std::int64_t n, const TileCounts& a, int cta_row,
                          const DeviceInfo& device) {
  constexpr int kWarpsOfSmallCta = 2;
  const auto launch = [&](int warps) {
    return launch_of(warps, options, variant, n, a, cta_row, device);
  };
  if (const auto given = kWarps(options)) return launch(*given);
  const LaunchShape large = launch(kMaxWarps);
  if (a.longest > large.cut.whole_tiles) return large;
  LaunchShape small = launch(kWarpsOfSmallCta);
  small.cut.whole_tiles = large.cut.whole_tiles;  // still no window is shared
  return small;
}

// Whether CTAs let the next kernel of the stream in when they start instead of when they end. An
// early start hides the start of a launch, but the next kernel's CTAs then go to whichever SM has
// room first; CTAs that are few and of unequal length should be spread evenly.
inline bool release_early(const WorkSize& work, const LaunchShape& launch) {
  const std::int64_t ctas = work.spans / launch.cut.team * launch.feature_tile_groups;
  return !work.is_shared || ctas > 3 * launch.resident_ctas;
}

// Dynamic shared memory of each of `ctas`, of a grid with as many feature tiles side by side as
// `launch` has, which let the next launch in when they start. Its CTAs would go to whichever SM has
// room first, and where all fit on the device at once, no later CTA makes up for that. There each
// asks for so much that no SM has room for more than an even share of them. With fewer than three
// to an SM latency is the limit, not their spread (docs/decisions/windows.md).
inline std::size_t even_share_bytes(const LaunchShape& launch, std::int64_t ctas,
                                    const DeviceInfo& device) {
  // What the system takes of each CTA, and the unit (CUDA C++ Programming Guide, "Shared Memory").
  constexpr std::size_t kSystemBytes = 1024, kUnit = 128;
  constexpr std::int64_t kFew = 3;  // CTAs to an SM
  const std::int64_t all = ctas * launch.feature_tile_groups, sms = device.sm_count;
  const std::int64_t share = (all + sms - 1) / sms;
  if (all < kFew * sms || share * sms >= launch.resident_ctas) return launch.shared_bytes;
  const std::size_t of_sm = device.shared_per_block + kSystemBytes;
  return of_sm / static_cast<std::size_t>(share) / kUnit * kUnit - kSystemBytes;
}

// Place of the format -> row of C; empty: they are the same.
inline Permutation rows_of_c(const Permutation& row_order, std::span<const std::int32_t> row_ids) {
  if (row_ids.empty()) return row_order;
  if (row_order.empty()) return {row_ids.begin(), row_ids.end()};
  Permutation both(row_order.size());
  for (std::size_t place = 0; place < both.size(); ++place) both[place] = row_ids[row_order[place]];
  return both;
}

// Sums and arrivals of split windows (window::Arguments), zero to begin with.
struct Workspace {
  Buffer sums, arrivals;
};

// `ordered` as in Arguments.
inline Workspace make_workspace(const WorkSize& work, const LaunchShape& launch, int sum_vectors,
                                bool ordered, Device& device) {
  const std::int64_t slots = ordered ? work.split_ctas : work.splits;
  const std::int64_t counters = work.splits * launch.feature_tiles();
  Workspace out{device.allocate(slots * launch.feature_tiles() * sum_vectors * 32 * sizeof(float4)),
                device.allocate(counters * sizeof(unsigned))};
  device.fill_bytes(out.sums.data(), 0, out.sums.bytes());
  device.fill_bytes(out.arrivals.data(), 0, out.arrivals.bytes());
  return out;
}

}  // namespace spmmbench::window
