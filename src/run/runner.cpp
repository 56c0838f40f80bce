#include "run/runner.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "gpu/backend.hpp"
#include "report/baselines.hpp"
#include "report/journal.hpp"
#include "report/table.hpp"
#include "run/case.hpp"
#include "run/context.hpp"
#include "run/interrupt.hpp"
#include "run/isolate.hpp"
#include "run/progress.hpp"
#include "spmmbench/registry.hpp"
#include "stats/sampler.hpp"
#include "verify/reference.hpp"

namespace spmmbench {
namespace {

std::string_view layout_name(Layout layout) { return layout == Layout::row_major ? "row" : "col"; }

std::string shell_quoted(const std::string& text) {
  if (text.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                             "_-./:=,@%+") == std::string::npos)
    return text;
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

MatrixSummary summarise_matrix(const NamedMatrix& matrix) {
  const CsrMatrix& a = matrix.csr;
  MatrixSummary summary{
      matrix.name, matrix.source, matrix.sha256, a.rows, a.cols, a.nnz(), 0, 0, 0};
  if (a.rows == 0) return summary;
  const auto rows = static_cast<double>(a.rows);
  summary.mean_row = static_cast<double>(a.nnz()) / rows;
  double squares = 0;
  for (std::int64_t row = 0; row < a.rows; ++row) {
    const std::int64_t length = a.row_length(row);
    summary.max_row = std::max(summary.max_row, length);
    squares += std::pow(static_cast<double>(length) - summary.mean_row, 2);
  }
  if (summary.mean_row > 0) summary.cv_row = std::sqrt(squares / rows) / summary.mean_row;
  return summary;
}

// A with its values rounded to the precision. Values beyond fp16's range are first scaled by a
// power of two, which changes no timing and no relative error; the exponent goes into the row.
CsrMatrix rounded(CsrMatrix a, Precision precision, int& log2_scale) {
  log2_scale = 0;
  if (precision == Precision::fp16) {
    float largest = 0;
    for (const float value : a.values)
      if (std::isfinite(value)) largest = std::max(largest, std::abs(value));
    constexpr float kLargestUnscaled = 1024;  // leaves a row of products far below 65504
    if (largest > kLargestUnscaled) log2_scale = -std::ilogb(largest);
  }
  for (float& value : a.values) value = round_to(precision, std::ldexp(value, log2_scale));
  return a;
}

// One case as planned; the matrix is that of the loop around it.
struct PlannedCase {
  const Spec* reorder;
  const PrecisionGroup* group;
  std::int64_t n;
  const KernelChoice* choice;
};

class Run {
 public:
  Run(const RunOptions& options, const std::vector<std::string>& argv)
      : options_(options), cuda_(probe_cuda()), host_(open_host_device()) {
    if (options.device >= 0 && !cuda_.devices.empty()) {
      if (options.device >= static_cast<int>(cuda_.devices.size()))
        throw Error(fmt::format("--device {}: this machine has {} CUDA devices", options.device,
                                cuda_.devices.size()));
      gpu_ = open_cuda_device(options.device);
    }
    Device& main = gpu_ ? *gpu_ : *host_;
    groups_ = plan_groups(options, main.info().kind);
    const std::size_t cases = plan_cases(options.ns).size() * options.inputs.size();
    progress_.emplace(cases, options.quiet);
    RunContext context = collect_context(argv, options.load.seed, main);
    context.protocol = {{"noise_limit", fmt::format("{}", options.limits.noise)},
                        {"min_samples", fmt::format("{}", options.limits.min_samples)},
                        {"max_samples", fmt::format("{}", options.limits.max_samples)},
                        {"max_seconds", fmt::format("{}", options.limits.max_seconds)},
                        {"isolated", options.isolate ? "yes" : "no"}};
    if (!gpu_ && !options.quiet)
      fmt::print(stderr, "spmmbench: {}: running the CPU kernels\n",
                 options.device < 0 ? "no GPU asked for" : cuda_.reason);
    if (!options.json.empty() || !options.csv.empty())
      journal_.emplace(Journal::Paths{options.json, options.csv}, std::move(context),
                       options.resume);
  }

