#include <fmt/format.h>

#include <memory>

#include "cli/commands.hpp"
#include "cli/lists.hpp"
#include "core/greatest_magnitude.hpp"
#include "core/numbered.hpp"
#include "io/file.hpp"
#include "io/input.hpp"
#include "io/matrix_output.hpp"
#include "io/output.hpp"
#include "io/prune.hpp"
#include "io/sha256.hpp"
#include "io/tensor_path.hpp"
#include "spmmbench/error.hpp"

namespace spmmbench {
namespace {

struct ConvertArguments {
  std::string in, out, bin_type = "fp32", precision = "fp32";
  std::vector<std::int64_t> dims;
  LoadOptions load;
};

// The values as they are written.
void round_values(NamedMatrix& matrix, Precision precision) {
  CsrMatrix& csr = matrix.csr;
  if (precision == Precision::fp32) return;
  if (precision == Precision::fp64) {
    if (csr.values64.empty()) csr.values64.assign(csr.values.begin(), csr.values.end());
    return;
  }
  const float scale = scale_of(precision, greatest_magnitude(csr.values));
  for (float& value : csr.values) value = scale * round_to(precision, value / scale);
  matrix.sha256 = matrix_sha256(csr, matrix.pattern);
}

void convert(ConvertArguments& arguments) {
  require_not_an_input(arguments.out, {file_of(arguments.in)});
  if (!arguments.load.prune.empty()) check_prune(arguments.load.prune);
  require_output(arguments.out);
  remove_parts_at_signals();
  arguments.load.bin_type = parse_element_type(arguments.bin_type);
  const Precision precision = parse_precision(arguments.precision);
  if (has_block_scales(precision))
    throw Error("values are written without scales of blocks: expected another precision");
  arguments.load.fp64 = precision == Precision::fp64;
  if (arguments.load.fp64 && arguments.out.ends_with(".csr"))
    throw Error("--precision fp64: expected .mtx, .mtx.gz, .npy or .bin: a .csr holds fp32");
  const bool headerless = is_headerless(arguments.in);
  if (!arguments.dims.empty() && !headerless)
    throw Error(fmt::format("--dims: expected a headerless .bin, got {}", arguments.in));
  if (arguments.load.bin_type != ElementType::f32 && !headerless)
    throw Error(fmt::format("--bin-type: expected a headerless .bin, got {}", arguments.in));
  if (!arguments.dims.empty()) arguments.load.dims = {arguments.dims[0], arguments.dims[1]};
  NamedMatrix matrix = load_alone(arguments.in, arguments.load).a;
  round_values(matrix, precision);
  write_matrix(arguments.out, matrix.csr, matrix.pattern);
  say("{}: {} x {}, {}{}, sha256 {}\n", arguments.out, matrix.csr.rows, matrix.csr.cols,
      numbered(matrix.csr.nnz(), "entry", "entries"), matrix.pattern ? " (pattern)" : "",
      matrix.sha256.substr(0, 16));
}

}  // namespace

void add_convert(CLI::App& app, ExitCode&) {
  auto arguments = std::make_shared<ConvertArguments>();
  CLI::App* command = app.add_subcommand(
      "convert", "Convert a matrix to .mtx, .mtx.gz, .csr (cache), .npy or .bin");
  command
      ->add_option("IN", arguments->in,
                   ".mtx, .mtx.gz, SuiteSparse .tar.gz, .csr, .smtx, .npz, .npy, .bin, "
                   ".safetensors:NAME or gen:SPEC")
      ->required();
  command
      ->add_option("OUT", arguments->out,
                   fmt::format(".mtx, .mtx.gz, .csr, .npy or .bin; dense at most {}. A pattern's "
                               "values are drawn by the seed for dense output, and left out else",
                               format_bytes(kLargestDenseBytes)))
      ->required();
  command->add_option("--dims", arguments->dims, "Rows and columns of a headerless .bin")
      ->expected(2)
      ->type_name("ROWS COLS");
  command
      ->add_option("--bin-type", arguments->bin_type,
                   "What a headerless .bin IN holds: " + names_of(kElementTypes))
      ->capture_default_str();
  command
      ->add_option("--precision", arguments->precision,
                   "What values are rounded to; fp64 is written as such, all others as fp32: " +
                       names_of(kPrecisions))
      ->capture_default_str();
  command
      ->add_option("--prune", arguments->load.prune,
                   fmt::format("Prune a dense input: {}", kPruneForms))
      ->type_name("SPEC");
  add_seed_option(*command, arguments->load.seed, "Draws what is pruned at random, and values");
  command->callback([arguments] { convert(*arguments); });
}

}  // namespace spmmbench
