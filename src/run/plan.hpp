#pragma once
// The cases of a run: kernels chosen by name and glob, crossed with precisions, N and reorderings.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "measure/kernel_choice.hpp"
#include "run/options.hpp"
#include "spmmbench/device.hpp"
#include "spmmbench/kernel.hpp"
#include "spmmbench/precision.hpp"
#include "spmmbench/result.hpp"

namespace spmmbench {

// Every count-th input, beginning with the index-th (from 1). All shards together are the whole
// run, and each matrix is loaded by one shard only.
struct Shard {
  std::size_t index = 1, count = 1;
};
Shard parse_shard(std::string_view text);  // "2/8"; throws Error
std::vector<std::string> shard_of(const std::vector<std::string>& inputs, Shard shard);
// What lacks beside `there`: "3/3" of 1/3 and 2/3. Empty where nothing does. Throws Error.
std::string missing_shards(const std::vector<std::string>& there);

// The kernels of one precision, for every matrix, reordering and N. An `implied` group has only
// baselines that the user did not ask for but speed-ups need; they run on the matrix in its own
// order.
struct PrecisionGroup {
  Precision precision = Precision::fp32;
  ElementType c_type = ElementType::f32;
  bool implied = false;
  std::vector<KernelChoice> kernels;
};

// One case of any matrix. Points into the cases and groups from which it was planned.
struct PlannedCase {
  const Spec* reorder = nullptr;
  const PrecisionGroup* group = nullptr;
  std::int64_t n = 0;
  const KernelChoice* choice = nullptr;
};

// Throws Error for a pattern that matches no kernel, and for an option that a matched kernel does
// not have.
std::vector<PrecisionGroup> plan_groups(const Cases& cases, const Protocol& protocol,
                                        DeviceKind device);

// The cases of one matrix, those in its own order first. Cases with the same row order and
// precision follow one another, and among these the cases of one kernel, so that it prepares A once
// for every N. A kernel that cannot write through row ids gets no reordered cases, whatever orders
// are asked for.
std::vector<PlannedCase> plan_cases(const Cases& cases, const std::vector<PrecisionGroup>& groups,
                                    const std::vector<std::int64_t>& ns);

// The row of a case that has not run: its identity and the command that reproduces it.
ResultRow planned_row(const Cases& cases, const MatrixSummary& matrix, const PlannedCase& planned);
// The rows of all cases of a matrix, with the N of the cases.
std::vector<ResultRow> planned_rows(const Cases& cases, const std::vector<PrecisionGroup>& groups,
                                    const MatrixSummary& matrix);

}  // namespace spmmbench