  ExitCode execute() {
    bool interrupted = false;
    try {
      for (const std::string& input : options_.inputs) measure_input(input);
    } catch (const Interrupted&) {
      interrupted = true;
    }
    progress_->clear();
    report_matrix();
    if (const std::string summary = summary_.format(); !summary.empty() && !options_.quiet)
      fmt::print("{}", summary);
    if (journal_) journal_->finish((gpu_ && !lost_ ? *gpu_ : *host_).clocks(), !interrupted);
    if (interrupted) return ExitCode::interrupted;
    if (wrong_) return ExitCode::wrong_result;
    if (failed_) return ExitCode::some_failed;
    return unreadable_ ? ExitCode::usage : ExitCode::ok;
  }

 private:
  // Unreordered cases first; groups and N in the order given.
  std::vector<PlannedCase> plan_cases(const std::vector<std::int64_t>& ns) const {
    static const Spec kNone{"none", {}};
    std::vector<const Spec*> orders = {&kNone};
    for (const Spec& reorder : options_.reorderings)
      if (reorder.name != "none") orders.push_back(&reorder);
    const bool unordered_asked = orders.size() <= options_.reorderings.size();
    std::vector<PlannedCase> cases;
    for (const Spec* reorder : orders)
      for (const PrecisionGroup& group : groups_)
        for (const std::int64_t n : ns)
          for (const KernelChoice& choice : group.kernels) {
            // What cannot write through row ids runs once, unreordered, whatever orders are asked
            // for.
            const bool reorderable = !group.implied && choice.kernel->info().writes_row_ids;
            if (reorder == &kNone ? unordered_asked || !reorderable : reorderable)
              cases.push_back({reorder, &group, n, &choice});
          }
    return cases;
  }

  void measure_input(const std::string& input) {
    report_matrix();
    std::vector<PlannedCase> cases = plan_cases(options_.ns);
    const auto all_finished = [&] {
      return std::all_of(cases.begin(), cases.end(), [&](const PlannedCase& planned) {
        return finished(base_row(input, planned));
      });
    };
    if (journal_ && options_.resume && all_finished()) {
      for (std::size_t i = 0; i < cases.size(); ++i) progress_->skip();
      return;
    }
    LoadedInput loaded;
    try {
      loaded = load_input(input, options_.load);
      if (!options_.b_file.empty()) {
        LoadOptions b_options = options_.load;
        b_options.dims = options_.b_dims;
        b_options.prune.clear();
        loaded.b = load_dense(options_.b_file, b_options);
      }
      if (loaded.b && loaded.b->rows != loaded.a.csr.cols)
        throw Error(fmt::format(
            "{}: A is {} x {} but B is {} x {}: expected as many rows of B as columns of A", input,
            loaded.a.csr.rows, loaded.a.csr.cols, loaded.b->rows, loaded.b->cols));
    } catch (const Error& error) {
      return unreadable(error.what());
    } catch (const std::bad_alloc&) {
      return unreadable(input + ": out of host memory");
    }
    if (loaded.b) {  // N is B's own
      cases = plan_cases({loaded.b->cols});
    }
    measure_matrix(loaded, cases);
  }

  void unreadable(const std::string& reason) {
    progress_->clear();
    fmt::print(stderr, "spmmbench: {}\n", reason);
    unreadable_ = true;
  }

