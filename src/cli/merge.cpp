#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <memory>

#include "cli/case_options.hpp"
#include "cli/commands.hpp"
#include "cli/lists.hpp"
#include "core/numbered.hpp"
#include "io/output.hpp"
#include "plugin/plugin.hpp"
#include "process/interrupt.hpp"
#include "report/comparison.hpp"
#include "report/identity.hpp"
#include "report/journal.hpp"
#include "report/json.hpp"
#include "report/machine_and_build.hpp"
#include "report/recorded.hpp"
#include "run/plan.hpp"
#include "spmmbench/printable.hpp"

namespace spmmbench {
namespace {

struct MergeArguments {
  std::string out, csv;
  std::vector<std::string> in;
  bool force = false, overwrite = false;
};

// How much a row says of its case: one that was measured (right or wrong) says more than one that
// failed, and that more than one that was skipped. Of two rows that say as much the later counts.
int weight(Status status) {
  if (status == Status::ok || status == Status::wrong) return 2;
  return status == Status::skipped ? 0 : 1;
}

// "a" and "b" to "a, b"; a name that is there already is not added again.
void join_distinct(std::string& all, const std::string& one) {
  const auto listed = [](const std::string& names) { return fmt::format(", {}, ", names); };
  if (one.empty() || listed(all).find(listed(one)) != std::string::npos) return;
  all += (all.empty() ? "" : ", ") + one;
}

// Joins documents, each of which is read once, so that pipes can be joined too.
class Merge {
 public:
  explicit Merge(const MergeArguments& in) : in_(in), journal_({in.out, in.csv}, in.overwrite) {}

  void read(const std::string& path) {
    const std::size_t index = contexts_.size();
    const ResultDocument document = scan_document(path, [&](const ResultRow& row) {
      poll_interrupt();
      require_names(path, row);
      require_same_matrix(path, row);
      add(row, index);
    });
    const RunContext& context = document.context;
    // In a joined document `shards` lists the complete ones.
    const bool has_shards = !context.shards.empty() && (document.complete || is_merged(context));
    if (has_shards) shards_.insert(shards_.end(), context.shards.begin(), context.shards.end());
    all_are_shards_ &= !context.shards.empty();
    complete_ &= document.complete || has_shards;
    if (!document.complete) say("spmmbench: {} is incomplete\n", path);
    contexts_.push_back(context);
    if (index == 0) joined_ = document.context;
    else join(path, document.context);
  }

  ExitCode finish() {
    require_one_machine();
    require_rows_of_replaced();
    const std::string missing = all_are_shards_ ? missing_shards(shards_) : std::string();
    joined_.shards.clear();
    if (!missing.empty()) {
      joined_.shards = shards_;
      complete_ = false;
    }
    joined_.argv = process_arguments();
    journal_.set_context(joined_);
    const Ending ending = complete_ ? Ending::complete : Ending::partly_read;
    if (journal_.finish(joined_.clocks_after, ending) != complete_)
      throw Error(fmt::format("{}", fmt::join(journal_.damaged(), "; ")));
    if (righted_ > 0)
      say("spmmbench: given up for later ones that are right: {}\n",
          numbered(righted_, "wrong row"));
    const std::string summary =
        fmt::format("{}: {} of {}, {} given up for others\n", to_printable(in_.out),
                    numbered(rows_.size(), "case"), numbered(in_.in.size(), "document"),
                    numbered(repeated_, "row"));
    if (is_stream(in_.out) || is_standard_output(in_.csv)) write_status(summary);
    else write_output(summary);
    if (missing.empty()) return ExitCode::ok;
    say("spmmbench: {}: shards are missing or not complete: {}\n", to_printable(in_.out), missing);
    return ExitCode::some_failed;
  }

 private:
  void require_same_matrix(const std::string& path, const ResultRow& row) {
    const auto it = sha256_of_.emplace(row.matrix.source, row.matrix.sha256).first;
    if (it->second != row.matrix.sha256)
      throw Error(fmt::format("{}: {} is another matrix than in the documents before", path,
                              row.matrix.source),
                  ExitCode::not_comparable);
  }

  void add(const ResultRow& row, std::size_t document) {
    const std::optional<Recorded> there = journal_.find(row);
    repeated_ += there.has_value();
    if (there && weight(row.status) < weight(there->status)) return;
    righted_ += there && there->status == Status::wrong && row.status == Status::ok;
    journal_.append(row);
    rows_[case_key(row)] = {identity_of(row.matrix), row.matrix.source, document};
  }

