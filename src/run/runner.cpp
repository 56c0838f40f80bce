#include "run/runner.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <new>
#include <optional>

#include "core/contains.hpp"
#include "gpu/backend.hpp"
#include "io/output.hpp"
#include "plugin/plugin.hpp"
#include "process/interrupt.hpp"
#include "report/journal.hpp"
#include "run/context.hpp"
#include "run/devices.hpp"
#include "run/dry_run.hpp"
#include "run/failing.hpp"
#include "run/given_b.hpp"
#include "run/isolate.hpp"
#include "run/ledger.hpp"
#include "run/matrix_run.hpp"
#include "run/protocol.hpp"
#include "run/work.hpp"
#include "select/cache.hpp"
#include "select/device_rates.hpp"
#include "spmmbench/printable.hpp"
#include "verify/exact.hpp"

namespace spmmbench {
namespace {

// Opens `--device`, or the first of `--devices`. These must all be of one model, because a document
// describes one model only.
Machine open_machine(const RunOptions& options) {
  Machine machine;
  machine.host = open_host_device();
  const CudaProbe cuda = probe_cuda();
  const auto count = static_cast<int>(cuda.devices.size());
  std::vector<int> wanted = options.devices;
  if (wanted.empty()) wanted = {options.device};
  for (const int index : wanted) {
    // Where there is no GPU, the default device 0 means the CPU kernels.
    if (index >= count && (count > 0 || index > 0 || !options.devices.empty()))
      throw Error(fmt::format("device {}: this machine has {} CUDA devices", index, count));
    if (index >= 0 && index < count && cuda.devices[index].name != cuda.devices[wanted[0]].name)
      throw Error(fmt::format("devices {} are of different models", fmt::join(wanted, ",")));
  }
  if (wanted[0] >= 0 && count > 0) machine.gpu = open_cuda_device(wanted[0]);
  else if (!options.quiet)
    say("spmmbench: {}: running the CPU kernels\n",
        wanted[0] < 0 ? "no GPU asked for" : cuda.reason);
  return machine;
}

// Of the GPUs among them, as in "a, b".
std::string uuids_of(const std::vector<int>& devices) {
  std::vector<std::string> uuids;
  for (const DeviceInfo& one : probe_cuda().devices)
    if (contains(devices, one.index)) uuids.push_back(one.uuid);
  return fmt::format("{}", fmt::join(uuids, ", "));
}

// Measures the rates that this process was not given: the copy always, the others if a kernel asks
// for them.
DeviceRates rates_for(const RunOptions& options, const std::vector<PrecisionGroup>& groups,
                      Device& device) {
  if (options.rates.copy_bytes_per_second > 0) set_rates(device.info(), options.rates);
  const auto asks = [](const KernelChoice& choice) { return choice.kernel->info().asks_for_rates; };
  for (const PrecisionGroup& group : groups)
    if (std::any_of(group.kernels.begin(), group.kernels.end(), asks)) return rates_of(device);
  DeviceRates rates = options.rates;
  if (rates.copy_bytes_per_second == 0)
    rates.copy_bytes_per_second = device.copy_bytes_per_second();
  return rates;
}

class Run {
 public:
  Run(const RunOptions& options, const std::vector<std::string>& argv)
      : options_(options),
        machine_(open_machine(options)),
        groups_(plan_groups(options, machine_.main().info().kind)),
        rates_(rates_for(options, groups_, machine_.main())),
        ledger_(options, context(argv)) {
    const std::vector<PlannedCase> planned = plan_cases(options, groups_, options.ns);
    const std::size_t cases = planned.size() * options.inputs.size();
    std::size_t pending = std::count_if(planned.begin(), planned.end(),
                                        [this](const auto& one) { return can_run(one); }) *
                          options.inputs.size();
    if (options.resume != Resume::none) {
      pending = 0;
      for (const std::string& input : options.inputs)
        pending += count_pending(planned_rows(options, groups_, input));
    }
    ledger_.begin(cases, pending);
  }