  // Cases come sorted so that those which share a permutation, a rounding of A, and B follow one
  // another.
  void measure_matrix(const LoadedInput& loaded, const std::vector<PlannedCase>& cases) {
    const MatrixSummary summary = summarise_matrix(loaded.a);
    const PlannedCase* previous = nullptr;
    std::optional<Permutation> order;
    double reorder_ms = 0;
    CsrMatrix a;
    int log2_scale = 0;
    std::map<DeviceKind, std::unique_ptr<ReferenceChecker>> references;
    std::map<DeviceKind, Operands> operands;
    std::string operands_error;
    double compulsory = 0;
    for (const PlannedCase& planned : cases) {
      poll_interrupt();
      ResultRow row = base_row(loaded.a.source, planned);
      row.matrix = summary;
      row.stages_ms["load"] = loaded.a.load_ms;
      if (finished(row)) {
        progress_->skip();
        continue;
      }
      progress_->start(fmt::format("{} n={} {}", summary.name, planned.n, row.kernel));
      if (options_.isolate) {
        previous = &planned;
        record(isolated_row(std::move(row)));
        continue;
      }
      const bool new_order = !previous || previous->reorder != planned.reorder;
      const bool new_a = new_order || previous->group != planned.group;
      const bool new_b = new_a || previous->n != planned.n;
      previous = &planned;
      if (new_b) operands.clear();
      if (new_a) references.clear();
      if (new_order) {
        const double start = steady_seconds();
        order.reset();
        if (planned.reorder->name != "none")
          order = Registry<Reordering>::instance()
                      .at(planned.reorder->name)
                      .compute(loaded.a.csr, planned.reorder->options);
        reorder_ms = order ? (steady_seconds() - start) * 1e3 : 0;
      }
      if (new_a)
        a = rounded(order ? permute_rows(loaded.a.csr, *order) : loaded.a.csr,
                    planned.group->precision, log2_scale);
      if (new_b)
        compulsory =
            compulsory_bytes(a, planned.n, planned.group->precision, planned.group->c_type);
      if (order) row.stages_ms["reorder"] = reorder_ms;
      if (log2_scale != 0) row.metrics["a_scale_log2"] = log2_scale;

      const DeviceKind kind = planned.choice->kernel->info().device;
      Device& device = kind == DeviceKind::cuda && gpu_ ? *gpu_ : *host_;
      CaseInput input;
      input.choice = planned.choice;
      input.device = &device;
      input.problem.a = &a;
      if (order) input.problem.row_ids = *order;
      input.problem.n = planned.n;
      input.problem.precision = planned.group->precision;
      input.problem.c_type = planned.group->c_type;
      input.problem.layout = options_.layout;
      input.problem.options = planned.choice->options;
      input.compulsory_bytes = compulsory;
      input.bound_us = compulsory / device.copy_bytes_per_second() * 1e6;
      if (lost_ && kind == DeviceKind::cuda) {
        row.status = Status::failed;
        row.reason =
            fmt::format("device lost in {}; --isolate would keep it to that row", lost_in_);
        record(std::move(row));
        continue;
      }
      try {
        if (device.info().kind == kind) {
          if (!operands.contains(kind))
            operands[kind] = make_operands(
                a, planned.n, planned.group->precision, planned.group->c_type, options_.layout,
                loaded.b ? &*loaded.b : nullptr, options_.load.seed, device);
          if (!references.contains(kind))
            references[kind] = make_reference(a, input.problem.row_ids, device);
          input.operands = &operands[kind];
          input.reference = references[kind].get();
          input.problem.b = input.operands->b;
        }
      } catch (const DeviceError& error) {
        input.operands_error = error.what();
      } catch (const std::bad_alloc&) {
        input.operands_error = "out of host memory for B and C";
      }
      if (!run_case(input, options_.limits, row)) {
        lost_ = true;
        lost_in_ = row.kernel;
      }
      record(std::move(row));
    }
  }

  ResultRow base_row(const std::string& source, const PlannedCase& planned) const {
    ResultRow row;
    row.matrix.source = source;
    row.n = planned.n;
    row.kernel = planned.choice->label();
    row.baseline = planned.choice->kernel->info().baseline;
    row.binary = planned.choice->kernel->info().binary;
    row.precision = to_string(planned.group->precision);
    row.c_type = to_string(planned.group->c_type);
    row.layout = layout_name(options_.layout);
    row.reorder = planned.reorder->to_string();
    row.command = "spmmbench " + fmt::format("{}", fmt::join(quoted(case_arguments(row)), " "));
    return row;
  }

