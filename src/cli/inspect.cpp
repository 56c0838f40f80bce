// inspect: structure of matrices, what each row ordering does to their windows, and the space of
// every format (Figures 13 and 14 of the RSH-SpMM paper as commands).

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <new>
#include <nlohmann/json.hpp>

#include "cli/commands.hpp"
#include "cli/inspection_bytes.hpp"
#include "cli/inspection_text.hpp"
#include "cli/lists.hpp"
#include "cli/structure.hpp"
#include "core/parse_number.hpp"
#include "core/steady_seconds.hpp"
#include "io/file.hpp"
#include "io/input.hpp"
#include "io/output.hpp"
#include "reorder/similarity.hpp"
#include "run/progress.hpp"
#include "select/features.hpp"
#include "select/row_overlap.hpp"
#include "spmmbench/registry.hpp"
#include "spmmbench/reordering.hpp"

namespace spmmbench {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kAlpha = 0.5;  // parameter of the adjacency cost; the default of the rsh ordering

struct InspectArguments {
  std::vector<std::string> paths;
  std::string reorder = "none", formats = "*", threshold, bin_type = "fp32";
  std::vector<std::int64_t> dims;
  LoadOptions load;
  bool json = false;
};

struct Threshold {
  int first = 0, last = -1;  // none when empty
};

// Its tiles and short rows are what a row order is judged by here.
const Format& rs_tile() { return Registry<Format>::instance().at("rs_tile"); }
constexpr const char* kShortRows = "tau_nnz";  // its option: the longest row left to CUDA cores

std::int64_t longest_short_row() {
  const std::vector<OptionSpec> options = rs_tile().options();
  const auto option = std::ranges::find(options, kShortRows, &OptionSpec::name);
  return std::get<IntegerRange>(option->allowed).most;
}

Threshold parse_threshold(const std::string& text) {
  if (text.empty()) return {};
  const std::size_t colon = text.find(':');
  const auto first = parse_number<int>(text.substr(0, colon));
  const auto last = colon == std::string::npos ? first : parse_number<int>(text.substr(colon + 1));
  if (!first || !last || *first < 0 || *last < *first)
    throw Error(fmt::format("--threshold {}: expected FROM:TO, such as 0:8", text));
  if (*last > longest_short_row())
    throw Error(fmt::format("--threshold {}: expected at most {}", text, longest_short_row()));
  return {*first, *last};
}

using Formats = std::vector<std::pair<const Format*, Options>>;

// The formats that a list of names, globs and specs selects, with their options.
Formats select_formats(const std::string& list) {
  Formats out;
  for (const std::string& item : split_list(list, "--formats")) {
    const Spec spec = Spec::parse(item);
    const std::size_t before = out.size();
    for (const Format* format : Registry<Format>::instance().sorted())
      if (glob_match(spec.name, format->name())) {
        check_options(*format, spec.options);
        out.emplace_back(format, spec.options);
      }
    if (out.size() == before) Registry<Format>::instance().at(spec.name);  // throws, naming all
  }
  return out;
}

Json stats_json(const FormatStats& stats, std::int64_t nnz) {
  // COO: 8 bytes of index per nonzero; values of 2 bytes in the 16-bit precisions. Of a matrix
  // without nonzeros it takes no byte, and ratios are null.
  const auto over_coo = [nnz](std::int64_t bytes, std::int64_t per_entry) -> Json {
    if (nnz == 0) return nullptr;
    return static_cast<double>(bytes) / static_cast<double>(per_entry * nnz);
  };
  Json out = {{"bytes_fp32", stats.bytes},
              {"index_bytes", stats.index_bytes},
              {"stored", stats.stored},
              {"tiles", stats.tiles},
              {"windows", stats.windows},
              {"fill", stats.fill},
              {"nnz_per_tile", stats.nnz_per_tile},
              {"nnz_per_window", stats.nnz_per_window},
              {"window_imbalance", stats.window_imbalance},
              {"index_over_coo", over_coo(stats.index_bytes, 8)},
              {"fp16_over_coo", over_coo(stats.index_bytes + 2 * stats.stored, 10)}};
  for (const auto& [key, value] : stats.extra) out[key] = value;
  return out;
}

Json threshold_json(const CsrMatrix& matrix, Threshold threshold) {
  Json out = Json::array();
  for (int tau = threshold.first; tau <= threshold.last; ++tau) {
    Options options;
    options.set(kShortRows, std::to_string(tau));
    const FormatStats stats = rs_tile().analyze(matrix, options);
    const double share = stats.extra.at("residual_nnz_share");
    const double residual_rows = stats.extra.at("residual_rows");
    // The share is this number over the nonzeros.
    const std::int64_t residual_nnz = std::llround(share * static_cast<double>(matrix.nnz()));
    out.push_back({{"tau_nnz", tau},
                   {"nnz_per_tile", stats.nnz_per_tile},
                   {"nnz_per_window", stats.nnz_per_window},
                   {"residual_nnz_share", share},
                   {"residual_nnz", residual_nnz},
                   {"residual_nnz_per_row",
                    residual_rows > 0 ? static_cast<double>(residual_nnz) / residual_rows : 0}});
  }
  return out;
}

Json structure_json(const CsrMatrix& matrix) {
  const Structure s = structure_of(matrix);
  return {{"row_length",
           {{"min", s.row_min},
            {"q1", s.row_q1},
            {"median", s.row_median},
            {"q3", s.row_q3},
            {"p99", s.row_p99},
            {"max", s.rows.longest},
            {"mean", s.rows.mean},
            {"cv", s.rows.variation}}},
          {"empty_rows", s.rows.empty},
          {"referenced_cols", s.referenced_cols},
          {"bandwidth", s.bandwidth},
          {"mean_distance", s.mean_distance},
          {"symmetric_pattern", s.symmetric_pattern}};
}

// What `auto` looks at, from samples; scripts/refit has them from rows of auto.
Json features_json(const CsrMatrix& matrix) {
  Json out = Json::object();
  MatrixFeatures features = features_of(matrix);
  features.row_overlap = row_overlap(matrix);
  for (const auto& [name, value] : named_features(features)) out[name] = value;
  return out;
}

// The status line of a terminal: which part of an input is at work. Each input has as many parts.
class Parts {
 public:
  Parts(std::size_t inputs, std::size_t of_input)
      : progress_(inputs * of_input, inputs * of_input, false), of_input_(of_input) {}
  void begin_input() { left_ = of_input_; }
  template <class Work>
  auto operator()(const std::string& what, const Work& work) {
    progress_.start(what);
    auto result = work();
    progress_.done();
    --left_;
    return result;
  }
  // Also of one that was not inspected to its end.
  void end_input() {
    progress_.drop(left_);
    progress_.clear();
  }

