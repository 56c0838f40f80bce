#pragma once
// The plan of a case, with what making it took.

#include <memory>

#include "measure/case_input.hpp"
#include "process/waited_seconds.hpp"

namespace spmmbench {

// A preparation of less than kShortPreparationMs is made kShortPreparations times, so that one that
// was held up does not count (docs/decisions/preparation.md). Both are choices: a stall of 4 to 20
// ms is much of a short preparation and little of a long one. On a GPU one that may have loaded
// code is made twice at least. If A was already prepared and binding took under kLeastStallMs, it
// is not repeated: stalls last 3.5 ms and more. Where Kernel::supports takes more than
// kLeastStallMs, it counts as preparation.
inline constexpr int kShortPreparations = 3;
inline constexpr double kShortPreparationMs = 50, kLeastStallMs = 1;
// Where the first of several preparations on a GPU took so much longer than the one that counts,
// the row says what it took: other work on the host was seen to add up to 20 ms.
inline constexpr double kHiddenPreparationMs = 20;

struct MadePlan {
  std::unique_ptr<Plan> plan;
  double prepare_ms = 0;  // what counts of its preparation
  double other_ms = 0;    // of the kernel in other calls: what plans report, and what is freed
};

// The stages of the row are what a user of this row alone would pay. What a kernel did beyond the
// stages that it told of is one of them. prepare_wall_ms is the time that this run spent: less
// where an earlier case, of another N, has prepared A, and more where the preparation was repeated.
// Throws what preparing throws.
MadePlan make_plan(const CaseInput& input, ResultRow& row);

// What a kernel may have prepared elsewhere: in calls that prepare nothing, and in the exact test,
// which takes as long as its preparation, the look at B and two launches. On the host these are
// stages of the row. On a GPU, where the caller may have waited for other processes, they are a
// metric. `exact_ms`: of the kernel in that test, 0 where nothing is known.
void add_hidden_work(const MadePlan& made, double exact_ms, const DeviceInfo& device,
                     ResultRow& row);

// Waits, for at most 1 s, for what the kernel began and did not wait for: on streams, and on the
// host in threads, which takes 1 ms at least. It is part of the preparation.
enum class Unfinished { on_streams, everywhere };
void add_unfinished_work(Device& device, Unfinished look, StageTimer& stages);

// Whose time a launch takes: on a GPU that of the caller, on the host that of all threads.
inline Threads launching_threads(DeviceKind kind) {
  return kind == DeviceKind::host ? Threads::all : Threads::caller;
}

void add_stages(const StageTimer& stages, ResultRow& row);

}  // namespace spmmbench
