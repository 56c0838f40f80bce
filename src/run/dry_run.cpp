#include "run/dry_run.hpp"

#include "gpu/backend.hpp"
#include "io/file.hpp"
#include "io/output.hpp"
#include "io/safetensors.hpp"
#include "io/tensor_path.hpp"
#include "report/answer.hpp"
#include "report/journal.hpp"
#include "report/recorded.hpp"
#include "run/ledger.hpp"
#include "spmmbench/printable.hpp"

namespace spmmbench {
namespace {

std::map<std::string, Status> recorded_cases(const Outputs& outputs) {
  std::map<std::string, Status> cases;
  for (const std::string& path : {journal_of({outputs.json, outputs.csv}), outputs.json}) {
    if (!has_content(path)) continue;
    for (const ResultRow& row : read_recorded(path).rows) cases[case_key(row)] = row.status;
    break;
  }
  return cases;
}

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

// Refuses tensors that are no matrix, as a run does when it reads them.
class TensorCheck {
 public:
  void require_matrix(const std::string& input) {
    const std::optional<TensorPath> tensor = parse_tensor_path(input);
    if (!tensor || tensor->tensor.empty()) return;
    if (tensor->file != path_) file_ = read_safetensors_header(tensor->file);
    path_ = tensor->file;
    (void)matrix_named(file_, path_, tensor->tensor);
  }

 private:
  std::string path_;  // of the last one
  TensorFile file_;
};

}  // namespace

void print_dry_run(const RunOptions& options) {
  const CudaProbe cuda = probe_cuda();
  const bool on_gpu =
      !cuda.devices.empty() && (!options.machines.devices.empty() || options.protocol.device >= 0);
  const auto groups =
      plan_groups(options.cases, options.protocol, on_gpu ? DeviceKind::cuda : DeviceKind::host);
  std::map<std::string, Status> recorded;
  if (options.cases.resume != Resume::none) recorded = recorded_cases(options.outputs);
  std::size_t cases = 0;
  TensorCheck tensors;
  for (const std::string& input : options.cases.inputs) {
    tensors.require_matrix(input);
    for (const PlannedCase& planned :
         plan_cases(options.cases, groups, widths(options.cases, input))) {
      const ResultRow row = planned_row(options.cases, input, planned);
      const auto it = recorded.find(case_key(row));
      const auto status = it == recorded.end() ? std::nullopt : std::optional(it->second);
      if (options.cases.resume != Resume::none && !is_pending(status, options.cases.resume))
        continue;
      ++cases;
      print("{} n={} {} {}{}\n", row.matrix.source, row.n, row.precision,
            printable_message(label_of(row)), planned.group->implied ? " (baseline)" : "");
    }
  }
  print("{} cases of {} inputs on {}\n", cases, options.cases.inputs.size(),
        on_gpu ? "the GPU" : "the CPU");
}

}  // namespace spmmbench
