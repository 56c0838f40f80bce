#include <fmt/format.h>

#include <cstdio>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/calibrate.hpp"
#include "cli/commands.hpp"
#include "cli/lists.hpp"
#include "report/comparison.hpp"
#include "report/json.hpp"
#include "report/junit.hpp"

namespace spmmbench {
namespace {

struct Arguments {
  std::string base, fresh, calibration, json, junit, calibrate;
  double min_effect = 0;
  int repeat = 5;
  bool all = false;
  ComparisonOptions options;
};

std::vector<InputDocument> read_all(const std::string& list) {
  std::vector<InputDocument> documents;
  for (const std::string& path : split_list(list)) documents.push_back({path, read_document(path)});
  return documents;
}

void write_text(const std::string& path, const std::string& text) {
  if (path.empty()) return;
  std::ofstream file(path);
  file << text;
  file.close();
  if (!file) throw Error(fmt::format("{}: cannot be written", path));
}

ExitCode compare(Arguments in) {
  if (!in.calibrate.empty()) {
    if (!in.fresh.empty())
      throw Error("--calibrate: expected one result document, whose cases are measured again");
    return calibrate(in.base, in.repeat, in.options.force, in.calibrate);
  }
  if (in.fresh.empty()) throw Error("expected two result documents: BASE NEW");
  if (in.min_effect > 0) in.options.min_effect = in.min_effect;
  if (!in.calibration.empty()) in.options.calibration = Calibration::read(in.calibration);
  const Comparison comparison =
      compare_documents(read_all(in.base), read_all(in.fresh), in.options);
  write_text(in.json, dump_line(to_json(comparison)) + "\n");
  write_text(in.junit, format_junit(comparison));
  fmt::print("{}", format_comparison(comparison, in.all));
  return comparison.regression() ? ExitCode::regression : ExitCode::ok;
}

}  // namespace

void add_compare(CLI::App& app, ExitCode& exit_code) {
  auto in = std::make_shared<Arguments>();
  CLI::App* command = app.add_subcommand(
      "compare", "Is NEW slower or newly wrong? SAME, FASTER, SLOWER or UNCLEAR per case");
  command
      ->add_option("BASE", in->base,
                   "Result document, or several runs of the same build: A.json,B.json")
      ->required();
  command->add_option("NEW", in->fresh, "The same for the other build");
  command
      ->add_option(
          "--min-effect", in->min_effect,
          "Smallest change that counts, as a fraction; default: from --calibration, or 0.02")
      ->check(require_positive);
  command->add_option("--calibration", in->calibration, "What --calibrate wrote on this machine");
  command
      ->add_option("--alpha", in->options.alpha,
                   "Probability of any false SLOWER among all cases, and of any false FASTER")
      ->capture_default_str()
      ->check(require_positive);
  command->add_flag("--cold", in->options.cold, "Compare cold times instead of hot ones");
  command->add_flag("--force", in->options.force,
                    "Compare runs of different device, seed, protocol or precisions");
  command->add_flag("--all", in->all, "Show the cases that are SAME, too");
  command->add_option("--json", in->json, "Write every case with its p-values");
  command->add_option("--junit", in->junit, "Write JUnit XML: a failed test per regression");
  command->add_option("--calibrate", in->calibrate,
                      "Measure BASE's cases again and again, and write how far runs differ");
  command->add_option("--repeat", in->repeat, "Runs of every case for --calibrate, at least 3")
      ->capture_default_str();
  command->callback([in, &exit_code] { exit_code = compare(*in); });
}

}  // namespace spmmbench