 private:
  Progress progress_;
  std::size_t of_input_, left_ = 0;
};

Json reordering_json(const NamedMatrix& input, const Spec& spec, const WeightedJaccard& jaccard,
                     const Formats& formats, Threshold threshold, Parts& parts) {
  const CsrMatrix& matrix = input.csr;
  const std::string name = spec.to_string(), where = fmt::format("{} {}", input.name, name);
  const double start = steady_seconds();
  const Permutation order = parts(where, [&] {
    return Registry<Reordering>::instance().at(spec.name).compute(matrix, spec.options);
  });
  const double ms = (steady_seconds() - start) * 1e3;
  const CsrMatrix permuted = permute_rows(matrix, order);
  Json row = {{"name", name},
              {"reorder_ms", ms},
              {"adjacent_cost", mean_adjacent_cost(matrix, jaccard, order)},
              {"rs_tile", stats_json(rs_tile().analyze(permuted, {}), matrix.nnz())},
              {"formats", Json::object()}};
  for (const auto& [format, options] : formats) {
    const std::string title = Spec{format->name(), options}.to_string();
    row["formats"][title] =
        parts(fmt::format("{} {}", where, title), [&, format = format, &options = options] {
          return stats_json(format->analyze(permuted, options), matrix.nnz());
        });
  }
  if (threshold.last >= threshold.first) row["threshold"] = threshold_json(permuted, threshold);
  return row;
}

Json inspect_matrix(const NamedMatrix& input, const std::vector<Spec>& reorderings,
                    const Formats& formats, Threshold threshold, Parts& parts) {
  const CsrMatrix& matrix = input.csr;
  const Json structure =
      parts(fmt::format("{} structure", input.name), [&] { return structure_json(matrix); });
  Json out = {
      {"name", input.name},          {"source", input.source}, {"sha256", input.sha256},
      {"rows", matrix.rows},         {"cols", matrix.cols},    {"nnz", matrix.nnz()},
      {"pattern", input.pattern},    {"structure", structure}, {"features", features_json(matrix)},
      {"reorderings", Json::array()}};
  const WeightedJaccard jaccard(matrix, kAlpha);
  for (const Spec& spec : reorderings)
    out["reorderings"].push_back(reordering_json(input, spec, jaccard, formats, threshold, parts));
  return out;
}

void require_memory(const CsrMatrix& matrix, const std::string& path) {
  const double needed = inspection_bytes(matrix);
  const auto available = static_cast<double>(available_memory_bytes());
  if (needed > available)
    throw Error(fmt::format("{}: {} x {} with {} nonzeros needs about {} to inspect, {} available",
                            path, matrix.rows, matrix.cols, matrix.nnz(), format_bytes(needed),
                            format_bytes(available)));
}

// What is inspected of every input.
struct Asked {
  LoadOptions load;
  std::vector<Spec> reorderings;
  Formats formats;
  Threshold threshold;
};

// Null if the input cannot be read or memory does not suffice, of which a line tells.
Json inspect_input(const std::string& path, const Asked& asked, Parts& parts) {
  Json matrix;
  std::string refusal;
  parts.begin_input();
  try {
    const NamedMatrix loaded =
        parts("loading " + to_printable(path), [&] { return load_input(path, asked.load).a; });
    require_memory(loaded.csr, path);
    matrix = inspect_matrix(loaded, asked.reorderings, asked.formats, asked.threshold, parts);
  } catch (const Error& error) {
    refusal = error.what();
  } catch (const std::bad_alloc&) {
    refusal = path + ": out of host memory";
  }
  parts.end_input();
  if (!refusal.empty()) say("spmmbench: {}\n", refusal);
  return matrix;
}

ExitCode inspect(InspectArguments& arguments) {
  arguments.load.bin_type = parse_element_type(arguments.bin_type);
  if (!arguments.dims.empty()) arguments.load.dims = {arguments.dims[0], arguments.dims[1]};
  const Asked asked = {arguments.load, parse_reorderings(arguments.reorder),
                       select_formats(arguments.formats), parse_threshold(arguments.threshold)};
  const std::vector<std::string> inputs = expand_inputs(arguments.paths);
  const bool headerless = std::ranges::any_of(inputs, is_headerless);
  if (arguments.load.dims && !headerless)
    throw Error("--dims: expected a headerless .bin among the inputs");
  if (arguments.load.bin_type != ElementType::f32 && !headerless)
    throw Error("--bin-type: expected a headerless .bin among the inputs");
  Json document = Json::array();
  MeanInspection mean;
  ExitCode code = ExitCode::ok;
  // Loading and the structure, and of each reordering its computation and the formats.
  Parts parts(inputs.size(), 2 + asked.reorderings.size() * (1 + asked.formats.size()));
  for (const std::string& path : inputs) {
    Json matrix = inspect_input(path, asked, parts);
    if (matrix.is_null()) {
      code = ExitCode::usage;
    } else if (arguments.json) {
      document.push_back(std::move(matrix));
    } else {
      print_inspection(matrix);
      mean.count(matrix);
    }
  }
  if (arguments.json) print("{}\n", document.dump(2));
  else mean.print();
  return code;
}

}  // namespace

