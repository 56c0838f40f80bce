#pragma once
// Dependent loads, one cache line each: what they take says where the lines lie.

#include <cstdint>

#include "spmmbench/device.hpp"

namespace spmmbench::test {

// `next[i * kLineWords]` is the line to read after line i. One thread on the stream follows `steps`
// of them from line 0 and stores where it ended in `end`.
inline constexpr std::int64_t kLineWords = 32;  // 128 bytes
void chase(const std::uint32_t* next, int steps, std::uint32_t* end, Stream stream);

}  // namespace spmmbench::test
