#pragma once
// Windows of so many entries that several CTAs have each, by ranges of its columns.

#include <cstdint>
#include <limits>

namespace spmmbench::wcsr {

// A range of the columns of a long window.
struct Part {
  static constexpr std::int32_t kEntries = 8192;  // of the window for each part
  static constexpr int kMost = 64;                // of a window

  std::int32_t window, number;

  __host__ __device__ static int count(std::int32_t entries) {
    const std::int32_t wanted = (entries - 1) / kEntries + 1;
    return wanted < kMost ? wanted : kMost;
  }
};

// Windows of more than `most` entries are listed part by part, and not counted.
struct LongWindows {
  static constexpr int kNone = std::numeric_limits<int>::max();

  int most;
  Part* list;
  unsigned* count;  // of the parts; zero to begin with

  __device__ void add(std::int64_t window, std::int32_t entries) const {
    const int parts = Part::count(entries);
    Part* const first = list + atomicAdd(count, static_cast<unsigned>(parts));
    for (int i = 0; i < parts; ++i) first[i] = {static_cast<std::int32_t>(window), i};
  }
};

}  // namespace spmmbench::wcsr
