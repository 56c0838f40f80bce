#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/calibrate.hpp"
#include "cli/commands.hpp"
#include "cli/lists.hpp"
#include "core/parse_number.hpp"
#include "io/output.hpp"
#include "report/comparison.hpp"
#include "report/consistency.hpp"
#include "report/json.hpp"
#include "report/junit.hpp"

namespace spmmbench {
namespace {

namespace fs = std::filesystem;

struct CompareArguments {
  std::string base, fresh, calibration, json, junit, calibrate;
  double resolve_case = 0;
  int repeat = 10;
  bool all = false;
  ComparisonOptions options;
};

// A list at commas. A name that holds commas itself is taken whole where there is such a file.
std::vector<std::string> split_paths(const std::string& list) {
  if (list.find(',') == std::string::npos || fs::exists(list)) return {list};
  std::vector<std::string> paths;
  for (std::size_t begin = 0; begin <= list.size();) {
    std::size_t end = list.size();
    while (end != std::string::npos && !fs::exists(list.substr(begin, end - begin)))
      end = end > begin ? list.rfind(',', end - 1) : std::string::npos;
    if (end == std::string::npos || end <= begin)
      end = std::min(list.find(',', begin), list.size());
    paths.push_back(list.substr(begin, end - begin));
    if (paths.back().empty())
      throw Error(fmt::format("{}: expected a comma-separated list without empty items", list));
    begin = end + 1;
  }
  return paths;
}

bool same_bytes(const std::string& a, const std::string& b) {
  if (fs::file_size(a) != fs::file_size(b)) return false;
  std::ifstream one(a, std::ios::binary), other(b, std::ios::binary);
  return std::equal(std::istreambuf_iterator<char>(one), std::istreambuf_iterator<char>(),
                    std::istreambuf_iterator<char>(other), std::istreambuf_iterator<char>());
}

bool same_file(const std::string& a, const std::string& b) {
  return fs::is_regular_file(a) && fs::is_regular_file(b) &&
         (fs::equivalent(a, b) || same_bytes(a, b));
}

// A run that counts twice on a side would show less spread than there is, and one that is on both
// sides no change.
Comparison compare_files(const std::vector<std::string>& base,
                         const std::vector<std::string>& fresh, const ComparisonOptions& options) {
  std::vector<std::string> paths = base;
  paths.insert(paths.end(), fresh.begin(), fresh.end());
  const auto require_distinct = [&](const auto& same) {
    for (std::size_t i = 0; i < paths.size(); ++i)
      for (std::size_t j = i + 1; j < paths.size(); ++j)
        if (same(i, j))
          throw Error(fmt::format(
              "{} and {}: expected different runs {}, got the same twice", paths[i], paths[j],
              i < base.size() && j >= base.size() ? "as BASE and NEW" : "of a side"));
  };
  require_distinct([&](std::size_t i, std::size_t j) { return same_file(paths[i], paths[j]); });
  std::vector<InputDocument> documents;
  documents.reserve(paths.size());
  for (const std::string& path : paths) {
    documents.push_back({path, read_document(path)});
    require_consistent(path, documents.back().document.rows);
  }
  require_distinct([&](std::size_t i, std::size_t j) {
    return share_a_measurement(documents[i].document, documents[j].document);
  });
  const auto middle = documents.begin() + static_cast<std::ptrdiff_t>(base.size());
  return compare_documents({std::move_iterator(documents.begin()), std::move_iterator(middle)},
                           {std::move_iterator(middle), std::move_iterator(documents.end())},
                           options);
}

// The names of what the program's standard output is, one of which is usual in scripts.
void rename_standard_output(std::string& path) {
  if (path == "/dev/stdout" || path == "/dev/fd/1" || path == "/proc/self/fd/1")
    path = kStandardOutput;
}

std::string require_alpha(const std::string& text) {
  const auto value = parse_number<double>(text);
  return value && *value >= 1e-6 && *value <= 0.5
             ? ""
             : fmt::format("expected a number from 0.000001 to 0.5, got '{}'", text);
}

ExitCode compare(CompareArguments in) {
  for (std::string* output : {&in.json, &in.junit, &in.calibrate}) rename_standard_output(*output);
  if (!in.calibrate.empty()) {
    if (!in.fresh.empty())
      throw Error("--calibrate: expected one result document, whose cases are measured again");
    return calibrate(in.base, in.repeat, in.options.force, in.calibrate);
  }
  if (in.fresh.empty()) throw Error("expected two result documents: BASE NEW");
  if (in.resolve_case > 0) in.options.resolve_case = in.resolve_case;
  if (!in.calibration.empty()) {
    in.options.calibration = Calibration::read(in.calibration);
    in.options.calibration->require_usable(in.calibration);
    in.options.calibration_path = in.calibration;
  }
  std::vector<std::string> inputs = {in.calibration};
  for (const std::string* side : {&in.base, &in.fresh})
    for (std::string& path : split_paths(*side)) inputs.push_back(std::move(path));
  for (const std::string* output : {&in.json, &in.junit}) require_not_an_input(*output, inputs);
  if (in.json == kStandardOutput && in.junit == kStandardOutput)
    throw Error("standard output: expected one of --json - and --junit -");
  require_two_files(in.json, in.junit);
  std::optional<OutputFile> json, junit;
  if (!in.json.empty()) json.emplace(in.json);
  if (!in.junit.empty()) junit.emplace(in.junit);
  const Comparison comparison =
      compare_files(split_paths(in.base), split_paths(in.fresh), in.options);
  if (json) {
    json->write(dump_line(to_json(comparison)) + "\n");
    json->commit();
  }
  if (junit) {
    junit->write(format_junit(comparison));
    junit->commit();
  }
  if (in.json != kStandardOutput && in.junit != kStandardOutput)
    write_output(format_comparison(comparison, in.all));
  return comparison.exit_code();
}

}  // namespace

void add_compare(CLI::App& app, ExitCode& exit_code) {
  auto in = std::make_shared<CompareArguments>();
  CLI::App* command = app.add_subcommand(
      "compare",
      "Say whether NEW is slower, newly wrong or incomplete: for each case, each kernel and all");
  command
      ->add_option("BASE", in->base,
                   "Result document, or several runs of the same build: A.json,B.json")
      ->required();
  command->add_option("NEW", in->fresh, "The same for the other build");
  command
      ->add_option("--min-effect", in->options.min_effect,
                   "Smallest change that counts, as a fraction")
      ->capture_default_str()
      ->check(require_positive);
  command
      ->add_option("--resolve", in->options.resolve,
                   "If a slowdown of this fraction could go unseen, of a geometric mean or of a "
                   "case, say NOT ABLE TO TELL")
      ->capture_default_str()
      ->check(require_positive);
  command
      ->add_option("--resolve-case", in->resolve_case,
                   "The same for single cases only; default: as --resolve")
      ->check(require_positive);
  CLI::Option* calibration = command->add_option("--calibration", in->calibration,
                                                 "File that --calibrate wrote on this machine");
  command
      ->add_option("--alpha", in->options.alpha,
                   "Probability of a false SLOWER, or FASTER, when nothing changed")
      ->capture_default_str()
      ->check(require_alpha);
  command->add_flag("--cold", in->options.cold, "Compare cold times instead of hot ones")
      ->excludes(calibration);  // a calibration has hot times only
  command->add_flag("--allow-missing", in->options.allow_missing,
                    "Cases that NEW lost (no row, newly skipped) or that fail on both sides are no "
                    "regression");
  command->add_flag("--force", in->options.force,
                    "Compare runs of different device, seed, protocol or precisions");
  command->add_flag("--all", in->all, "Show every case");
  add_output_option(*command, "--json", in->json,
                    "Write every case and geometric mean with its p-values; -: on standard output");
  add_output_option(*command, "--junit", in->junit,
                    "Write JUnit XML: a failed test per regression; -: on standard output");
  CLI::Option* calibrate =
      add_output_option(*command, "--calibrate", in->calibrate,
                        "Measure BASE's cases again and again, and write how far runs differ");
  command->add_option("--repeat", in->repeat, "Runs of every case for --calibrate, at least 3")
      ->capture_default_str()
      ->needs(calibrate);
  for (const char* of_two_sides :
       {"--min-effect", "--resolve", "--resolve-case", "--calibration", "--alpha", "--cold",
        "--allow-missing", "--all", "--json", "--junit"})
    calibrate->excludes(of_two_sides);
  command->callback([in, &exit_code] { exit_code = compare(*in); });
}

}  // namespace spmmbench
