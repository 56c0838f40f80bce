#include "cli/case_options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>

#include "cli/lists.hpp"
#include "core/drop_repeats.hpp"
#include "core/limits.hpp"
#include "core/parse_number.hpp"
#include "io/output.hpp"
#include "io/prune.hpp"
#include "io/tensor_path.hpp"
#include "measure/batch.hpp"
#include "report/journal.hpp"
#include "spmmbench/error.hpp"

namespace spmmbench {
namespace {

bool is_number(const std::string& text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
}

constexpr const char* kDimsExpected = "--dims: expected ROWS COLS, or M K N together with --b";

// `--dims 3 5 PATH` receives PATH too. It is no size, so it is moved to the inputs.
void give_back_paths(CaseOptions& in) {
  const auto first_path = std::find_if_not(in.dims.begin(), in.dims.end(), is_number);
  in.paths.insert(in.paths.end(), first_path, in.dims.end());
  in.dims.erase(first_path, in.dims.end());
  if (in.dims.empty()) throw Error(kDimsExpected);
}

void set_dims(const CaseOptions& in, RunOptions& out) {
  if (in.dims.empty()) return;
  if (in.dims.size() == 1 || in.dims.size() > 3) throw Error(kDimsExpected);
  std::vector<std::int64_t> sizes;
  for (const std::string& text : in.dims) {
    sizes.push_back(parse_number<std::int64_t>(text).value_or(0));
    if (sizes.back() < 1) throw Error("--dims: expected positive sizes");
  }
  out.cases.load.dims = {sizes[0], sizes[1]};
  if (sizes.size() == 3 && in.b_file.empty())
    throw Error("--dims: expected ROWS COLS without --b, got a third size");
  if (sizes.size() == 3) out.cases.b_dims = {sizes[1], sizes[2]};
}

// The inputs that `paths` name, of all shards. No output may be one of them, nor a list.
std::vector<std::string> expand_apart_from_outputs(const std::vector<std::string>& paths,
                                                   const RunOutputs& outputs) {
  std::vector<std::string> files;
  for (const std::string& path : paths)
    if (path.starts_with('@')) files.push_back(path.substr(1));
  require_own_files(outputs, files);  // an output may not even be a list that cannot be read
  std::vector<std::string> inputs = expand_inputs(paths, &files);
  for (const std::string& input : inputs)
    if (!input.starts_with(kGeneratorPrefix)) files.push_back(file_of(input));
  require_own_files(outputs, files);
  return inputs;
}

// B decides N, and -n may only say the same.
void require_columns_of_b(const CaseOptions& in, const RunOptions& out) {
  LoadOptions options = out.cases.load;
  options.dims = out.cases.b_dims;
  options.prune.clear();
  const std::int64_t columns = dense_columns(in.b_file, options);
  if (out.cases.ns != std::vector{columns})
    throw Error(fmt::format("-n {}: expected {}, the columns of {}", in.ns, columns, in.b_file));
}

// So does the B of a generator, and -n is of use only where another input takes it.
void require_use_of_n(const CaseOptions& in, const RunOptions& out) {
  for (const std::string& input : out.cases.inputs) {
    const std::optional<std::int64_t> own = columns_of_own_b(input);
    if (!own || out.cases.ns == std::vector{*own}) return;
  }
  const std::string& first = out.cases.inputs.front();
  throw Error(fmt::format("-n {}: expected {}, the columns of B that {} makes", in.ns,
                          *columns_of_own_b(first), first));
}

void check_scalars(const Cases& cases) {
  for (const auto& [name, member] :
       {std::pair{"--alpha", &Scalars::alpha}, std::pair{"--beta", &Scalars::beta}}) {
    const double given = cases.scalars.*member;
    const bool needed = member == &Scalars::alpha;  // else no product is left
    if (!std::isfinite(given) || (needed && given == 0))
      throw Error(fmt::format("{} {}: expected a finite number{}", name, given,
                              needed ? " other than 0" : ""));
    for (const Precision precision : cases.precisions) {
      const double used = rounded(cases.scalars, precision).*member;
      if (!std::isfinite(used) || (used == 0) != (given == 0))
        throw Error(fmt::format("{} {}: expected a number of fp32, in which {} is scaled", name,
                                given, to_string(precision)));
    }
  }
}

// Each member has random numbers of its own.
void check_batch(const Cases& cases) {
  if (cases.batch < 1 || cases.batch > kLargestBatch)
    throw Error(fmt::format("--batch {}: expected 1 to {}", cases.batch, kLargestBatch));
  if (cases.batch == 1) return;
  if (!cases.b_file.empty()) throw Error("--batch: not with --b, which gives one B");
  for (const std::string& input : cases.inputs)
    if (columns_of_own_b(input))
      throw Error(fmt::format("--batch: not with {}, which makes a B of its own", input));
  for (const std::int64_t n : cases.ns)
    if (n > kLargestN / cases.batch)
      throw Error(
          fmt::format("--batch {}: expected at most {} columns in all", cases.batch, kLargestN));
}

bool is_given(const CLI::Option* option) { return option != nullptr && option->count() > 0; }

// Where only one of the two limits is given, it moves the default of the other.
void check_samples(const CaseOptions& in, SampleLimits& limits) {
  if (limits.min_samples <= limits.max_samples) return;
  if (!is_given(in.min_samples)) limits.min_samples = limits.max_samples;
  else if (!is_given(in.max_samples)) limits.max_samples = limits.min_samples;
  else
    throw Error(fmt::format("--min-samples {}: expected at most --max-samples, which is {}",
                            limits.min_samples, limits.max_samples));
}

constexpr const char* kCTypes = "fp32, fp16, bf16, or fp64 with --precision fp64";

ElementType parse_c_type(const std::string& text) {
  for (const ElementType type : kElementTypes)
    if (to_string(type) == text && bytes_of(type) > 1) return type;
  throw Error(fmt::format("--c-type {}: expected {}", text, kCTypes));
}

// C of fp64 is fp64, and no other precision writes it.
void check_c_type(const Cases& cases) {
  const auto is_fp64 = [](Precision precision) { return precision == Precision::fp64; };
  const auto& precisions = cases.precisions;
  if (cases.c_type == ElementType::f64 &&
      std::none_of(precisions.begin(), precisions.end(), is_fp64))
    throw Error("--c-type fp64: expected --precision fp64");
  if (bytes_of(cases.c_type) == 2 && std::all_of(precisions.begin(), precisions.end(), is_fp64))
    throw Error(fmt::format("--c-type {}: expected a --precision other than fp64",
                            to_string(cases.c_type)));
}

}  // namespace

RunOptions resolve(CaseOptions in) {
  if (!in.dims.empty()) give_back_paths(in);
  RunOptions out = in.options;
  set_dims(in, out);
  check_samples(in, out.protocol.limits);
  if (!out.cases.load.prune.empty()) check_prune(out.cases.load.prune);
  out.cases.load.bin_type = parse_element_type(in.bin_type);
  std::vector<std::string> paths = in.paths;
  if (!in.a_file.empty()) paths.push_back(in.a_file);
  out.cases.b_file = in.b_file;
  const bool random_a = paths.empty() && !in.b_file.empty();
  if (random_a) {
    if (!out.cases.load.dims) throw Error("--b alone: expected --dims M K N for a random dense A");
    paths.push_back(fmt::format("gen:uniform?rows={}&cols={}&density=1", out.cases.load.dims->first,
                                out.cases.load.dims->second));
  }
  if (paths.empty()) throw Error("nothing to run: expected a PATH, a gen:SPEC, or --a / --b");
  out.cases.inputs = expand_apart_from_outputs(paths, {out.outputs.json, out.outputs.csv});
  const bool headerless =
      is_headerless(in.b_file) ||
      std::any_of(out.cases.inputs.begin(), out.cases.inputs.end(), is_headerless);
  if (out.cases.load.transpose && out.cases.b_dims)
    throw Error("--transpose: expected --dims of A alone");
  if (out.cases.load.dims && !random_a && !headerless)
    throw Error("--dims: expected a headerless .bin among the inputs");
  if (out.cases.load.bin_type != ElementType::f32 && !headerless)
    throw Error("--bin-type: expected a headerless .bin among the inputs");
  if (out.protocol.device < -1)
    throw Error(fmt::format("--device {}: expected a CUDA device, or -1", out.protocol.device));
  out.cases.ns = parse_range_list(in.ns, "-n");
  drop_repeats(out.cases.ns);
  if (is_given(in.n_option) && !out.cases.inputs.empty())
    in.b_file.empty() ? require_use_of_n(in, out) : require_columns_of_b(in, out);
  if (!in.shard.empty()) {
    const Shard shard = parse_shard(in.shard);
    out.cases.inputs = shard_of(out.cases.inputs, shard);
    out.outputs.shard = fmt::format("{}/{}", shard.index, shard.count);
  }
  out.cases.kernels = in.kernels;
  out.cases.exclude = in.exclude;
  out.cases.precisions.clear();
  for (const std::string& text : split_list(in.precisions, "--precision"))
    out.cases.precisions.push_back(parse_precision(text));
  drop_repeats(out.cases.precisions);
  check_scalars(out.cases);
  check_batch(out.cases);
  out.cases.c_type = parse_c_type(in.c_type);
  check_c_type(out.cases);
  if (in.layout != "row" && in.layout != "col")
    throw Error(fmt::format("--b-layout {}: expected row or col", in.layout));
  out.cases.layout = in.layout == "col" ? Layout::col_major : Layout::row_major;
  out.cases.reorderings = parse_reorderings(in.reorder);
  drop_repeats(out.cases.reorderings, [](const Spec& spec) { return spec.to_string(); });
  return out;
}

void add_case_options(CLI::App& command, CaseOptions& in) {
  command.add_option("PATH", in.paths, "Matrix file, directory, @list or gen:SPEC");
  in.n_option =
      command.add_option("-n,--n", in.ns, "Columns of B: 128 | 32,64 | 32:512:x2 | 32:128:32")
          ->type_name(kListType)
          ->capture_default_str();
  add_list_option(command, "-k,--kernel", in.kernels,
                  "Kernels by NAME or glob, with options as NAME?key=value&key=value; default: all "
                  "except those that `list` marks with a purpose of their own; '*': all");
  add_list_option(command, "-x,--exclude", in.exclude, "Leave out kernels by glob");
  command
      .add_option("--precision", in.precisions, names_of(kPrecisions) + " or several: fp16,tf32")
      ->type_name(kListType)
      ->capture_default_str();
  command.add_option("--c-type", in.c_type, fmt::format("What C is stored as: {}", kCTypes))
      ->capture_default_str();
  command
      .add_option(
          "--alpha", in.options.cases.scalars.alpha,
          "alpha of C = alpha A B + beta C; where a kernel cannot scale, a second launch does")
      ->capture_default_str();
  command.add_option("--beta", in.options.cases.scalars.beta, "beta of the same; 0: C is not read")
      ->capture_default_str();
  command
      .add_option(
          "--batch", in.options.cases.batch,
          "Number of products C_i = A B_i; the B_i, and the C_i, follow one another in memory")
      ->capture_default_str();
  command
      .add_option("--b-layout", in.layout,
                  "Layout of B and C: row, or col where the values of a column are contiguous")
      ->capture_default_str();
  command
      .add_option("--reorder", in.reorder,
                  "Row orderings by NAME or glob, each NAME?key=value: none,rsh,rcm")
      ->type_name(kListType)
      ->capture_default_str();
  add_seed_option(command, in.options.cases.load.seed,
                  "Seed of the random numbers in B, and in A if its file has no values");
  command.add_option("--prune", in.options.cases.load.prune,
                     fmt::format("Prune a dense input: {}", kPruneForms));
  command.add_flag(
      "--transpose", in.options.cases.load.transpose,
      "Multiply by A^T; the stage \"transpose\" of every row is the time of making it");
  command.add_option("--a", in.a_file, "Matrix A, as a PATH (with --b)");
  command.add_option("--b", in.b_file,
                     "Dense B from .npy, .bin or .safetensors:NAME instead of random numbers");
  command.add_option("--dims", in.dims,
                     "Sizes of headerless .bin: ROWS COLS of A, or M K N with --b");
  command
      .add_option("--bin-type", in.bin_type,
                  "What a headerless .bin holds: " + names_of(kElementTypes))
      ->capture_default_str();
  command.add_option("--device", in.options.protocol.device, "CUDA device; -1: CPU kernels only")
      ->capture_default_str();
}

void add_sampling_options(CLI::App& command, CaseOptions& in) {
  SampleLimits& limits = in.options.protocol.limits;
  command
      .add_option("--noise", limits.noise,
                  "Stop sampling once the noise of the median is at most this share of it")
      ->capture_default_str()
      ->check(require_not_negative);
  in.min_samples =
      command.add_option("--min-samples", limits.min_samples, "Least number of samples")
          ->capture_default_str()
          ->check(require_positive);
  in.max_samples =
      command.add_option("--max-samples", limits.max_samples, "Largest number of samples")
          ->capture_default_str()
          ->check(require_positive);
  command
      .add_option("--max-seconds", limits.max_seconds,
                  "Most seconds of sampling, for hot and for cold times each")
      ->capture_default_str()
      ->check(require_positive);
}

std::string config_file(const CLI::App& command) {
  const CLI::Option* config = command.get_parent()->get_config_ptr();
  return config->count() == 0 ? std::string() : config->as<std::string>();
}

std::vector<std::string> process_arguments() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::vector<std::string> arguments;
  for (std::string argument; std::getline(file, argument, '\0');) arguments.push_back(argument);
  return arguments;
}

}  // namespace spmmbench
