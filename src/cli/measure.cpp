#include "cli/measure.hpp"

#include <cstdio>
#include <fstream>
#include <iostream>

#include "cli/case_options.hpp"
#include "process/temporary_folder.hpp"
#include "run/runner.hpp"

namespace spmmbench {

ExitCode measure(RunOptions options) {
  constexpr std::string_view kStandardOutput = "-";
  const bool json = options.json == kStandardOutput, csv = options.csv == kStandardOutput;
  if (!json && !csv) return run_benchmark(options, process_arguments());
  if (json == csv || options.jsonl)
    throw Error("standard output: expected one of --json -, --csv - and --jsonl");
  if (options.resume != Resume::none)
    throw Error("--resume and --retry-failed: expected a file to go on with, not -");
  const TemporaryFolder folder;
  const std::string path = folder.file("out");
  (json ? options.json : options.csv) = path;
  options.tables = false;
  const ExitCode code = run_benchmark(options, process_arguments());
  std::ifstream written(path);
  if (!(std::cout << written.rdbuf()).flush()) throw Error("standard output: write failed");
  return code;
}

}  // namespace spmmbench
