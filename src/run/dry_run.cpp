#include "run/dry_run.hpp"

#include <algorithm>
#include <filesystem>
#include <new>

#include "core/numbered.hpp"
#include "gpu/backend.hpp"
#include "io/file.hpp"
#include "io/made_folders.hpp"
#include "io/output.hpp"
#include "io/tensor_path.hpp"
#include "measure/batch.hpp"
#include "report/answer.hpp"
#include "report/identity.hpp"
#include "report/journal.hpp"
#include "report/recorded.hpp"
#include "run/ledger.hpp"
#include "run/load_operands.hpp"
#include "spmmbench/printable.hpp"

namespace spmmbench {
namespace {

// The output that is gone on with. Inputs are not loaded, so that a matrix is known by its name.
class EarlierRows {
 public:
  explicit EarlierRows(const Outputs& outputs) {
    for (const std::string& path : {journal_of({outputs.json, outputs.csv}), outputs.json}) {
      if (!has_content(path)) continue;
      for (const ResultRow& row : read_recorded(path).rows) {
        cases_[case_key(row)] = row.status;
        sha256_of_[row.matrix.name] = row.matrix.sha256;
      }
      break;
    }
  }
  std::string sha256(const std::string& name) const {
    const auto it = sha256_of_.find(name);
    return it == sha256_of_.end() ? std::string() : it->second;
  }
  std::optional<Status> find(const ResultRow& row) const {
    const auto it = cases_.find(case_key(row));
    return it == cases_.end() ? std::nullopt : std::optional(it->second);
  }

 private:
  std::map<std::string, Status> cases_;
  std::map<std::string, std::string> sha256_of_;
};

// The N that a run measures: the width of B where B is given.
std::vector<std::int64_t> widths(const Cases& cases, const std::string& input) {
  if (!cases.b_file.empty()) {
    LoadOptions b_options = cases.load;
    b_options.dims = cases.b_dims;
    return {dense_columns(cases.b_file, b_options)};
  }
  if (const auto own = columns_of_own_b(input)) return {*own};
  return cases.ns;
}

// Refuses what a run refuses when it reads the input: small files are read and returned, of others
// the header is read.
std::optional<LoadedInput> check_input(const Cases& cases, const std::string& input,
                                       const std::vector<PrecisionGroup>& groups) {
  constexpr std::uintmax_t kSmallBytes = std::uintmax_t{64} << 20;  // a choice: read in a second
  if (input.starts_with(kGeneratorPrefix)) return {};               // its options were checked
  std::error_code error;
  const std::uintmax_t bytes = std::filesystem::file_size(file_of(input), error);
  if (!error && bytes <= kSmallBytes) return load_operands(input, cases, groups);
  check_header(input, cases.load);
  return {};
}

// B and C of a case, on its device.
std::size_t operand_bytes(const Cases& cases, const CsrMatrix& a, const PlannedCase& planned) {
  const PrecisionGroup& group = *planned.group;
  const bool in_rows = cases.layout == Layout::row_major;
  const std::int64_t more_rows = in_rows ? cases.batch : 1;
  const std::int64_t n = in_rows ? planned.n : planned.n * cases.batch;
  return make_b_view(a.cols * more_rows, n, cases.layout, storage_type(group.precision)).bytes() +
         make_dense_view(a.rows * more_rows, n, cases.layout, group.c_type).bytes();
}

}  // namespace

ExitCode print_dry_run(const RunOptions& options) {
  const RunOutputs paths = {options.outputs.json, options.outputs.csv};
  if (options.cases.resume == Resume::none && !options.outputs.overwrite)
    require_no_unfinished(paths, options.outputs.can_resume);
  for (const std::string& path : {paths.json, paths.csv})
    if (!path.empty()) OutputFile opened(path);  // leaves nothing
  (void)require_writable_folder("--save-failing", options.protocol.save_failing);
  (void)require_writable_folder("--cache", options.protocol.cache);
  const CudaProbe cuda = probe_cuda();
  const bool on_gpu =
      !cuda.devices.empty() && (!options.machines.devices.empty() || options.protocol.device >= 0);
  const auto groups =
      plan_groups(options.cases, options.protocol, on_gpu ? DeviceKind::cuda : DeviceKind::host);
  std::optional<EarlierRows> earlier;
  if (options.cases.resume != Resume::none) earlier.emplace(options.outputs);
  std::size_t cases = 0;
  bool all_readable = true;
  for (const std::string& input : options.cases.inputs) {
    std::optional<LoadedInput> loaded;
    try {
      loaded = check_input(options.cases, input, groups);
    } catch (const Error& refused) {
      all_readable = false;
      say("spmmbench: {}\n", refused.what());
      continue;
    } catch (const std::bad_alloc&) {
      all_readable = false;
      say("spmmbench: {}: out of host memory\n", input);
      continue;
    }
    MatrixSummary matrix;
    matrix.name = name_of_input(input);
    matrix.source = to_printable(input);
    if (earlier) matrix.sha256 = earlier->sha256(matrix.name);
    std::size_t most_bytes = 0;
    for (const PlannedCase& planned :
         plan_cases(options.cases, groups, widths(options.cases, input))) {
      const ResultRow row = planned_row(options.cases, matrix, planned);
      if (earlier && !is_pending(earlier->find(row), options.cases.resume)) continue;
      ++cases;
      if (loaded)
        most_bytes = std::max(most_bytes, operand_bytes(options.cases, loaded->a.csr, planned));
      print("{} n={} {} {}{}\n", row.matrix.source, row.n, row.precision,
            printable_message(label_of(row)), planned.group->implied ? " (baseline)" : "");
    }
    if (options.cases.batch > 1 && most_bytes > 0)
      print("{}: B and C of a batch take up to {}, A in its checks {} of host memory\n",
            matrix.source, format_bytes(static_cast<double>(most_bytes)),
            format_bytes(static_cast<double>(diagonal_bytes(loaded->a.csr, options.cases.batch))));
  }
  print("{} of {} on {}\n", numbered(cases, "case"), numbered(options.cases.inputs.size(), "input"),
        on_gpu ? "the GPU" : "the CPU");
  return all_readable ? ExitCode::ok : ExitCode::usage;
}

}  // namespace spmmbench
