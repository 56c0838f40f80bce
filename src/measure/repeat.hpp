#pragma once
// Single launches, each into a C that was poisoned before. A kernel that works in some of its
// launches only, or only where C shows that it must, is found out by them.

#include <functional>

#include "spmmbench/device.hpp"
#include "spmmbench/kernel.hpp"

namespace spmmbench {

inline constexpr int kRepeats = 10;             // of --repeat-check
inline constexpr int kLaunchesAfterTiming = 3;  // of every row that is timed

// Whether C is right, as the last launch left it. `known`: it has the bits of a C that was right,
// so that only what lies around it needs a look.
using CheckC = std::function<bool(bool known)>;

struct Repeats {
  bool right = true;      // the check of every launch was passed
  bool same_bits = true;  // every element of C had the same bits after each launch
};

// Launches kRepeats times, or until a check fails. Kernels whose atomics add in a varying order
// have other bits each time.
Repeats repeat_launches(Device& device, const KernelInfo& kernel, const DenseView& c,
                        const std::function<void()>& launch, const CheckC& check);

// Launches kLaunchesAfterTiming times, from a C that is right. False where a check fails. On the
// host bits are compared first, since the reference may be slow there. On a GPU the reference
// judges every launch, which takes less time than a copy of C to the host.
bool launches_stay_right(Device& device, const KernelInfo& kernel, const DenseView& c,
                         const std::function<void()>& launch, const CheckC& check);

}  // namespace spmmbench
