#include "run/runner.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <tuple>

#include "core/contains.hpp"
#include "gpu/backend.hpp"
#include "gpu/vendor_libraries.hpp"
#include "io/made_folders.hpp"
#include "io/output.hpp"
#include "io/sha256.hpp"
#include "io/tensor_path.hpp"
#include "measure/summary.hpp"
#include "plugin/plugin.hpp"
#include "process/interrupt.hpp"
#include "report/identity.hpp"
#include "report/journal.hpp"
#include "run/context.hpp"
#include "run/devices.hpp"
#include "run/dry_run.hpp"
#include "run/isolate.hpp"
#include "run/ledger.hpp"
#include "run/load_operands.hpp"
#include "run/machine.hpp"
#include "run/matrix_run.hpp"
#include "run/protocol.hpp"
#include "run/ranks.hpp"
#include "run/split_run.hpp"
#include "run/turns.hpp"
#include "run/work.hpp"
#include "select/cache.hpp"
#include "spmmbench/printable.hpp"
#include "verify/exact.hpp"

namespace spmmbench {
namespace {

// The UUIDs of the GPUs among them, such as "a, b".
std::string uuids_of(const std::vector<int>& devices) {
  std::vector<std::string> uuids;
  for (const DeviceInfo& one : probe_cuda().devices)
    if (contains(devices, one.index)) uuids.push_back(one.uuid);
  return fmt::format("{}", fmt::join(uuids, ", "));
}

struct NewInput {
  LoadedInput loaded;
  MatrixSummary summary;
};

struct Case {
  PlannedCase planned;
  ResultRow row;
};

// What cases have in common that are measured in turns.
std::tuple<std::string, std::string, std::string, std::int64_t> turn_of(const Case& one) {
  return {one.row.reorder, one.row.precision, one.row.c_type, one.row.n};
}

class Run {
 public:
  Run(const RunOptions& options, const std::vector<std::string>& argv)
      : options_(options),
        group_(open_group(options.protocol)),
        how_(options.protocol.interleave ? of_turn(options.protocol) : options.protocol),
        machine_(open_machine(options)),
        groups_(plan_groups(options.cases, options.protocol, machine_.main().info().kind)),
        rates_(rates_for(options.protocol.rates, groups_, machine_.main())),
        ledger_(options, context(argv)) {
    const std::vector<PlannedCase> planned = plan_cases(options.cases, groups_, options.cases.ns);
    const std::size_t cases = planned.size() * options.cases.inputs.size();
    std::size_t pending = std::count_if(planned.begin(), planned.end(),
                                        [this](const auto& one) { return can_run(one); }) *
                          options.cases.inputs.size();
    if (options.cases.resume != Resume::none) {
      pending = 0;
      for (const std::string& input : options.cases.inputs)
        pending += count_pending(planned_rows(options.cases, groups_, ledger_.expected(input)));
    }
    ledger_.begin(cases, pending);
  }

  ExitCode execute() {
    bool interrupted = false;
    try {
      if (options_.cases.gpus > 1 && !group_) {
        machine_.give_back_gpu();
        run_ranks(options_, ledger_);
      } else if (!options_.machines.devices.empty()) run_on_devices(options_, groups_, ledger_);
      else
        for (const std::string& input : options_.cases.inputs) measure_input(input);
    } catch (const Interrupted&) {
      interrupted = true;
    }
    ledger_.print_matrix(rows_);
    return ledger_.finish(machine_.lost_in.empty() ? machine_.clocks() : ClockState{}, interrupted);
  }

 private:
  // Where this process is one of several ranks, after all of them have come.
  static std::unique_ptr<Group> open_group(const Protocol& protocol) {
    // The ranks are to find out by themselves who is missing, before who started them ends them
    // all.
    constexpr double kShare = 0.9;
    if (protocol.place.meeting.empty()) return nullptr;
    return std::make_unique<Group>(protocol.place, kShare * protocol.timeout_s);
  }

