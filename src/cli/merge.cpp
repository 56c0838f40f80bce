#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <memory>

#include "cli/case_options.hpp"
#include "cli/commands.hpp"
#include "cli/lists.hpp"
#include "io/output.hpp"
#include "report/comparison.hpp"
#include "report/journal.hpp"
#include "report/json.hpp"
#include "spmmbench/printable.hpp"

namespace spmmbench {
namespace {

struct MergeArguments {
  std::string out, csv;
  std::vector<std::string> in;
  bool force = false, overwrite = false;
};

bool failed(Status status) { return status == Status::failed || status == Status::timeout; }

// "a" and "b" to "a, b"; a name that is there already is not added again.
void join_distinct(std::string& all, const std::string& one) {
  const auto listed = [](const std::string& names) { return fmt::format(", {}, ", names); };
  if (one.empty() || listed(all).find(listed(one)) != std::string::npos) return;
  all += (all.empty() ? "" : ", ") + one;
}

struct Header {
  RunContext context;
  bool complete = true;
};

// The context of all the documents together: the first one's, over the whole time, with every host,
// device, revision and tag.
Header joined_header(const MergeArguments& in) {
  Header joined;
  std::map<std::string, std::string> sha256_of;  // every matrix, by its source
  bool first = true;
  for (const std::string& path : in.in) {
    const ResultDocument document = scan_document(path, [&](const ResultRow& row) {
      const auto it = sha256_of.emplace(row.matrix.source, row.matrix.sha256).first;
      if (it->second != row.matrix.sha256)
        throw Error(fmt::format("{}: {} is another matrix than in the documents before", path,
                                row.matrix.source),
                    ExitCode::not_comparable);
    });
    const RunContext& own = document.context;
    joined.complete &= document.complete;
    if (!document.complete) say("spmmbench: {} is incomplete\n", path);
    if (first) {
      joined.context = own;
      first = false;
      continue;
    }
    RunContext& context = joined.context;
    const std::string other = difference(context, own);
    if (!other.empty() && !in.force)
      throw Error(fmt::format("{} and {}: {}", in.in.front(), path, other),
                  ExitCode::not_comparable);
    context.started_utc = std::min(context.started_utc, own.started_utc);
    context.clocks_after = own.clocks_after;
    join_distinct(context.hostname, own.hostname);
    join_distinct(context.device.uuid, own.device.uuid);
    join_distinct(context.git_revision, own.git_revision);
    for (const auto& [key, value] : own.tags)
      if (const auto [it, added] = context.tags.emplace(key, value); !added)
        join_distinct(it->second, value);
  }
  joined.context.argv = process_arguments();
  return joined;
}

void merge(const MergeArguments& in) {
  const Header header = joined_header(in);
  require_not_an_input(in.csv, in.in);  // OUT may be an input: it is replaced after all were read
  Journal journal({in.out, in.csv}, header.context, in.overwrite ? Earlier::give_up : Earlier::keep,
                  /*durable=*/false);
  std::size_t rows = 0, repeated = 0;
  for (const std::string& path : in.in)
    scan_document(path, [&](const ResultRow& row) {
      const std::optional<Recorded> there = journal.find(case_key(row));
      repeated += there.has_value();
      rows += !there.has_value();
      if (!there || failed(there->status) || !failed(row.status)) journal.append(row);
    });
  if (journal.finish(header.context.clocks_after, header.complete) != header.complete)
    throw Error(fmt::format("{}", fmt::join(journal.damaged(), "; ")));
  const std::string summary =
      fmt::format("{}: {} cases of {} documents, {} rows given up for later ones\n",
                  to_printable(in.out), rows, in.in.size(), repeated);
  if (is_stream(in.out)) write_status(summary);
  else write_output(summary);
}

}  // namespace

void add_merge(CLI::App& app, ExitCode&) {
  auto in = std::make_shared<MergeArguments>();
  CLI::App* command = app.add_subcommand(
      "merge",
      "Join the result documents of shards; of a repeated case the last row that did not "
      "fail counts");
  add_output_option(*command, "OUT", in->out, "Where the joined document goes")->required();
  command->add_option("IN", in->in, "Result documents")->required();
  add_output_option(*command, "--csv", in->csv, "Write the rows as CSV, too");
  command->add_flag("--force", in->force, "Join runs of different device, seed or protocol");
  command->add_flag("--overwrite", in->overwrite,
                    "Give up what a run that did not end has left in OUT's journal");
  command->callback([in] { merge(*in); });
}

}  // namespace spmmbench
