#pragma once
// What a run is told: which cases, how to measure them, where the results go, and on which
// machines. A child process gets the cases and the protocol alone.

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gpu/rates.hpp"
#include "io/input.hpp"
#include "process/group.hpp"
#include "report/journal.hpp"
#include "report/table.hpp"
#include "spmmbench/device.hpp"
#include "spmmbench/precision.hpp"
#include "spmmbench/result.hpp"
#include "spmmbench/scalars.hpp"
#include "spmmbench/spec.hpp"
#include "timing/stopping.hpp"

namespace spmmbench {

// Which cases to measure when the output file already has rows.
enum class Resume {
  none,    // all cases
  rest,    // those without a row, and those that failed or timed out
  failed,  // only those that failed, timed out or were wrong
};

struct Cases {
  std::vector<std::string> inputs;  // expanded: files and gen: specs
  std::vector<std::int64_t> ns = {128};
  std::vector<std::string> kernels;  // NAME_GLOB[?options]; empty: the device's without a purpose
  std::vector<std::string> exclude;  // name globs
  std::vector<Precision> precisions = {Precision::fp16};
  ElementType c_type = ElementType::f32;
  Layout layout = Layout::row_major;
  std::vector<Spec> reorderings = {Spec{"none", {}}};
  bool baselines = true;  // add the vendor baselines that speed-ups need
  LoadOptions load;
  std::string b_file;  // dense B from a file; empty: random, or the generator's
  std::optional<std::pair<std::int64_t, std::int64_t>> b_dims;
  Scalars scalars;
  std::int64_t batch = 1;  // products with A
  int gpus = 1;            // of one product
  std::string split;       // how it is divided among them; empty where there is one
  Resume resume = Resume::none;
  std::map<std::string, Recorded> known;  // cases that already have rows elsewhere, by case_key
};

struct Protocol {
  SampleLimits limits;
  bool repeat_check = false;              // compare the bits of repeated launches
  std::vector<std::int64_t> calls_curve;  // to measure with preparation: this many calls each
  bool one_launch = false;                // between profiler brackets, instead of timing
  bool isolate = false;                   // each case in a child
  bool interleave = false;                // the kernels of a matrix in turns (run/turns.hpp)
  double timeout_s = 300;                 // of one isolated case
  bool plugins_here = false;  // kernels of plug-ins run in this process; else each case in a child
  std::string cache;          // folder of select/cache.hpp; empty: none
  std::string save_failing;   // folder for operands and results of wrong cases; empty: none
  DeviceRates rates;          // of the device, as the parent process measured them; 0: measure
  int device = 0;             // CUDA device index; -1: CPU kernels only
  std::string nonce;          // that a child writes before its row; empty: none
  Place place;                // among the ranks of a product on several GPUs
  DeviceKind a_memory = DeviceKind::host;  // where A lies before it is prepared
};

struct Outputs {
  std::string json, csv;
  std::map<std::string, std::string> tags;  // --tag KEY=VALUE
  std::string shard;                        // --shard I/N; empty: all inputs
  bool dry_run = false;                     // write the names of the cases and measure none
  bool quiet = false;                       // no status, no tables: files only
  bool tells_failures = false;              // in one line on stderr, where nothing else does
  bool tables = true;                       // on stdout
  TableStyle table;
  bool calls_given = false;  // --calls; if not, those of the run that this one goes on with
  std::string line_prefix;   // of each of the lines of jsonl
  bool jsonl = false;        // every row as a line of JSON on stdout when its case ends; no tables
  bool overwrite = false;    // replace the output of an unfinished run
  bool can_resume = true;    // the command has --resume
  std::function<void(ResultRow&)> after_case;  // may add to the row of a measured case

  bool has_file() const { return !(json.empty() && csv.empty()); }
};

struct Machines {
  std::vector<int> devices;  // not empty: the matrices are spread over these
};

struct RunOptions {
  Cases cases;
  Protocol protocol;
  Outputs outputs;
  Machines machines;
};

}  // namespace spmmbench
