#include <fmt/format.h>

#include <memory>

#include "cli/commands.hpp"
#include "io/file.hpp"
#include "io/input.hpp"
#include "io/output.hpp"

namespace spmmbench {
namespace {

struct ConvertArguments {
  std::string in, out;
  std::vector<std::int64_t> dims;
  LoadOptions load;
};

void convert(ConvertArguments& arguments) {
  require_output(arguments.out);
  if (!arguments.dims.empty()) arguments.load.dims = {arguments.dims[0], arguments.dims[1]};
  const NamedMatrix matrix = load_input(arguments.in, arguments.load).a;
  write_matrix(arguments.out, matrix.csr, matrix.pattern);
  fmt::print(stderr, "{}: {} x {}, {} entries{}, sha256 {}\n", arguments.out, matrix.csr.rows,
             matrix.csr.cols, matrix.csr.nnz(), matrix.pattern ? " (pattern)" : "",
             matrix.sha256.substr(0, 16));
}

}  // namespace

void add_convert(CLI::App& app, ExitCode&) {
  auto arguments = std::make_shared<ConvertArguments>();
  CLI::App* command = app.add_subcommand(
      "convert", "Convert a matrix between .mtx, .mtx.gz, .csr (cache), .npy and .bin");
  command
      ->add_option("IN", arguments->in,
                   ".mtx, .mtx.gz, SuiteSparse .tar.gz, .csr, .npy, .bin or gen:SPEC")
      ->required();
  command
      ->add_option("OUT", arguments->out,
                   fmt::format(".mtx, .mtx.gz, .csr, .npy or .bin; dense at most {}. A pattern's "
                               "values are drawn by the seed for dense output, and left out else",
                               format_bytes(kLargestDenseBytes)))
      ->required();
  command->add_option("--dims", arguments->dims, "Rows and columns of a headerless fp32 .bin")
      ->expected(2)
      ->type_name("ROWS COLS");
  command
      ->add_option("--prune", arguments->load.prune,
                   "Zero blocks of a dense input: block:64x64:0.9 (smallest norms) or "
                   "random-block:64x64:0.9")
      ->type_name("SPEC");
  command->add_option("--seed", arguments->load.seed, "Draws random blocks and values")
      ->capture_default_str();
  command->callback([arguments] { convert(*arguments); });
}

}  // namespace spmmbench
