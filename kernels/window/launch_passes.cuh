#pragma once
// How the passes of the WCSR build are launched: with a warp, a small CTA or a large one for each
// window.

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "spmmbench/device.hpp"
#include "spmmbench/device_csr.hpp"
#include "window/device_passes.cuh"
#include "window/launch_next.cuh"

namespace spmmbench::wcsr {

constexpr int kLargeThreads = 1024;

// Which threads have the windows, and from how many entries on a window is left to a list, which a
// kernel of large CTAs has.
struct Division {
  enum class By { warps, small_ctas, large_ctas } by = By::large_ctas;
  int limit = LongWindows::kNone;
  std::int64_t most_listed = 0;  // parts of such windows
  bool lists_skipped = false;    // whether the first pass lists windows that do not fit a warp

  // For windows that another has counted: two kernels more pay for windows of several parts only.
  Division of_counted() const { return {by, std::max(limit, Part::kEntries), most_listed}; }
};

// Large CTAs where each has much to do, or where windows are too few for all SMs; warps where
// windows have few entries and are many.
// `limit_of_warps`: that limit where warps have the windows.
inline Division divide(const DeviceCsr& matrix, std::int64_t windows, const Device& device,
                       int limit_of_warps = 1024) {
  constexpr std::int64_t kFewEntries = 192, kManyEntries = 4096;  // in the mean
  constexpr std::int64_t kManyWindowsPerSm = 12;
  // Entries of a window beyond which several CTAs share it. That of large ones is two parts.
  constexpr int kLimitOfSmallCtas = 8192, kLimitOfLargeCtas = 2 * Part::kEntries;
  constexpr std::int64_t kManyOfFew = 512;  // where each SM has a window at most
  const std::int64_t many = windows <= device.info().sm_count ? kManyOfFew : kManyEntries;
  if (matrix.nnz > many * windows) {
    // All would wait for a window of more than twice a multiprocessor's share of the nonzeros.
    const std::int64_t limit =
        std::max<std::int64_t>(kLimitOfLargeCtas, 2 * matrix.nnz / device.info().sm_count);
    const std::int64_t longs = matrix.nnz / limit;
    if (longs == 0) return {};
    return {Division::By::large_ctas, static_cast<int>(limit), longs + matrix.nnz / Part::kEntries};
  }
  const bool by_warps =
      matrix.nnz <= kFewEntries * windows && windows >= kManyWindowsPerSm * device.info().sm_count;
  const int limit = by_warps ? limit_of_warps : kLimitOfSmallCtas;
  const std::int64_t longs = matrix.nnz / limit;
  return {by_warps ? Division::By::warps : Division::By::small_ctas,
          longs > 0 ? limit : LongWindows::kNone,
          longs > 0 ? longs + matrix.nnz / Part::kEntries : 0, by_warps};
}

// `chosen_rows`: as in take_chosen; `windows` are then as many as there may be.
template <class Pass>
void launch_pass(const DeviceCsr& matrix, std::int64_t windows, Division::By by, const Pass& pass,
                 const std::int32_t* chosen_rows, const Device& device) {
  if (windows == 0) return;
  const auto ctas = static_cast<unsigned>(windows);
  const auto by_warp = [&] {
    constexpr int kThreads = kWarpsOfCta * kLanes;
    constexpr unsigned kSkippedCtasOfSm = 4;
    constexpr std::int64_t kColumnsOfShortKeys = std::int64_t{1} << (32 - ShortWindow::kNumberBits);
    const unsigned of_skipped = Pass::kReadsSkipped && pass.skipped.list != nullptr
                                    ? kSkippedCtasOfSm * device.info().sm_count
                                    : 0;
    launch_next(pass_by_warp<Pass>, of_skipped + (ctas + kWarpsOfCta - 1) / kWarpsOfCta, kThreads,
                bytes_of_marks<kThreads>(matrix.cols), device.stream(), pass, chosen_rows,
                of_skipped, matrix.cols <= kColumnsOfShortKeys);
  };
  const auto by_cta = [&]<int kThreads>(std::integral_constant<int, kThreads>) {
    launch_next(pass_by_cta<kThreads, Pass>, ctas, kThreads, bytes_of_marks<kThreads>(matrix.cols),
                device.stream(), pass, chosen_rows);
  };
  if (by == Division::By::large_ctas) by_cta(std::integral_constant<int, kLargeThreads>{});
  else if (by == Division::By::small_ctas) by_cta(std::integral_constant<int, 256>{});
  else by_warp();
}

template <class Pass>
void launch_parts(const DeviceCsr& matrix, const Pass& pass, const Listed& longs,
                  const Device& device) {
  constexpr std::int64_t kCtasOfSm = 2;  // of that many threads
  const auto ctas =
      static_cast<unsigned>(std::min<std::int64_t>(longs.most, kCtasOfSm * device.info().sm_count));
  launch_next(pass_of_parts<kLargeThreads, Pass>, ctas, kLargeThreads,
              bytes_of_marks<kLargeThreads>(matrix.cols), device.stream(), pass, longs);
}

}  // namespace spmmbench::wcsr