  // The arguments that measure this one case again.
  std::vector<std::string> case_arguments(const ResultRow& row) const {
    std::vector<std::string> arguments = {"run", row.matrix.source};
    const auto add = [&](const char* flag, const std::string& value) {
      arguments.insert(arguments.end(), {flag, value});
    };
    add("-n", std::to_string(row.n));
    add("-k", row.kernel);
    add("--precision", row.precision);
    if (row.c_type != "fp32") add("--c-type", row.c_type);
    if (row.layout != "row") add("--b-layout", row.layout);
    if (row.reorder != "none") add("--reorder", row.reorder);
    add("--seed", std::to_string(options_.load.seed));
    if (!options_.load.prune.empty()) add("--prune", options_.load.prune);
    if (!options_.b_file.empty()) add("--b", options_.b_file);
    if (options_.load.dims) {
      arguments.push_back("--dims");
      arguments.push_back(std::to_string(options_.load.dims->first));
      arguments.push_back(std::to_string(options_.load.dims->second));
      if (options_.b_dims) arguments.push_back(std::to_string(options_.b_dims->second));
    }
    arguments.push_back("--no-baselines");
    return arguments;
  }

  static std::vector<std::string> quoted(std::vector<std::string> arguments) {
    for (std::string& argument : arguments) argument = shell_quoted(argument);
    return arguments;
  }

  ResultRow isolated_row(ResultRow row) const {
    std::vector<std::string> arguments = case_arguments(row);
    const auto add = [&](const char* flag, double value) {
      arguments.insert(arguments.end(), {flag, fmt::format("{}", value)});
    };
    add("--device", options_.device);
    add("--noise", options_.limits.noise);
    add("--min-samples", options_.limits.min_samples);
    add("--max-samples", options_.limits.max_samples);
    add("--max-seconds", options_.limits.max_seconds);
    ChildOutcome outcome = run_isolated(arguments, options_.timeout_s);
    if (outcome.rows.size() == 1) return std::move(outcome.rows.front());
    row.status = outcome.timed_out ? Status::timeout : Status::failed;
    row.reason = outcome.reason;
    return row;
  }

  bool finished(const ResultRow& row) const {
    if (!journal_ || !options_.resume) return false;
    const auto status = journal_->status_of(case_key(row));
    return status && *status != Status::failed && *status != Status::timeout;
  }

  void record(ResultRow row) {
    progress_->done();
    wrong_ |= row.status == Status::wrong;
    failed_ |= row.status == Status::failed || row.status == Status::timeout;
    if (journal_) journal_->append(row);
    if (row.hot) row.hot->samples_us.clear();
    if (row.cold) row.cold->samples_us.clear();
    rows_.push_back(std::move(row));
  }

  // Prints what was measured of one matrix and forgets it.
  void report_matrix() {
    if (rows_.empty()) return;
    Baselines baselines;
    for (const ResultRow& row : rows_) baselines.add(row);
    for (ResultRow& row : rows_) baselines.fill(row);
    progress_->clear();
    if (!options_.quiet) fmt::print("{}", format_table(rows_));
    std::fflush(stdout);
    summary_.add(rows_);
    rows_.clear();
  }

  const RunOptions& options_;
  CudaProbe cuda_;
  std::unique_ptr<Device> host_, gpu_;
  std::vector<PrecisionGroup> groups_;
  std::optional<Progress> progress_;
  std::optional<Journal> journal_;
  std::vector<ResultRow> rows_;  // of the current matrix
  Summary summary_;
  bool wrong_ = false, failed_ = false, unreadable_ = false, lost_ = false;
  std::string lost_in_;
};

}  // namespace

ExitCode run_benchmark(const RunOptions& options, const std::vector<std::string>& argv) {
  install_interrupt_handler();
  Run run(options, argv);
  return run.execute();
}

}  // namespace spmmbench
