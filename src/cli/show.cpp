#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>

#include "cli/commands.hpp"
#include "cli/help.hpp"
#include "cli/lists.hpp"
#include "cli/table_options.hpp"
#include "core/numbered.hpp"
#include "io/output.hpp"
#include "report/answer.hpp"
#include "report/csv.hpp"
#include "report/fields.hpp"
#include "report/identity.hpp"
#include "report/json.hpp"
#include "report/recorded.hpp"
#include "report/table_columns.hpp"
#include "report/terminal.hpp"
#include "spmmbench/precision.hpp"
#include "spmmbench/printable.hpp"
#include "spmmbench/spec.hpp"
#include "spmmbench/suggest.hpp"

namespace spmmbench {
namespace {

struct ShowArguments {
  std::vector<std::string> paths, kernels, exclude, matrices;
  std::string ns, precisions, reorder, statuses, format = "table";
  TableOptions table;
  bool legend = false;
};

// The filters, as `run` has them; an empty list lets everything through.
struct Filter {
  std::vector<Spec> kernels;
  std::vector<std::string> exclude, matrices;
  std::set<std::int64_t> ns;
  std::set<std::string> precisions, reorderings, statuses;
};

void require_status(const std::string& text) {
  for (const Status status : kStatuses)
    if (text == to_string(status)) return;
  throw Error(fmt::format("--status {}: expected {}", text, kStatusNames));
}

std::set<std::string> set_of(const std::string& list, std::string_view flag) {
  if (list.empty()) return {};
  const std::vector<std::string> items = split_list(list, flag);
  return {items.begin(), items.end()};
}

Filter filter_of(const ShowArguments& in) {
  Filter filter;
  for (const std::string& kernel : in.kernels) filter.kernels.push_back(Spec::parse(kernel));
  filter.exclude = in.exclude;
  filter.matrices = in.matrices;
  if (!in.ns.empty())
    for (const std::int64_t n : parse_range_list(in.ns, "-n")) filter.ns.insert(n);
  filter.precisions = set_of(in.precisions, "--precision");
  for (const std::string& precision : filter.precisions) parse_precision(precision);
  filter.reorderings = set_of(in.reorder, "--reorder");
  filter.statuses = set_of(in.statuses, "--status");
  for (const std::string& status : filter.statuses) require_status(status);
  return filter;
}

// A pattern's options must be among the row's.
bool matches(const Spec& pattern, const Spec& kernel) {
  const auto& has = kernel.options.values();
  return glob_match(pattern.name, kernel.name) &&
         std::all_of(pattern.options.values().begin(), pattern.options.values().end(),
                     [&](const auto& option) {
                       const auto it = has.find(option.first);
                       return it != has.end() && it->second == option.second;
                     });
}

bool any_matches(const std::vector<std::string>& globs, const std::string& name) {
  return std::any_of(globs.begin(), globs.end(),
                     [&](const std::string& glob) { return glob_match(glob, name); });
}

template <class Set, class Value>
bool lets_through(const Set& wanted, const Value& value) {
  return wanted.empty() || wanted.contains(value);
}

// Whether the row is of a matrix, an N and a precision that are asked for.
bool of_problem(const Filter& filter, const ResultRow& row) {
  return (filter.matrices.empty() || any_matches(filter.matrices, row.matrix.name)) &&
         lets_through(filter.ns, row.n) && lets_through(filter.precisions, row.precision);
}

bool is_glob(const std::string& pattern) { return pattern.find_first_of("*?") != pattern.npos; }

// A name that matches nothing in any of the documents is mistyped. A glob may match nothing.
void require_matches(const Filter& filter, const std::vector<ResultDocument>& documents) {
  std::set<std::string> kernels, matrices;
  std::vector<Spec> specs;
  for (const ResultDocument& document : documents)
    for (const ResultRow& row : document.rows) {
      matrices.insert(row.matrix.name);
      if (kernels.insert(row.kernel).second) specs.push_back(Spec::parse(row.kernel));
    }
  const auto fail = [](std::string_view flag, const std::string& pattern, std::string_view what,
                       const std::set<std::string>& known) {
    throw Error(fmt::format("{} {}: no {} of these runs matches{}", flag, pattern, what,
                            did_you_mean(pattern, {known.begin(), known.end()})));
  };
  for (const std::string& pattern : filter.matrices)
    if (!is_glob(pattern) &&
        std::ranges::none_of(matrices, [&](auto& name) { return glob_match(pattern, name); }))
      fail("--matrix", pattern, "matrix", matrices);
  for (const Spec& pattern : filter.kernels)
    if (!is_glob(pattern.name) &&
        std::ranges::none_of(specs, [&](auto& kernel) { return matches(pattern, kernel); }))
      fail("--kernel", pattern.to_string(), "kernel", kernels);
}

bool shown(const Filter& filter, const ResultRow& row) {
  const Spec kernel = Spec::parse(row.kernel);
  const bool kernel_wanted =
      filter.kernels.empty() ||
      std::any_of(filter.kernels.begin(), filter.kernels.end(),
                  [&](const Spec& pattern) { return matches(pattern, kernel); });
  return of_problem(filter, row) && kernel_wanted && !any_matches(filter.exclude, kernel.name) &&
         lets_through(filter.reorderings, Spec::parse(row.reorder).name) &&
         lets_through(filter.statuses, std::string(to_string(row.status)));
}

// Keeps the problems that have a row to show, with all their rows: stars and answers are among
// these.
void keep_problems(std::vector<ResultRow>& rows, const Filter& filter) {
  const auto problem_of = [](const ResultRow& row) {
    return std::tuple(identity_of(row.matrix), row.n, row.layout);
  };
  std::set<std::tuple<std::string, std::int64_t, std::string>> problems;
  for (const ResultRow& row : rows)
    if (shown(filter, row)) problems.insert(problem_of(row));
  std::erase_if(rows, [&](const ResultRow& row) {
    return !of_problem(filter, row) || !problems.contains(problem_of(row));
  });
}

// The rows of each matrix together, in the order in which the matrices were first measured.
std::vector<std::vector<ResultRow>> by_matrix(std::vector<ResultRow> rows) {
  std::vector<std::vector<ResultRow>> matrices;
  std::map<std::string, std::size_t> index_of;
  for (ResultRow& row : rows) {
    const auto [it, inserted] = index_of.try_emplace(identity_of(row.matrix), matrices.size());
    if (inserted) matrices.emplace_back();
    matrices[it->second].push_back(std::move(row));
  }
  return matrices;
}

// Enough of it to find the revision, and whether the tree had changes that were not committed.
std::string short_revision(const std::string& revision) {
  constexpr std::size_t kDigits = 12;
  const std::size_t end = std::min(revision.find('-'), revision.size());
  return revision.substr(0, std::min(kDigits, end)) + revision.substr(end);
}

std::string header_of(const std::string& path, const ResultDocument& document) {
  const RunContext& context = document.context;
  std::string text = fmt::format("{}: {}, {}, revision {}", path, context.device.name,
                                 context.started_utc, short_revision(context.git_revision));
  for (const auto& [key, value] : context.tags) text += fmt::format(", {}={}", key, value);
  if (!document.complete)
    text += fmt::format("; not complete, {} so far", numbered(document.rows.size(), "case"));
  return to_printable(text);
}

void print_tables(const std::string& path, ResultDocument document, const Filter& filter,
                  TableStyle style, bool markdown) {
  style.calls = document.context.calls;
  const std::string header = header_of(path, document);
  print("{}\n\n",
        markdown ? fmt::format("## {}", markdown_text(header)) : wrap(header, style.width, 4));
  const std::size_t cases = document.rows.size();
  keep_problems(document.rows, filter);
  style.shows = [&](const ResultRow& row) { return shown(filter, row); };
  if (document.rows.empty())
    print("none of the {} of this run {}\n", numbered(cases, "case"),
          filter.statuses.empty() ? std::string("is asked for")
                                  : fmt::format("is {}", fmt::join(filter.statuses, " or ")));
  Summary summary;
  for (const std::vector<ResultRow>& rows : by_matrix(std::move(document.rows))) {
    print("{}", markdown ? format_markdown(rows, style) : format_table(rows, style));
    summary.add(rows, style);
  }
  if (!markdown) print("{}", summary.format(style));
}

// Rows are compared with those that the document has, as whoever reads it will do.
nlohmann::ordered_json to_json(ResultDocument document, const Filter& filter) {
  keep_problems(document.rows, filter);
  std::erase_if(document.rows, [&](const ResultRow& row) { return !shown(filter, row); });
  compare_rows(document);
  auto rows = nlohmann::ordered_json::array(), of_them = rows;
  Answers answers;
  for (const ResultRow& row : document.rows) {
    rows.push_back(to_json(row));
    answers.add(row);
  }
  for (const Answer& answer : answers.all()) of_them.push_back(to_json(answer));
  return {{"schema_version", kSchemaVersion},
          {"context", to_json(document.context)},
          {"complete", document.complete},
          {"rows", std::move(rows)},
          {"answers", std::move(of_them)}};
}

void print_csv(const std::vector<ResultDocument>& documents, const Filter& filter) {
  const bool several = documents.size() > 1;
  print("{}{}\n", several ? "run," : "", csv_header());
  for (std::size_t run = 0; run < documents.size(); ++run)
    for (const ResultRow& row : documents[run].rows)
      if (shown(filter, row))
        print("{}{}\n", several ? fmt::format("{},", run + 1) : std::string(), csv_line(row));
}

void show(const ShowArguments& in) {
  if (in.legend) {
    if (!in.paths.empty()) throw Error("--legend: expected no RUN, since it shows none");
    const bool markdown = in.format == "markdown";
    return print("{}", format_legend(markdown, markdown ? 0 : resolve(in.table).width));
  }
  if (in.paths.empty()) throw CLI::RequiredError("RUN");
  const Filter filter = filter_of(in);
  const TableStyle style = resolve(in.table);
  std::vector<ResultDocument> documents;
  std::vector<std::string> damaged;
  for (const std::string& path : in.paths) {
    documents.push_back(read_recorded(path, in.table.calls, &damaged));
    for (const ResultRow& row : documents.back().rows) require_names(path, row);
  }
  for (const std::string& line : damaged) say("spmmbench: {}\n", line);
  require_matches(filter, documents);
  if (in.format == "csv") return print_csv(documents, filter);
  if (in.format == "json") {
    auto all = nlohmann::ordered_json::array();
    for (ResultDocument& document : documents) all.push_back(to_json(std::move(document), filter));
    print("{}\n", dump_line(all.size() == 1 ? all.front() : all));
    return;
  }
  for (std::size_t i = 0; i < documents.size(); ++i)
    print_tables(in.paths[i], std::move(documents[i]), filter, style, in.format == "markdown");
}

}  // namespace

void add_show(CLI::App& app, ExitCode&) {
  auto in = std::make_shared<ShowArguments>();
  CLI::App* command = app.add_subcommand(
      "show",
      "Print the table of recorded runs, and of one that is still at work (OUT.json.journal)");
  command->add_option("RUN", in->paths, "Result document or journal; not needed with --legend");
  add_list_option(*command, "-m,--matrix", in->matrices, "Matrices by NAME or glob; default: all");
  command->add_option("-n,--n", in->ns, "Columns of B: 128 | 32,64 | 32:512:x2; default: all")
      ->type_name(kListType);
  add_list_option(*command, "-k,--kernel", in->kernels,
                  "Kernels by NAME or glob, with the options that they must have");
  add_list_option(*command, "-x,--exclude", in->exclude, "Leave out kernels by glob");
  command
      ->add_option("--precision", in->precisions, names_of(kPrecisions) + " or several: fp16,tf32")
      ->type_name(kListType);
  command->add_option("--reorder", in->reorder, "Row orderings: none,rsh")->type_name(kListType);
  command->add_option("--status", in->statuses, "ok, wrong, skipped, failed or timeout, or several")
      ->type_name(kListType);
  command
      ->add_option(
          "--format", in->format,
          "table, markdown, csv, or json: a result document of the rows shown, compared with "
          "one another; of several RUNs a list, in csv a column `run`")
      ->check(one_of({"table", "markdown", "csv", "json"}))
      ->capture_default_str();
  add_table_options(*command, in->table);
  command->add_flag("--legend", in->legend, "Say what the columns of the table mean, and end");
  command->callback([in] { show(*in); });
}

}  // namespace spmmbench