  RunContext context(const std::vector<std::string>& argv) {
    RunContext context = collect_context(argv, options_.cases.load.seed, machine_.main(), rates_);
    if (options_.outputs.has_file()) name_libraries(context.device);  // a child writes no document
    if (options_.machines.devices.size() > 1)
      context.device.uuid = uuids_of(options_.machines.devices);
    context.protocol = protocol_of(options_.cases, options_.protocol);
    if (const std::string& b = options_.cases.b_file; !b.empty() && options_.outputs.has_file())
      if (std::string hash = file_sha256(file_of(b)); !hash.empty())
        context.protocol["b_sha256"] = std::move(hash);
    context.tags = options_.outputs.tags;
    if (!options_.outputs.shard.empty()) context.shards = {options_.outputs.shard};
    context.calls = options_.outputs.table.calls;
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

  // Empty when the input cannot be read; the run then goes on with the next one.
  std::optional<NewInput> try_load(const std::string& input) {
    try {
      LoadedInput loaded = load_operands(input, options_.cases, groups_);
      const NamedMatrix& a = loaded.a;
      MatrixSummary summary = summarise_matrix(a.csr, a.name, a.source, a.sha256);
      return NewInput{std::move(loaded), std::move(summary)};
    } catch (const Error& error) {
      ledger_.input_failed(error.what(), ExitCode::usage);
    } catch (const std::bad_alloc&) {
      ledger_.input_failed(fmt::format("{}: out of host memory", input), ExitCode::usage);
    }
    return std::nullopt;
  }

  void measure_input(const std::string& input) {
    poll_interrupt();
    const std::vector<ResultRow> expected =
        planned_rows(options_.cases, groups_, ledger_.expected(input));
    if (!ledger_.may_be_pending(input, expected)) return ledger_.progress().skip(expected.size());
    ledger_.progress().start(fmt::format("loading {}", to_printable(input)));
    std::optional<NewInput> found = load_new(input);
    std::vector<Case> cases = found ? pending_cases(*found) : std::vector<Case>{};
    correct_progress(expected, cases.size());
    if (found) measure_cases(std::move(found->loaded), std::move(cases));
  }

  // Empty, and said why, where the input cannot be read or its matrix was measured.
  std::optional<NewInput> load_new(const std::string& input) {
    std::optional<NewInput> made = try_load(input);
    if (!made) return std::nullopt;
    const LoadedInput& loaded = made->loaded;
    if (const auto [earlier, is_new] = input_of_.emplace(identity_of(made->summary), input);
        !is_new) {
      ledger_.progress().clear();
      say("spmmbench: {}: is the matrix of {} and measured once\n", to_printable(input),
          to_printable(earlier->second));
      return std::nullopt;
    }
    ledger_.take_renamed(made->summary);
    if (loaded.b && !options_.outputs.quiet && only_zero_products(loaded.a.csr, *loaded.b)) {
      ledger_.progress().clear();
      say("warning: {}: every product with this B is zero, which only the exact test, with values "
          "of its own, can tell from no product; and zeros save power\n",
          to_printable(input));
    }
    return made;
  }

  std::vector<Case> pending_cases(const NewInput& input) const {
    // An input that brings its own B decides N.
    const auto& b = input.loaded.b;
    const std::vector<std::int64_t> ns = b ? std::vector<std::int64_t>{b->cols} : options_.cases.ns;
    std::vector<Case> cases;
    for (const PlannedCase& planned : plan_cases(options_.cases, groups_, ns)) {
      ResultRow row = planned_row(options_.cases, input.summary, planned);
      if (ledger_.pending(row)) cases.push_back({planned, std::move(row)});
    }
    return cases;
  }

  // Progress counts the cases that an input was expected to have; `cases` of them are measured.
  void correct_progress(const std::vector<ResultRow>& expected, std::size_t cases) {
    const std::size_t pending = count_pending(expected);
    if (cases < expected.size())
      ledger_.progress().skip(expected.size() - std::max(pending, cases));
    if (cases < pending) ledger_.progress().drop(pending - cases);
  }

  void measure_cases(std::optional<LoadedInput> loaded, std::vector<Case> cases) {
    for (Case& one : cases) one.row.stages_ms["load"] = loaded->a.load_ms;
    if (options_.protocol.isolate) loaded.reset();  // the children load it themselves
    if (group_ && !split_run_)
      split_run_ = std::make_unique<SplitRun>(options_.cases, options_.protocol, *group_, machine_);
    if (split_run_ && loaded) split_run_->take(*loaded);
    std::optional<MatrixRun> matrix;
    if (loaded && !split_run_) matrix.emplace(*loaded, options_.cases, how_, machine_);
    if (options_.protocol.interleave) std::ranges::stable_sort(cases, {}, turn_of);
    for (auto first = cases.begin(); first != cases.end();) {
      auto last = first + 1;
      while (options_.protocol.interleave && last != cases.end() &&
             turn_of(*last) == turn_of(*first))
        ++last;
      measure_together(matrix ? &*matrix : nullptr, {first, last});
      first = last;
    }
    ledger_.print_matrix(rows_);
  }

  // One case, or several in turns.
  void measure_together(MatrixRun* matrix, std::span<Case> cases) {
    std::vector<std::vector<ResultRow>> rows(cases.size());  // of each case, by turn
    for (int turn = 0; turn < (options_.protocol.interleave ? kTurns : 1); ++turn)
      for (const std::size_t i : order_of_turn(cases.size(), options_.cases.load.seed, turn)) {
        poll_interrupt();
        if (turn > 0 && rows[i].back().status != Status::ok) continue;
        ResultRow row = cases[i].row;
        ledger_.progress().start(fmt::format("{} n={} {}", row.matrix.name, row.n, row.kernel));
        measure_case(matrix, cases[i].planned, row);
        rows[i].push_back(std::move(row));
      }
    for (std::size_t i = 0; i < cases.size(); ++i)
      finish_case(cases[i].planned, join_turns(std::move(rows[i])));
  }

  void finish_case(const PlannedCase& planned, ResultRow row) {
    if (options_.outputs.after_case) options_.outputs.after_case(row);
    if (can_run(planned)) ledger_.progress().done();
    else ledger_.progress().skip(1);
    if (const std::string warning = error_warning(row);
        !warning.empty() && !options_.outputs.quiet) {
      ledger_.progress().clear();
      say("spmmbench: {}\n", warning);
    }
    ledger_.add(std::move(row), rows_);
  }

  // In this process, or in a child where `matrix` is null or the kernel is a plug-in's.
  void measure_case(MatrixRun* matrix, const PlannedCase& planned, ResultRow& row) {
    const Kernel& kernel = *planned.choice->kernel;
    if (const std::string reason = why_unloadable(kernel); !reason.empty()) {
      row.status = Status::failed;
      row.reason = reason;
    } else if (split_run_) {
      ledger_.begin_case(row);
      split_run_->run(planned, row);
    } else if (matrix != nullptr &&
               (options_.protocol.plugins_here || plugin_path(kernel).empty())) {
      matrix->run(planned, row);
    } else {
      if (matrix != nullptr) matrix->release_memory();
      measure_isolated(row);
    }
  }

  void measure_isolated(ResultRow& row) {
    Work work = case_work({options_.cases, how_}, row);
    work.protocol.rates = rates_;
    ChildOutcome outcome = run_isolated(std::move(work), row, options_.protocol.timeout_s);
    if (outcome.row) {
      row = std::move(*outcome.row);
      return;
    }
    row.status = outcome.timed_out ? Status::timeout : Status::failed;
    row.reason = outcome.reason;
  }

  const RunOptions& options_;
  std::unique_ptr<Group> group_;  // where this process is one of the ranks of a product
  Protocol how_;                  // of one turn
  Machine machine_;
  std::vector<PrecisionGroup> groups_;
  DeviceRates rates_;  // of the main device
  Ledger ledger_;
  std::unique_ptr<SplitRun> split_run_;          // of a rank, after the machine
  std::vector<ResultRow> rows_;                  // of the current matrix
  std::map<std::string, std::string> input_of_;  // of each matrix so far, by identity_of
};

// A resumed run keeps the tags and --calls that it is not given, and always the rates, since the
// document has one bound for all of its rows.
RunOptions with_earlier(RunOptions options) {
  if (options.cases.resume == Resume::none) return options;
  const std::optional<RunContext> earlier =
      earlier_context({options.outputs.json, options.outputs.csv});
  if (!earlier) return options;
  options.outputs.tags.insert(earlier->tags.begin(), earlier->tags.end());
  if (!options.outputs.calls_given) options.outputs.table.calls = earlier->calls;
  options.protocol.rates = {.copy_bytes_per_second = earlier->copy_gb_per_s * 1e9,
                            .gather_bytes_per_second = earlier->gather_gb_per_s.value_or(0) * 1e9,
                            .dense_flops_per_second = earlier->dense_tflops.value_or(0) * 1e12};
  return options;
}

// One of the ranks that a launcher has started, or the program that starts them all. Only rank 0
// writes and speaks.
RunOptions with_place(RunOptions options) {
  if (options.cases.gpus == 1 || !options.protocol.place.meeting.empty()) return options;
  const std::optional<Place> place = place_of_environment();
  if (!place) return options;
  if (place->ranks != options.cases.gpus)
    throw Error(fmt::format("--gpus {}: expected {}, the processes that were started",
                            options.cases.gpus, place->ranks));
  if (options.cases.resume != Resume::none)
    throw Error("--resume and --retry-failed: expected the program to start the ranks itself");
  options.protocol.place = *place;
  if (options.protocol.device >= 0) options.protocol.device = place->on_host;
  if (place->rank == 0) return options;
  options.outputs.json = options.outputs.csv = {};
  options.outputs.jsonl = options.outputs.tables = options.outputs.tells_failures = false;
  options.outputs.quiet = true;
  return options;
}

}  // namespace

ExitCode run_benchmark(const RunOptions& given, const std::vector<std::string>& argv) {
  if (given.outputs.dry_run) return print_dry_run(given);
  const RunOptions options = with_place(given);
  install_interrupt_handler(!options.outputs.quiet);
  set_cache_folder(options.protocol.cache);
  const RunOptions whole = with_earlier(options);
  MadeFolders saved = require_writable_folder("--save-failing", whole.protocol.save_failing);
  const MadeFolders cache = require_writable_folder("--cache", whole.protocol.cache);
  Run run(whole, argv);
  saved.keep();
  return run.execute();
}

}  // namespace spmmbench
