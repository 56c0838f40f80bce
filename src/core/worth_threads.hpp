#pragma once

#include <cstdint>

namespace spmmbench {

// From this many elements on several threads share a simple loop. Fewer take one thread less than
// 0.1 ms, and waking the others takes about as long. Where a host takes processors away for a
// while, a shared loop waits for the last of them.
inline constexpr std::int64_t kWorthThreads = 1 << 16;

}  // namespace spmmbench
