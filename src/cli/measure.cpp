#include "cli/measure.hpp"

#include "cli/case_options.hpp"
#include "io/output.hpp"
#include "io/tensor_path.hpp"
#include "plugin/plugin.hpp"
#include "report/journal.hpp"
#include "run/runner.hpp"

namespace spmmbench {

std::vector<std::string> files_read(const Cases& cases, const std::string& config) {
  std::vector<std::string> files = {config, file_of(cases.b_file)};
  for (const std::string& pattern : cases.kernels)
    if (const Spec spec = Spec::parse(pattern); names_plugin(spec.name))
      files.push_back(parse_plugin_pattern(spec.name).path);
  return files;
}

ExitCode measure(RunOptions options, const std::string& config) {
  const std::vector<std::string> files = files_read(options.cases, config);
  for (std::string* output : {&options.outputs.json, &options.outputs.csv}) {
    if (is_standard_output(*output)) *output = kStandardOutput;
    if (options.cases.resume != Resume::none && !output->empty() && is_stream(*output))
      throw Error(fmt::format("--resume and --retry-failed: expected a file to go on with, not {}",
                              *output));
  }
  require_own_files({options.outputs.json, options.outputs.csv}, files);
  const bool json = options.outputs.json == kStandardOutput,
             csv = options.outputs.csv == kStandardOutput;
  if (json + csv + options.outputs.jsonl > 1)
    throw Error("standard output: expected one of --json -, --csv - and --jsonl");
  if (json || csv) options.outputs.tables = false;
  return run_benchmark(options, process_arguments());
}

}  // namespace spmmbench