  ExitCode execute() {
    bool interrupted = false;
    try {
      if (!options_.devices.empty()) run_on_devices(options_, groups_, ledger_);
      else
        for (const std::string& input : options_.inputs) measure_input(input);
    } catch (const Interrupted&) {
      interrupted = true;
    }
    ledger_.print_matrix(rows_);
    return ledger_.finish(machine_.lost_in.empty() ? machine_.main().clocks() : ClockState{},
                          interrupted);
  }

 private:
  RunContext context(const std::vector<std::string>& argv) {
    RunContext context = collect_context(argv, options_.load.seed, machine_.main(), rates_);
    if (options_.devices.size() > 1) context.device.uuid = uuids_of(options_.devices);
    context.protocol = protocol_of(options_);
    context.tags = options_.tags;
    context.calls = options_.table.calls;
    return context;
  }

  // A kernel for the GPU has its row at once where there is none.
  bool can_run(const PlannedCase& planned) const {
    return machine_.gpu || planned.choice->kernel->info().device != DeviceKind::cuda;
  }

  std::size_t count_pending(const std::vector<ResultRow>& planned) const {
    return std::count_if(planned.begin(), planned.end(),
                         [this](const ResultRow& row) { return ledger_.pending(row); });
  }

  LoadedInput load(const std::string& input) const {
    LoadedInput loaded = load_input(input, options_.load);
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
    if (const auto& sizes = options_.b_dims; sizes && loaded.b) {
      const std::int64_t rows = options_.load.dims->first;
      if (loaded.a.csr.rows != rows || loaded.b->rows != sizes->first ||
          loaded.b->cols != sizes->second)
        throw Error(fmt::format("{}: A is {} x {} and B is {} x {}: expected --dims {} {} {}",
                                input, loaded.a.csr.rows, loaded.a.csr.cols, loaded.b->rows,
                                loaded.b->cols, rows, sizes->first, sizes->second));
    }
    if (loaded.b && loaded.b->cols == 0)
      throw Error(
          fmt::format("{}: B is {} x 0: expected at least one column", input, loaded.b->rows));
    if (loaded.b)
      expect_finite(*loaded.b, options_.b_file.empty() ? input : options_.b_file, groups_);
    return loaded;
  }

  // Empty when the input cannot be read; the run then goes on with the next one.
  std::optional<LoadedInput> try_load(const std::string& input) {
    try {
      return load(input);
    } catch (const Error& error) {
      ledger_.input_failed(error.what(), ExitCode::usage);
    } catch (const std::bad_alloc&) {
      ledger_.input_failed(fmt::format("{}: out of host memory", input), ExitCode::usage);
    }
    return std::nullopt;
  }

  void measure_input(const std::string& input) {
    poll_interrupt();
    const std::vector<ResultRow> expected = planned_rows(options_, groups_, input);
    const std::size_t pending = count_pending(expected);
    if (!ledger_.may_be_pending(input, expected)) return ledger_.progress().skip(expected.size());
    ledger_.progress().start(fmt::format("loading {}", to_printable(input)));
    std::optional<LoadedInput> loaded = try_load(input);
    if (!loaded) {
      ledger_.progress().skip(expected.size() - pending);
      return ledger_.progress().drop(pending);
    }
    if (loaded->b && !options_.quiet && only_zero_products(loaded->a.csr, *loaded->b)) {
      ledger_.progress().clear();
      say("warning: {}: every product with this B is zero, which only the exact test, with values "
          "of its own, can tell from no product; and zeros save power\n",
          to_printable(input));
    }
    const MatrixSummary summary = summarise_matrix(loaded->a);
    // An input that brings its own B decides N.
    const std::vector<std::int64_t> ns =
        loaded->b ? std::vector<std::int64_t>{loaded->b->cols} : options_.ns;
    std::vector<std::pair<PlannedCase, ResultRow>> cases;
    for (const PlannedCase& planned : plan_cases(options_, groups_, ns)) {
      ResultRow row = planned_row(options_, input, planned);
      row.matrix = summary;
      if (ledger_.pending(row)) cases.emplace_back(planned, std::move(row));
    }
    if (cases.size() < expected.size())
      ledger_.progress().skip(expected.size() - std::max(pending, cases.size()));
    if (cases.size() < pending) ledger_.progress().drop(pending - cases.size());

    const double load_ms = loaded->a.load_ms;
    if (options_.isolate) loaded.reset();  // the children load it themselves
    std::optional<MatrixRun> matrix;
    if (loaded) matrix.emplace(*loaded, options_, machine_);
    for (auto& [planned, row] : cases) {
      poll_interrupt();
      row.stages_ms["load"] = load_ms;
      ledger_.progress().start(fmt::format("{} n={} {}", summary.name, row.n, row.kernel));
      measure_case(matrix ? &*matrix : nullptr, planned, row);
      if (options_.after_case) options_.after_case(row);
      if (can_run(planned)) ledger_.progress().done();
      else ledger_.progress().skip(1);
      if (const std::string warning = error_warning(row); !warning.empty() && !options_.quiet) {
        ledger_.progress().clear();
        say("spmmbench: {}\n", warning);
      }
      ledger_.add(std::move(row), rows_);
    }
    ledger_.print_matrix(rows_);
  }