  // The joined context is the first one's, over the whole time, with every host, device, library,
  // build and tag.
  void join(const std::string& path, const RunContext& own) {
    const std::string other = difference(contexts_.front(), own, true);
    if (!other.empty() && !in_.force)
      throw Error(fmt::format("{} and {}: {}", in_.in.front(), path, other),
                  ExitCode::not_comparable);
    joined_.started_utc = std::min(joined_.started_utc, own.started_utc);
    joined_.clocks_after = own.clocks_after;
    using C = RunContext;
    for (const auto field :
         {&C::hostname, &C::tool_version, &C::git_revision, &C::build_flags, &C::build_id})
      join_distinct(joined_.*field, own.*field);
    using D = DeviceInfo;
    for (const auto field : {&D::name, &D::uuid, &D::driver_version, &D::runtime_version,
                             &D::cusparse_version, &D::cublas_version})
      join_distinct(joined_.device.*field, own.device.*field);
    joined_.protocol.insert(own.protocol.begin(), own.protocol.end());
    if (own.calls != joined_.calls)
      say("spmmbench: {} counts preparation for {}, {} for {}: the latter are taken\n", path,
          numbered(own.calls, "call"), in_.in.front(), joined_.calls);
    for (const auto& [key, value] : own.tags)
      if (const auto [it, added] = joined_.tags.emplace(key, value); !added)
        join_distinct(it->second, value);
  }

  // The rows that count of each matrix must be of one build on one machine, as speed-ups are
  // ratios between them.
  void require_one_machine() const {
    std::map<std::string, std::size_t> first_of;  // the document of a matrix, by its identity
    for (const auto& [key, row] : rows_) {
      const std::size_t first = first_of.emplace(row.matrix, row.document).first->second;
      std::vector<Difference> other =
          differences_of_machine_and_build(contexts_[first], contexts_[row.document]);
      for (const auto& [name, hash] : contexts_[first].protocol)
        if (const auto it = contexts_[row.document].protocol.find(name);
            name.starts_with(kPluginInProtocol) && it != contexts_[row.document].protocol.end() &&
            it->second != hash)
          other.push_back({name, hash, it->second});
      if (other.empty()) continue;
      const std::string message =
          fmt::format("{} and {}: both have rows of {}, whose speed-ups would be between them: {}",
                      in_.in[first], in_.in[row.document], row.source, other[0].text());
      if (!in_.force) throw Error(message, ExitCode::not_comparable);
      return say("spmmbench: {}\n", message);
    }
  }

  // The file that OUT replaces may be a shard, where OUT was forgotten, or no document at all.
  void require_rows_of_replaced() const {
    const bool is_input = std::any_of(in_.in.begin(), in_.in.end(), [this](const auto& path) {
      return !shared_name(in_.out, path).empty();
    });
    if (in_.overwrite || is_input || is_stream(in_.out) || !has_content(in_.out)) return;
    std::size_t lost = 0;
    try {
      scan_document(in_.out, [&](const ResultRow& row) { lost += !rows_.contains(case_key(row)); });
    } catch (const Error&) {
      throw Error(
          fmt::format("{}: is there and is no result document: expected another OUT, or "
                      "--overwrite",
                      in_.out));
    }
    if (lost > 0)
      throw Error(
          fmt::format("{}: has {} that no IN has: expected it among IN, another OUT, or "
                      "--overwrite",
                      in_.out, numbered(lost, "case")));
  }

  // A row that counts.
  struct Row {
    std::string matrix, source;  // its identity, and where it was read
    std::size_t document = 0;
  };

  const MergeArguments& in_;
  Journal journal_;
  RunContext joined_;
  std::vector<RunContext> contexts_;              // of every document
  std::map<std::string, Row> rows_;               // by case_key
  std::map<std::string, std::string> sha256_of_;  // every matrix, by its source
  std::vector<std::string> shards_;               // that are complete
  bool complete_ = true, all_are_shards_ = true;
  std::size_t repeated_ = 0, righted_ = 0;
};

ExitCode merge(const MergeArguments& in) try {
  if (is_standard_output(in.out) && is_standard_output(in.csv))
    throw Error("standard output: expected one of OUT and --csv");
  require_not_an_input(in.csv, in.in);  // OUT may be an input: it is replaced after all were read
  for (const std::string& path : in.in)
    if (shared_name(in.out, path) != in.out) require_not_an_input(in.out, {path});
  install_interrupt_handler(false);
  Merge merged(in);
  for (const std::string& path : in.in) merged.read(path);
  return merged.finish();
} catch (const Interrupted&) {
  return ExitCode::interrupted;
}

}  // namespace

void add_merge(CLI::App& app, ExitCode& exit_code) {
  auto in = std::make_shared<MergeArguments>();
  CLI::App* command = app.add_subcommand(
      "merge",
      "Join the result documents of shards; of rows of one case it keeps the last that was "
      "measured, or else the last that failed");
  add_output_option(*command, "OUT", in->out, "Where the joined document goes")->required();
  command->add_option("IN", in->in, "Result documents")->required();
  add_output_option(*command, "--csv", in->csv, "Write the rows as CSV, too");
  command->add_flag("--force", in->force,
                    "Join runs of different device, seed or protocol, and rows of one matrix from "
                    "different machines or builds");
  command->add_flag("--overwrite", in->overwrite,
                    "Replace OUT whatever it has, and discard what an unfinished run left in its "
                    "journal");
  command->callback([in, &exit_code] { exit_code = merge(*in); });
}

}  // namespace spmmbench
