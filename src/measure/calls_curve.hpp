#pragma once
// What preparation and a number of calls take together, measured as a program has it that begins
// with A in host memory, or on the device. What rows and answers say of several calls is a sum,
// preparation + calls x hot time; this is the time itself.

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "measure/kernel_choice.hpp"
#include "measure/operands.hpp"
#include "spmmbench/kernel.hpp"
#include "spmmbench/scalars.hpp"
#include "timing/sampler.hpp"

namespace spmmbench {

// Cold starts of each number of calls, of which the median counts. A short one takes a fifth longer
// where the host is held up, so it is repeated until so much time is measured.
inline constexpr int kLeastCurveRepeats = 3, kMostCurveRepeats = 9;
inline constexpr double kCurveUs = 20'000;

// For each number of calls, as text, the microseconds from an idle device with a flushed cache to
// the end of the last launch: A is prepared, one plan made and launched so often. Row orders are
// computed anew; `reorder` is the one that A is in. The plan is not settled: what it prepares in
// its launches counts. Where problem.on_device is null A begins in host memory, and copying it to
// the device counts. Else it begins there alone, and what a kernel copies of it to the host counts.
// Throws what preparing throws, and Interrupted.
std::vector<std::pair<std::string, double>> measure_calls_curve(
    const KernelChoice& choice, const Problem& problem, const Spec& reorder,
    const Operands& operands, std::span<const std::int64_t> calls, Device& device,
    const Scalars& scalars = {}, std::int64_t members = 1, const Clock& clock = steady_seconds);

}  // namespace spmmbench
