#pragma once
// How a kernel on common/tile_ring.cuh is launched: block shape, cut of the work, workspace.

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <span>

#include "common/mma.cuh"
#include "common/tile_choice.hpp"
#include "gpu/cuda_check.hpp"
#include "spmmbench/device.hpp"
#include "spmmbench/error.hpp"
#include "spmmbench/spec.hpp"

namespace spmmbench::tiles {

constexpr int kMaxWarps = 4;                    // per block
constexpr int kShortRow = 128, kLongRow = 256;  // bytes of a strip
constexpr std::int64_t kMaxGridY = 65535;

inline std::int64_t max_features(int value_bytes) {
  return kMaxGridY * kMaxWarps * kShortRow / value_bytes;
}

// One instance of a kernel's template.
template <class... Parameters>
struct Variant {
  void (*kernel)(Parameters...) = nullptr;
  int features = 0;  // of a strip
  int ring_bytes = 0;
  int sums = 0;
};

// What make.operator()<Input, kWindowRows, kRowBytes>() returns: the strip of B is the option
// "strip" or what the matrix suggests.
template <class Make>
auto make_variant(Precision precision, const Options& options, std::int64_t n, std::int64_t tiles,
                  std::int64_t windows, int window_rows, const Make& make) {
  const std::int64_t row_bytes = n * static_cast<std::int64_t>(bytes_of(storage_type(precision)));
  const std::string strip = options.get_choice("strip", "auto", {"auto", "128", "256"});
  const bool is_long =
      strip == "auto" ? prefer_long_strips(tiles, windows, row_bytes, window_rows) : strip == "256";
  const auto of_input = [&]<class Input>(Input) {
    // 32 rows of 256 bytes would need more accumulators than a thread has registers to spare.
    if (window_rows == 32) return make.template operator()<Input, 32, kShortRow>();
    if (window_rows == 16)
      return is_long ? make.template operator()<Input, 16, kLongRow>()
                     : make.template operator()<Input, 16, kShortRow>();
    return is_long ? make.template operator()<Input, 8, kLongRow>()
                   : make.template operator()<Input, 8, kShortRow>();
  };
  switch (precision) {
    case Precision::fp16: return of_input(__half{});
    case Precision::bf16: return of_input(__nv_bfloat16{});
    case Precision::tf32: return of_input(mma::Tf32{});
    case Precision::fp32: break;
  }
  throw Error(fmt::format("tensor cores do not multiply {}", to_string(precision)));
}

struct LaunchShape {
  int strips = 1;             // of a block
  unsigned strip_groups = 1;  // blocks side by side
  int warps = 1;
  std::size_t shared_bytes = 0;
  std::int64_t resident_blocks = 0;  // on all SMs
  TileCut cut;

  std::int64_t all_strips() const { return std::int64_t{strips} * strip_groups; }
  dim3 block() const {
    return {32, static_cast<unsigned>(strips), static_cast<unsigned>(cut.team)};
  }
};

// From the options "warps", "span", "whole" and "part", and from what the matrix suggests.
template <class... Parameters>
LaunchShape choose_launch(const Options& options, const Variant<Parameters...>& variant,
                          std::int64_t n, std::int64_t tiles, std::int64_t windows,
                          const DeviceInfo& device) {
  LaunchShape out;
  const std::int64_t strips = (n + variant.features - 1) / variant.features;
  const auto wanted = static_cast<int>(options.get_int("warps", kMaxWarps, 1, kMaxWarps));
  out.strip_groups = static_cast<unsigned>((strips + wanted - 1) / wanted);
  out.strips = static_cast<int>((strips + out.strip_groups - 1) / out.strip_groups);
  const int team = std::max(1, wanted / out.strips);
  out.warps = team * out.strips;
  out.shared_bytes = static_cast<std::size_t>(out.warps) * variant.ring_bytes;
  SPMMBENCH_CUDA(cudaFuncSetAttribute(variant.kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                      static_cast<int>(out.shared_bytes)));
  int blocks_per_sm = 0;
  SPMMBENCH_CUDA(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks_per_sm, variant.kernel,
                                                               out.warps * 32, out.shared_bytes));
  blocks_per_sm = std::max(blocks_per_sm, 1);
  out.resident_blocks = std::int64_t{blocks_per_sm} * device.sm_count;
  out.cut = choose_cut(tiles, windows, strips, team, device.sm_count, blocks_per_sm * out.warps);
  const auto given = [&](const char* key, int& count) {
    if (options.get(key, "auto") != "auto")
      count = static_cast<int>(options.get_int(key, 1, 1, TileCut::kMaxSpanTiles));
  };
  given("span", out.cut.span_tiles);
  given("whole", out.cut.whole_tiles);
  given("part", out.cut.part_tiles);
  return out;
}

// Whether blocks let the stream's next kernel in when they start rather than when they end. Its
// blocks then come to lie on whichever SM has room first: that hides a launch's start, but where
// they are few and unequal in length they should be dealt out evenly over the SMs.
inline bool release_early(const TileWork& work, const LaunchShape& launch) {
  const bool equal = work.spans.empty() || (work.spans.front().tiles & TileSpan::kShared) == 0;
  const std::int64_t blocks =
      static_cast<std::int64_t>(work.spans.size()) / launch.cut.team * launch.strip_groups;
  return equal || blocks > 3 * launch.resident_blocks;
}

// Place of the format -> row of C; empty: they are the same.
inline Permutation rows_of_c(const Permutation& row_order, std::span<const std::int32_t> row_ids) {
  if (row_ids.empty()) return row_order;
  if (row_order.empty()) return {row_ids.begin(), row_ids.end()};
  Permutation both(row_order.size());
  for (std::size_t place = 0; place < both.size(); ++place) both[place] = row_ids[row_order[place]];
  return both;
}

// Sums and arrivals of split windows (tiles::Arguments), zero to begin with.
struct Workspace {
  Buffer sums, arrivals;
};

// `ordered` as in Arguments.
inline Workspace make_workspace(const TileWork& work, const LaunchShape& launch, int sums,
                                bool ordered, Device& device) {
  std::int64_t slots = static_cast<std::int64_t>(work.splits.size());
  const std::int64_t counters = slots * launch.all_strips();
  if (ordered && slots > 0) slots = work.splits.back().first_block + work.splits.back().blocks;
  Workspace out{device.allocate(slots * launch.all_strips() * sums * 32 * sizeof(float4)),
                device.allocate(counters * sizeof(unsigned))};
  device.fill_bytes(out.sums.data(), 0, out.sums.bytes());
  device.fill_bytes(out.arrivals.data(), 0, out.arrivals.bytes());
  return out;
}

}  // namespace spmmbench::tiles