void add_inspect(CLI::App& app, ExitCode& exit_code) {
  auto arguments = std::make_shared<InspectArguments>();
  CLI::App* command = app.add_subcommand(
      "inspect",
      "Structure of matrices, what row orderings do to them, and the bytes of every format");
  command->add_option("PATH", arguments->paths, "Matrix files, folders, @lists or gen:SPEC")
      ->required();
  command
      ->add_option(
          "--reorder", arguments->reorder,
          "Orderings to compare, as NAME?key=value: none,degree,rcm,rabbit,tca,rsh,match,pack")
      ->type_name(kListType)
      ->capture_default_str();
  command
      ->add_option("--formats", arguments->formats,
                   "Formats whose bytes are counted, by name, glob or NAME?key=value")
      ->type_name(kListType)
      ->capture_default_str();
  command
      ->add_option("--threshold", arguments->threshold,
                   "Try these lengths up to which RS-Tile leaves a row to CUDA cores: 0:8, or 4")
      ->type_name("FROM:TO");
  command->add_option("--dims", arguments->dims, "Rows and columns of a headerless .bin")
      ->expected(2)
      ->type_name("ROWS COLS");
  command
      ->add_option("--bin-type", arguments->bin_type,
                   "What a headerless .bin holds: " + names_of(kElementTypes))
      ->capture_default_str();
  add_seed_option(*command, arguments->load.seed, "Draws the values of patterns");
  command->add_flag("--json", arguments->json, "As JSON");
  command->callback([arguments, &exit_code] { exit_code = inspect(*arguments); });
}

}  // namespace spmmbench
