#include "run/ranks.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "core/steady_seconds.hpp"
#include "process/child.hpp"
#include "process/interrupt.hpp"
#include "process/temporary_folder.hpp"
#include "report/identity.hpp"
#include "report/json.hpp"
#include "run/work.hpp"

namespace spmmbench {
namespace {

// How the ranks of one start ended.
struct EndOfRanks {
  bool done = false;  // all of them, by themselves
  bool timed_out = false;
  std::string reason;
};

class SplitRanks {
 public:
  SplitRanks(const RunOptions& options, Ledger& ledger)
      : options_(options), ledger_(ledger), cases_(options.cases) {
    if (cases_.resume == Resume::none) cases_.resume = Resume::rest;  // after ranks were lost
    else
      for (const std::string& input : cases_.inputs)
        for (const auto& known : ledger.known_of(input)) cases_.known.insert(known);
  }

  void run() {
    for (;;) {
      begun_.reset();
      const std::size_t known = cases_.known.size();
      const EndOfRanks ending = run_once();
      ledger_.print_matrix(rows_);
      if (ending.done && all_could_not_read())
        ledger_.input_failed(children_.front()->last_words(), ExitCode::usage);
      if (ending.done) return;
      if (!begun_ && cases_.known.size() == known)  // new ranks would come no further
        return ledger_.input_failed(ending.reason, ExitCode::some_failed);
      if (!begun_) continue;
      begun_->status = ending.timed_out ? Status::timeout : Status::failed;
      begun_->reason = ending.reason;
      // The new ranks are not to begin with it.
      cases_.known[case_key(*begun_)] = {Status::skipped, begun_->matrix.sha256};
      add(std::move(*begun_));
    }
  }

 private:
  EndOfRanks run_once() {
    const TemporaryFolder folder;
    children_.clear();
    std::random_device random;
    nonce_ = fmt::format("{:08x}{:08x} ", random(), random());
    for (int rank = 0; rank < cases_.gpus; ++rank) start(rank, folder.file("ranks"));
    try {
      return watch();
    } catch (const Interrupted&) {
      stop();
      throw;
    }
  }

  void start(int rank, const std::string& meeting) {
    Work work{cases_, options_.protocol};
    work.protocol.nonce = nonce_;
    work.protocol.plugins_here = true;
    work.protocol.place = {rank, cases_.gpus, rank, meeting};
    const std::vector<int>& devices = options_.machines.devices;
    if (options_.protocol.device >= 0)
      work.protocol.device = devices.empty() ? rank : devices[rank];
    children_.push_back(std::make_unique<Child>(kThisProgram, std::vector<std::string>{"worker"},
                                                describe_work(work)));
  }

  EndOfRanks watch() {
    double deadline = steady_seconds() + options_.protocol.timeout_s;
    for (;;) {
      poll_interrupt();
      if (pump()) deadline = steady_seconds() + options_.protocol.timeout_s;
      const auto lost = [&](const auto& child) { return has_ended(*child) && !is_well(*child); };
      if (std::ranges::any_of(children_, lost)) {
        let_others_follow();
        return all_could_not_read() ? EndOfRanks{.done = true, .reason = {}}
                                    : end_all(reason_of_loss());
      }
      if (all_ended()) return {.done = true, .reason = {}};
      if (steady_seconds() > deadline) return end_all({});
      pause_briefly();
    }
  }

  // Looks at every rank once. Whether a case has begun or ended.
  bool pump() {
    bool moved = false;
    for (std::size_t rank = 0; rank < children_.size(); ++rank)
      children_[rank]->pump([&](const std::string& line) { moved |= rank == 0 && take(line); });
    return moved;
  }

  static bool has_ended(const Child& child) { return child.exited() || child.was_killed(); }
  bool all_ended() const {
    return std::ranges::all_of(children_, [](const auto& child) { return has_ended(*child); });
  }

