#include <fmt/format.h>

#include <memory>

#include "cli/commands.hpp"
#include "cli/lists.hpp"
#include "core/numbered.hpp"
#include "io/dense_file.hpp"
#include "io/input.hpp"
#include "io/matrix_output.hpp"
#include "io/output.hpp"

namespace spmmbench {
namespace {

struct GenerateArguments {
  std::string spec, out, b_out;
  std::uint64_t seed = 1;
};

bool is_dense_output(const std::string& path) {
  return path.ends_with(".npy") || path.ends_with(".bin");
}

void write_dense(const std::string& path, const DenseMatrix& matrix) {
  if (path.ends_with(".npy")) write_npy(path, matrix);
  else write_bin(path, matrix);
  say("{}: {} x {}, dense\n", path, matrix.rows, matrix.cols);
}

void generate(const GenerateArguments& arguments) {
  require_two_files(arguments.out, arguments.b_out);
  require_output(arguments.out);
  if (!arguments.b_out.empty()) {
    require_output(arguments.b_out);
    if (!is_dense_output(arguments.b_out))
      throw Error(
          fmt::format("{}: expected a name for B that ends in .npy or .bin", arguments.b_out));
  }
  remove_parts_at_signals();
  const std::string& spec = arguments.spec;
  const LoadedInput made =
      load_alone(spec.starts_with("gen:") ? spec : "gen:" + spec, {arguments.seed, {}, {}});
  if (!arguments.b_out.empty() && !made.b)
    throw Error(fmt::format("--b {}: {} makes no B", arguments.b_out, spec));

  const NamedMatrix& a = made.a;
  write_matrix(arguments.out, a.csr, a.pattern);
  say("{}: {} x {}, {}{}, sha256 {}\n", arguments.out, a.csr.rows, a.csr.cols,
      numbered(a.csr.nnz(), "entry", "entries"), a.pattern ? " (pattern)" : "",
      a.sha256.substr(0, 16));
  if (!arguments.b_out.empty()) write_dense(arguments.b_out, *made.b);
}

}  // namespace

void add_generate(CLI::App& app, ExitCode&) {
  auto arguments = std::make_shared<GenerateArguments>();
  CLI::App* command = app.add_subcommand(
      "generate", "Write a generated matrix to a file; 'spmmbench list generators' shows them");
  command
      ->add_option("SPEC", arguments->spec,
                   "NAME?key=value&key=value, with or without the gen: prefix")
      ->required();
  command
      ->add_option("OUT", arguments->out,
                   ".mtx, .mtx.gz, .csr, .npy or .bin. A pattern's values are drawn by --seed for "
                   "dense output, and left out else")
      ->required();
  command->add_option("--b", arguments->b_out,
                      "Where B of a two-operand generator (esmm) goes: .npy or .bin");
  add_seed_option(*command, arguments->seed, "Draws the values of a pattern in dense output");
  command->callback([arguments] { generate(*arguments); });
}

}  // namespace spmmbench
