#pragma once
// The cases of a run: kernels chosen by name and glob, crossed with precisions, N and reorderings.

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "gpu/rates.hpp"
#include "io/input.hpp"
#include "measure/kernel_choice.hpp"
#include "report/journal.hpp"
#include "report/table.hpp"
#include "spmmbench/device.hpp"
#include "spmmbench/kernel.hpp"
#include "spmmbench/precision.hpp"
#include "spmmbench/result.hpp"
#include "spmmbench/spec.hpp"
#include "timing/stopping.hpp"

namespace spmmbench {

// Which cases to measure when the output file already has rows.
enum class Resume {
  none,    // all cases
  rest,    // those without a row, and those that failed or timed out
  failed,  // only those that failed, timed out or were wrong
};

struct RunOptions {
  std::vector<std::string> inputs;  // expanded: files and gen: specs
  std::vector<std::int64_t> ns = {128};
  std::vector<std::string> kernels;  // NAME_GLOB[?options]; empty: the device's, to be used
  std::vector<std::string> exclude;  // name globs
  std::vector<Precision> precisions = {Precision::fp16};
  ElementType c_type = ElementType::f32;
  Layout layout = Layout::row_major;
  std::vector<Spec> reorderings = {Spec{"none", {}}};
  bool baselines = true;  // add the vendor baselines that speed-ups need
  LoadOptions load;
  std::string b_file;  // dense B from a file; empty: random, or the generator's
  std::optional<std::pair<std::int64_t, std::int64_t>> b_dims;
  std::string json, csv;
  std::map<std::string, std::string> tags;  // --tag KEY=VALUE
  std::string save_failing;   // folder for operands and results of wrong cases; empty: none
  std::string cache;          // folder of select/cache.hpp; empty: none
  bool repeat_check = false;  // compare the bits of repeated launches
  bool dry_run = false;       // write the names of the cases and measure none
  bool quiet = false;         // no status, no tables: files only
  bool tables = true;         // on stdout
  TableStyle table;
  bool calls_given = false;  // --calls; if not, those of the run that this one goes on with
  bool jsonl = false;        // every row as a line of JSON on stdout when its case ends; no tables
  Resume resume = Resume::none;
  bool overwrite = false;                 // replace the output of an unfinished run
  bool can_resume = true;                 // the command has --resume
  std::map<std::string, Recorded> known;  // cases that already have rows elsewhere, by case_key
  bool isolate = false;
  double timeout_s = 300;     // of one isolated case
  bool plugins_here = false;  // kernels of plug-ins run in this process; else each case in a child
  SampleLimits limits;
  DeviceRates rates;         // of the device, as the parent process measured them; 0: measure
  int device = 0;            // CUDA device index; -1: CPU kernels only
  std::vector<int> devices;  // not empty: the matrices are spread over these
  bool one_launch = false;   // between profiler brackets, instead of timing
  std::function<void(ResultRow&)> after_case;  // may add to the row of a measured case
};

// Every count-th input, beginning with the index-th (from 1). All shards together are the whole
// run, and each matrix is loaded by one shard only.
struct Shard {
  std::size_t index = 1, count = 1;
};
Shard parse_shard(std::string_view text);  // "2/8"; throws Error
std::vector<std::string> shard_of(const std::vector<std::string>& inputs, Shard shard);

// The kernels of one precision, for every matrix, reordering and N. An `implied` group has only
// baselines that the user did not ask for but speed-ups need; they run on the matrix in its own
// order.
struct PrecisionGroup {
  Precision precision = Precision::fp32;
  ElementType c_type = ElementType::f32;
  bool implied = false;
  std::vector<KernelChoice> kernels;
};

// One case of any matrix. Points into the options and groups from which it was planned.
struct PlannedCase {
  const Spec* reorder = nullptr;
  const PrecisionGroup* group = nullptr;
  std::int64_t n = 0;
  const KernelChoice* choice = nullptr;
};

// Throws Error for a pattern that matches no kernel, and for an option that a matched kernel does
// not have.
std::vector<PrecisionGroup> plan_groups(const RunOptions& options, DeviceKind device);

// The cases of one matrix, those in its own order first. Cases with the same row order and
// precision follow one another, and among these the cases of one kernel, so that it prepares A once
// for every N. A kernel that cannot write through row ids gets no reordered cases, whatever orders
// are asked for.
std::vector<PlannedCase> plan_cases(const RunOptions& options,
                                    const std::vector<PrecisionGroup>& groups,
                                    const std::vector<std::int64_t>& ns);

// The row of a case that has not run: its identity and the command that reproduces it.
ResultRow planned_row(const RunOptions& options, const std::string& source,
                      const PlannedCase& planned);
// The rows of all cases of an input, with the N of the options.
std::vector<ResultRow> planned_rows(const RunOptions& options,
                                    const std::vector<PrecisionGroup>& groups,
                                    const std::string& source);

}  // namespace spmmbench