  // Whether a rank that ended has measured all cases.
  static bool is_well(const Child& child) {
    for (const ExitCode code : {ExitCode::ok, ExitCode::wrong_result, ExitCode::some_failed})
      if (child.exit_code() == static_cast<int>(code) && child.last_words().empty()) return true;
    return false;
  }
  // Whether all have measured what they could, and an input could not be read.
  bool all_could_not_read() const {
    return std::ranges::all_of(children_, [](const auto& child) {
      return child->exit_code() == static_cast<int>(ExitCode::usage);
    });
  }

  // Ranks that another leaves alone end soon, and say whom they miss.
  void let_others_follow() {
    constexpr double kPatience_s = 1;
    const double deadline = steady_seconds() + kPatience_s;
    while (!all_ended() && steady_seconds() < deadline) {
      pause_briefly();
      pump();
    }
  }

  // The first cause: a rank that a signal has ended, else one that does not only miss another.
  std::string reason_of_loss() const {
    for (int rank = 0; rank < cases_.gpus; ++rank)
      if (children_[rank]->was_killed())
        return fmt::format("{}: {}", name_of(rank), children_[rank]->ending());
    std::string reason;
    for (const auto& child : children_) {
      if (!has_ended(*child) || is_well(*child)) continue;
      const std::string words = child->last_words();
      if (reason.empty() || reason.ends_with(kItsProcessEnded)) reason = words;
    }
    constexpr std::string_view kPrefix = "spmmbench: ";
    return reason.starts_with(kPrefix) ? reason.substr(kPrefix.size()) : reason;
  }

  static std::string name_of(int rank) {
    std::string host(256, '\0');
    if (gethostname(host.data(), host.size() - 1) != 0) host = "?";
    return fmt::format("rank {} on {}", rank, host.c_str());
  }

  // An empty reason: the time is over.
  EndOfRanks end_all(const std::string& reason) {
    EndOfRanks ending = {.timed_out = reason.empty(), .reason = reason};
    if (ending.timed_out)
      ending.reason =
          fmt::format("{}: killed after {:g} s, like the others: none had an answer of all",
                      name_of(0), options_.protocol.timeout_s);
    for (const auto& child : children_) child->kill();
    return ending;
  }

  bool take(const std::string& line) {
    if (!line.starts_with(nonce_)) return false;
    const std::string rest = line.substr(nonce_.size());
    const bool begins = rest.starts_with(kBeginsCase);
    std::optional<ResultRow> row =
        row_from_line(begins ? rest.substr(std::string(kBeginsCase).size()) : rest);
    if (!row) return false;
    if (begins) {
      ledger_.progress().start(
          fmt::format("{} n={} {} on {} GPUs", row->matrix.name, row->n, row->kernel, cases_.gpus));
      begun_ = std::move(row);
      return true;
    }
    begun_.reset();
    cases_.known[case_key(*row)] = {Status::ok, row->matrix.sha256};
    add(std::move(*row));
    return true;
  }

  void add(ResultRow row) {
    if (!rows_.empty() && identity_of(rows_.front().matrix) != identity_of(row.matrix))
      ledger_.print_matrix(rows_);
    ledger_.progress().done();
    ledger_.add(std::move(row), rows_);
  }

  // Lets the ranks end after their current samples, and kills those that do not.
  void stop() {
    constexpr double kPatience_s = 10;
    const double deadline = steady_seconds() + kPatience_s;
    for (const auto& child : children_) child->interrupt();
    for (std::size_t rank = 0; rank < children_.size(); ++rank) {
      const auto keep = [&](const std::string& line) {
        if (rank == 0) take(line);
      };
      while (children_[rank]->pump(keep) && steady_seconds() < deadline) pause_briefly();
      children_[rank]->kill();
      children_[rank]->pump(keep);
    }
    ledger_.print_matrix(rows_);
  }

  const RunOptions& options_;
  Ledger& ledger_;
  Cases cases_;                                   // with what has been measured
  std::vector<std::unique_ptr<Child>> children_;  // by rank
  std::string nonce_;                             // of rank 0, whose rows count
  std::optional<ResultRow> begun_;                // the case that the ranks are at
  std::vector<ResultRow> rows_;                   // of the current matrix
};

}  // namespace

void run_ranks(const RunOptions& options, Ledger& ledger) { SplitRanks(options, ledger).run(); }

}  // namespace spmmbench