  // In this process, or in a child where `matrix` is null or the kernel is a plug-in's.
  void measure_case(MatrixRun* matrix, const PlannedCase& planned, ResultRow& row) {
    const Kernel& kernel = *planned.choice->kernel;
    if (const std::string reason = why_unloadable(kernel); !reason.empty()) {
      row.status = Status::failed;
      row.reason = reason;
    } else if (matrix != nullptr && (options_.plugins_here || plugin_path(kernel).empty())) {
      measure_here(*matrix, planned, row);
    } else {
      if (matrix != nullptr) matrix->release_memory();
      measure_isolated(row);
    }
  }

  void measure_here(MatrixRun& matrix, const PlannedCase& planned, ResultRow& row) {
    matrix.run(planned, row);
    if (row.status != Status::ok || !machine_.gpu || !machine_.lost_in.empty()) return;
    const std::uint64_t reasons = machine_.gpu->clocks().throttle_reasons.value_or(0);
    if ((reasons & kSlowingReasons) != 0)
      row.metrics["throttle_reasons"] = static_cast<double>(reasons);
  }

  void measure_isolated(ResultRow& row) {
    RunOptions work = case_work(options_, row);
    work.rates = rates_;
    ChildOutcome outcome = run_isolated(work, options_.timeout_s);
    if (outcome.row) {
      row = std::move(*outcome.row);
      return;
    }
    row.status = outcome.timed_out ? Status::timeout : Status::failed;
    row.reason = outcome.reason;
  }

  const RunOptions& options_;
  Machine machine_;
  std::vector<PrecisionGroup> groups_;
  DeviceRates rates_;  // of the main device
  Ledger ledger_;
  std::vector<ResultRow> rows_;  // of the current matrix
};

// A resumed run keeps the tags and --calls that it is not given, and always the rates, since the
// document has one bound for all of its rows.
RunOptions with_earlier(RunOptions options) {
  if (options.resume == Resume::none) return options;
  const std::optional<RunContext> earlier = earlier_context({options.json, options.csv});
  if (!earlier) return options;
  options.tags.insert(earlier->tags.begin(), earlier->tags.end());
  if (!options.calls_given) options.table.calls = earlier->calls;
  options.rates = {.copy_bytes_per_second = earlier->copy_gb_per_s * 1e9,
                   .gather_bytes_per_second = earlier->gather_gb_per_s.value_or(0) * 1e9,
                   .dense_flops_per_second = earlier->dense_tflops.value_or(0) * 1e12};
  return options;
}

}  // namespace

ExitCode run_benchmark(const RunOptions& options, const std::vector<std::string>& argv) {
  if (options.dry_run) {
    print_dry_run(options);
    return ExitCode::ok;
  }
  install_interrupt_handler(!options.quiet);
  set_cache_folder(options.cache);
  const RunOptions whole = with_earlier(options);
  MadeFolders saved;
  if (!whole.save_failing.empty()) saved = require_failing_folder(whole.save_failing);
  Run run(whole, argv);
  saved.keep();
  return run.execute();
}

}  // namespace spmmbench
