#include "run/devices.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "core/steady_seconds.hpp"
#include "process/child.hpp"
#include "process/interrupt.hpp"
#include "report/json.hpp"
#include "run/work.hpp"

namespace spmmbench {
namespace {

// One device and the matrix that it measures.
struct Worker {
  int device = 0;
  std::string input;
  std::unique_ptr<Child> child;
  std::vector<ResultRow> rows;
};

class Spread {
 public:
  Spread(const RunOptions& options, const std::vector<PrecisionGroup>& groups, Ledger& ledger)
      : options_(options), groups_(groups), ledger_(ledger) {
    for (const int device : options.machines.devices) workers_.push_back({device, {}, nullptr, {}});
  }

  void run() {
    try {
      while (step()) {
        poll_interrupt();
        pause_briefly();
      }
    } catch (const Interrupted&) {
      stop();
      throw;
    }
  }

 private:
  // Looks at every worker once. False when all inputs are done.
  bool step() {
    bool busy = false;
    for (Worker& worker : workers_) {
      if (worker.child && !pump(worker)) end(worker);
      if (!worker.child) start_next(worker);
      busy |= worker.child != nullptr;
    }
    return busy;
  }

  bool pump(Worker& worker) {
    return worker.child->pump([&](const std::string& line) {
      std::optional<ResultRow> row = row_from_line(line);
      if (!row) return;
      ledger_.progress().start(fmt::format("{} n={} {} (device {})", row->matrix.name, row->n,
                                           row->kernel, worker.device));
      ledger_.progress().done();
      ledger_.add(std::move(*row), worker.rows);
    });
  }

  void start_next(Worker& worker) {
    for (; next_ < options_.cases.inputs.size(); ++next_) {
      const std::string& input = options_.cases.inputs[next_];
      const std::vector<ResultRow> planned =
          planned_rows(options_.cases, groups_, ledger_.expected(input));
      const auto kept = std::count_if(planned.begin(), planned.end(), [this](const ResultRow& row) {
        return !ledger_.pending(row);
      });
      ledger_.progress().skip(kept);
      if (!ledger_.may_be_pending(input, planned)) continue;
      Work work{options_.cases, options_.protocol};
      work.cases.inputs = {input};
      work.protocol.device = worker.device;
      if (options_.cases.resume != Resume::none) work.cases.known = ledger_.known_of(input);
      worker.input = input;
      worker.child = std::make_unique<Child>(kThisProgram, std::vector<std::string>{"worker"},
                                             describe_work(work));
      ++next_;
      return;
    }
  }

  void end(Worker& worker) {
    const std::unique_ptr<Child> child = std::move(worker.child);
    if (child->exit_code() == static_cast<int>(ExitCode::usage))
      ledger_.input_failed(child->last_words(), ExitCode::usage);
    else if (!child->exited() ||
             (worker.rows.empty() && child->exit_code() != static_cast<int>(ExitCode::ok)))
      ledger_.input_failed(fmt::format("{}: device {}: {}; --resume measures the rest",
                                       worker.input, worker.device, child->ending()),
                           ExitCode::some_failed);
    ledger_.print_matrix(worker.rows);
  }

  // Lets the children end after their current samples, and kills those that do not.
  void stop() {
    constexpr double kPatience_s = 10;
    const double deadline = steady_seconds() + kPatience_s;
    for (Worker& worker : workers_)
      if (worker.child) worker.child->interrupt();
    for (Worker& worker : workers_) {
      if (!worker.child) continue;
      while (pump(worker) && steady_seconds() < deadline) pause_briefly();
      worker.child->kill();
      pump(worker);
      ledger_.print_matrix(worker.rows);
    }
  }

  const RunOptions& options_;
  const std::vector<PrecisionGroup>& groups_;
  Ledger& ledger_;
  std::vector<Worker> workers_;
  std::size_t next_ = 0;
};

}  // namespace

void run_on_devices(const RunOptions& options, const std::vector<PrecisionGroup>& groups,
                    Ledger& ledger) {
  Spread(options, groups, ledger).run();
}

}  // namespace spmmbench
