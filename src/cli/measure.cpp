#include "cli/measure.hpp"

#include "cli/case_options.hpp"
#include "io/output.hpp"
#include "io/tensor_path.hpp"
#include "run/runner.hpp"

namespace spmmbench {

ExitCode measure(RunOptions options) {
  for (std::string* output : {&options.json, &options.csv}) {
    if (*output == "/dev/stdout") *output = kStandardOutput;
    if (options.resume != Resume::none && !output->empty() && is_stream(*output))
      throw Error(fmt::format("--resume and --retry-failed: expected a file to go on with, not {}",
                              *output));
    std::vector<std::string> inputs = {options.b_file};
    for (const std::string& input : options.inputs) {
      const auto tensor = parse_tensor_path(input);
      inputs.push_back(tensor ? tensor->file : input);
    }
    require_not_an_input(*output, inputs);
  }
  const bool json = options.json == kStandardOutput, csv = options.csv == kStandardOutput;
  if (json + csv + options.jsonl > 1)
    throw Error("standard output: expected one of --json -, --csv - and --jsonl");
  if (!options.json.empty() && options.json == options.csv)
    throw Error(fmt::format("{}: expected different files for --json and --csv", options.json));
  if (json || csv) options.tables = false;
  return run_benchmark(options, process_arguments());
}

}  // namespace spmmbench
