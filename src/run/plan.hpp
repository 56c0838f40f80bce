#pragma once
// What a run will measure: kernels chosen by name and glob, crossed with precisions, N and
// reorderings.

#include <string>
#include <vector>

#include "io/input.hpp"
#include "spmmbench/device.hpp"
#include "spmmbench/kernel.hpp"
#include "spmmbench/precision.hpp"
#include "spmmbench/spec.hpp"
#include "stats/stopping.hpp"

namespace spmmbench {

struct RunOptions {
  std::vector<std::string> inputs;  // expanded: files and gen: specs
  std::vector<std::int64_t> ns = {128};
  std::vector<std::string> kernels;  // NAME_GLOB[?options]; empty: every kernel of the device
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
  bool quiet = false;  // no status, no tables: files only
  bool resume = false;
  bool isolate = false;
  double timeout_s = 300;  // of one isolated case
  NoiseLimit::Limits limits;
  int device = 0;  // CUDA device index; -1: CPU kernels only
};

// A kernel with the options asked for.
struct KernelChoice {
  const Kernel* kernel = nullptr;
  Options options;
  std::string label() const;  // Spec::to_string
};

// One (precision, kernels) group of every matrix, reordering and N. `implied` groups hold only
// baselines that the user did not ask for but speed-ups need; they run on the unreordered matrix.
struct PrecisionGroup {
  Precision precision = Precision::fp32;
  ElementType c_type = ElementType::f32;
  bool implied = false;
  std::vector<KernelChoice> kernels;
};

// Throws Error for a pattern that matches no kernel and for options a matched kernel does not have.
std::vector<PrecisionGroup> plan_groups(const RunOptions& options, DeviceKind device);

}  // namespace spmmbench
