#pragma once
// The options that say which cases are meant; shared by `run` and `profile`.

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "run/plan.hpp"

namespace spmmbench {

// The values that CLI11 fills in. They become RunOptions when the command runs.
struct CaseOptions {
  std::vector<std::string> paths, kernels, exclude, dims;
  std::string ns = "128", precisions = "fp16", c_type = "fp32", layout = "row", reorder = "none";
  std::string bin_type = "fp32";
  std::string a_file, b_file, shard;
  CLI::Option *n_option = nullptr, *min_samples = nullptr, *max_samples = nullptr;
  RunOptions options;  // with what needs no translation filled in
};

void add_case_options(CLI::App& command, CaseOptions& in);
void add_sampling_options(CLI::App& command, CaseOptions& in);
RunOptions resolve(CaseOptions in);  // throws Error

// The file that --config names; empty without one.
std::string config_file(const CLI::App& command);

std::vector<std::string> process_arguments();  // argv as the process was started

}  // namespace spmmbench
