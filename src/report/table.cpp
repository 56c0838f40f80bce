#include "report/table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "core/numbered.hpp"
#include "report/answer.hpp"
#include "report/identity.hpp"
#include "report/table_columns.hpp"
#include "report/terminal.hpp"
#include "spmmbench/printable.hpp"

namespace spmmbench {
namespace {

constexpr std::size_t kIndent = 2;           // the winner's mark and a blank
constexpr std::size_t kContinuedIndent = 6;  // of a broken line
constexpr std::size_t kNarrowestName = 24;   // a name is cut to this before a column is left out

using RowList = std::vector<const ResultRow*>;

const char* default_header(Reference reference) {
  return reference == Reference::eigen ? "x Eig32" : "x dflt";
}
const char* best_header(Reference reference) {
  return reference == Reference::eigen ? "x Eigen" : "x best";
}

// The rows of one matrix, N, layout and operation.
struct TableGroup {
  RowList all, shown;
};

bool ranked(const ResultRow& row) { return cost_of(row).has_value(); }

// What ranked rows are ranked by.
double rank_us(const ResultRow& row) { return row.in_all_us.value_or(row.hot->median_us); }

// Whether `auto` picked a kernel that has a ranked row of its own.
bool repeats_another(const ResultRow& row, const RowList& rows) {
  return row.pick && std::any_of(rows.begin(), rows.end(), [&](const ResultRow* other) {
           return other->kernel == row.pick->kernel && other->reorder == row.reorder &&
                  types_of(*other) == types_of(row) && ranked(*other);
         });
}

// The best correct row of each precision and type of C, where it can be told.
std::set<const ResultRow*> winners(const RowList& rows) {
  std::map<std::string, const ResultRow*> best;
  for (const ResultRow* row : rows) {
    if (!ranked(*row) || repeats_another(*row, rows)) continue;
    const ResultRow*& winner = best[types_of(*row)];
    if (winner == nullptr || rank_us(*row) < rank_us(*winner)) winner = row;
  }
  std::set<const ResultRow*> all;
  for (const auto& [types, row] : best)
    if (noise_of(*row) <= kTooNoisy) all.insert(row);
  return all;
}

// Those that have a row to show.
std::vector<TableGroup> groups_of(std::span<const ResultRow> rows, const TableStyle& style) {
  std::map<std::tuple<std::int64_t, std::string>, TableGroup> groups;
  for (const ResultRow& row : rows) {
    TableGroup& group = groups[{row.n, row.layout + operation_of(row)}];
    group.all.push_back(&row);
    if (!style.shows || style.shows(row)) group.shown.push_back(&row);
  }
  std::vector<TableGroup> ordered;
  ordered.reserve(groups.size());
  for (auto& [key, group] : groups)
    if (!group.shown.empty()) ordered.push_back(std::move(group));
  return ordered;
}

std::string title_of(const ResultRow& row, std::int64_t calls) {
  const std::string operation = operation_of(row);
  return fmt::format("{}: {} x {}, {}, N = {}{}{}{}{}", printable_message(row.matrix.name),
                     row.matrix.rows, row.matrix.cols, numbered(row.matrix.nnz, "nonzero"), row.n,
                     row.layout == "row" ? "" : ", column-major", operation.empty() ? "" : ", ",
                     operation,
                     calls == 0 ? "" : ", preparation counted for " + numbered(calls, "call"));
}

// The rows that the break-even of `rows` is against; empty where no row has one.
std::string pays_against(const RowList& rows) {
  std::map<std::string, std::string> first;  // types -> the row that is done first
  bool ordered = false;
  for (const ResultRow* row : rows) {
    if (!row->break_even_against) continue;
    const bool itself = *row->break_even_against == row->kernel;
    if (!itself) first[types_of(*row)] = *row->break_even_against;
    ordered |= itself;
  }
  std::string text;
  for (const auto& [types, label] : first)
    text += fmt::format("{}{}{}", text.empty() ? "" : ", ", label,
                        first.size() > 1 ? fmt::format(" ({})", types) : "");
  if (!ordered) return text;
  return text.empty() ? "the same kernel without the order"
                      : text + " or, of a row with an order, the same kernel without it";
}

// The rows that the best speed-up of `rows` is over; empty where no row has one.
std::string best_over(const RowList& rows) {
  std::map<std::string, std::string> best;  // types -> kernel
  for (const ResultRow* row : rows)
    if (row->speedup.best_is) best[types_of(*row)] = *row->speedup.best_is;
  std::string text;
  for (const auto& [types, kernel] : best)
    text += fmt::format("{}{}{}", text.empty() ? "" : ", ", kernel,
                        best.size() > 1 ? fmt::format(" ({})", types) : "");
  return text;
}

// Below what a hot time is called wrong: one time, or the least and the most of them where types of
// C differ or, on a CPU, the rates measured for each case. Empty where no row has one.
std::string least_times(const RowList& rows) {
  std::set<double> times_us;
  for (const ResultRow* row : rows)
    if (const auto it = row->metrics.find("least_us"); it != row->metrics.end())
      times_us.insert(it->second);
  if (times_us.empty()) return "";
  const std::string least = fmt::format("{:.3f}", *times_us.begin());
  const std::string most = fmt::format("{:.3f}", *times_us.rbegin());
  return fmt::format("least time: {} us, below which a hot time is wrong",
                     least == most ? least : least + " to " + most);
}

// Lines below the rows of a group: the answer, and with --why the least time and what `auto`
// picked.
std::vector<std::string> conclusions(const TableGroup& group, const TableStyle& style) {
  std::vector<std::string> lines;
  Answers answers;
  std::set<std::string> types;
  for (const ResultRow* row : group.all) {
    answers.add(*row);
    types.insert(types_of(*row));
  }
  for (const Answer& answer : answers.all())
    lines.push_back(
        fmt::format("answer{} (fastest, preparation included): {}",
                    types.size() > 1 ? " in " + types_of(answer.precision, answer.c_type) : "",
                    to_string(answer, style.calls)));
  Reference reference = Reference::none;
  for (const ResultRow* row : group.shown) reference = std::max(reference, reference_of(*row));
  if (const std::string over = best_over(group.shown); !over.empty())
    lines.push_back(fmt::format("{}: speed-up over {}", best_header(reference), over));
  if (const std::string against = pays_against(group.shown); !against.empty())
    lines.push_back("pays at: calls until it takes less time in all than " + against);
  if (const std::string least = least_times(group.shown); style.why && !least.empty())
    lines.push_back(least);
  for (const ResultRow* row : group.shown) {
    if (!style.why || !row->pick) continue;
    const Pick& pick = *row->pick;
    lines.push_back(fmt::format(
        "{} in {} {}picked {}: {}{}{}", label_of(*row), types_of(*row),
        pick.first.empty() ? "" : fmt::format("begins with {} and, settled, ", pick.first),
        pick.kernel, pick.why, pick.measured() ? "; measured " : "", measured_text(pick)));
  }
  for (std::string& line : lines) line = printable_message(line);
  return lines;
}

// The rows that were measured, in the order shown, and the others after them.
RowList sorted(RowList rows, const std::string& sort) {
  const bool descending = sort.ends_with(":desc");
  const std::string key = descending ? sort.substr(0, sort.size() - 5) : sort;
  const TableColumn column = table_column(sort.empty() ? "hot" : key);
  std::stable_sort(rows.begin(), rows.end(), [&](const ResultRow* a, const ResultRow* b) {
    if (key.empty() && ranked(*a) != ranked(*b)) return ranked(*a);
    if (key.empty() && ranked(*a)) return rank_us(*a) < rank_us(*b);
    const auto x = column.number(*a), y = column.number(*b);
    if (x.has_value() != y.has_value()) return x.has_value();  // absent values come last
    if (descending) std::swap(a, b);
    if (x) return column.number(*a) < column.number(*b);
    return column.text(*a) < column.text(*b);
  });
  return rows;
}

// The kernels that were skipped: with --why, or where it is one, by reason; else how many. Each
// counts once, though it may be skipped in several precisions and orders.
std::vector<std::string> skipped_of(const RowList& rows, bool why) {
  std::map<std::string, std::string> names_of;  // by reason
  std::set<std::string> kernels;
  std::set<std::pair<std::string, std::string>> seen;  // reason, kernel
  for (const ResultRow* row : rows) {
    if (row->status != Status::skipped) continue;
    if (!seen.emplace(row->reason, row->kernel).second) continue;
    kernels.insert(row->kernel);
    std::string& names = names_of[printable_message(row->reason)];
    names += fmt::format("{}{}", names.empty() ? "" : ", ", printable_message(row->kernel));
  }
  if (kernels.size() > 1 && !why)
    return {fmt::format("skipped: {} kernels (--why: which, and why)", kernels.size())};
  std::vector<std::string> lines;
  lines.reserve(names_of.size());
  for (const auto& [reason, names] : names_of)
    lines.push_back(fmt::format("skipped ({}): {}", reason, names));
  return lines;
}

// One column and how wide it is drawn.
struct Drawn {
  TableColumn column;
  std::size_t width = 0;
};

std::string line_of(const std::vector<Drawn>& columns, const auto& text) {
  std::string line;
  for (const Drawn& drawn : columns) {
    const std::string cell = clip(text(drawn.column), drawn.width);
    if (!line.empty()) line += ' ';
    line += drawn.column.left_aligned ? pad_right(cell, drawn.width) : pad_left(cell, drawn.width);
  }
  return line.substr(0, line.find_last_not_of(' ') + 1);
}

std::size_t total_width(const std::vector<Drawn>& columns) {
  std::size_t total = kIndent - 1;
  for (const Drawn& drawn : columns) total += 1 + drawn.width;
  return total;
}

// Leaves out the least important columns until the rest fit, then gives the names what is left.
void fit(std::vector<Drawn>& columns, std::size_t width, bool may_leave_out) {
  const auto name = std::find_if(columns.begin(), columns.end(),
                                 [](const Drawn& d) { return d.column.key == "kernel"; });
  if (name == columns.end()) return;
  const std::size_t whole_name = std::exchange(name->width, std::min(name->width, kNarrowestName));
  const auto& importance = columns_by_importance();
  for (auto key = importance.rbegin(); may_leave_out && *key != "hot"; ++key) {
    if (total_width(columns) <= width) break;
    std::erase_if(columns, [&](const Drawn& drawn) { return drawn.column.key == *key; });
  }
  const std::size_t used = total_width(columns);
  Drawn& kept = *std::find_if(columns.begin(), columns.end(),
                              [](const Drawn& d) { return d.column.key == "kernel"; });
  if (used < width) kept.width = std::min(whole_name, kept.width + width - used);
}

// Rows over another reference than that of the table have no speed-up in it.
void name_reference(TableColumn& column, Reference reference) {
  if (column.key != "x_dflt" && column.key != "x_best") return;
  column.header = column.key == "x_dflt" ? default_header(reference) : best_header(reference);
  column.text = [text = column.text, reference](const ResultRow& row) {
    return reference_of(row) == reference ? text(row) : std::string("-");
  };
}

std::vector<Drawn> columns_for(const std::vector<TableGroup>& groups, const TableStyle& style) {
  RowList rows;
  for (const TableGroup& group : groups)
    rows.insert(rows.end(), group.shown.begin(), group.shown.end());
  std::vector<Drawn> columns;
  if (style.columns.empty())
    for (const TableColumn& column : default_columns()) columns.push_back({column});
  for (const std::string& key : style.columns) columns.push_back({table_column(key)});
  Reference reference = Reference::none;
  for (const ResultRow* row : rows) reference = std::max(reference, reference_of(*row));
  for (Drawn& drawn : columns) {
    name_reference(drawn.column, reference);
    drawn.width = display_width(drawn.column.header);
    for (const ResultRow* row : rows) {
      const bool shown = row->status == Status::ok || drawn.column.left_aligned;
      if (shown && row->status != Status::skipped)
        drawn.width = std::max(drawn.width, display_width(drawn.column.text(*row)));
    }
  }
  std::erase_if(columns, [&](const Drawn& drawn) {
    return drawn.column.rare && style.columns.empty() &&
           std::all_of(rows.begin(), rows.end(),
                       [&](const ResultRow* row) { return drawn.column.text(*row) == "-"; });
  });
  if (style.width > 0) fit(columns, style.width, style.columns.empty());
  return columns;
}

std::string block(const TableGroup& group, const std::vector<Drawn>& columns,
                  const TableStyle& style) {
  const std::size_t width = style.width;
  std::string text =
      painted(wrap(title_of(*group.all.front(), style.calls), width, kContinuedIndent),
              Paint::strong, style.color) +
      "\n";
  text +=
      painted(fmt::format("  {}", line_of(columns, [](const TableColumn& c) { return c.header; })),
              Paint::faint, style.color) +
      "\n";
  // Where a row has no figures, its status and reason follow what names it.
  std::vector<Drawn> naming;
  for (const Drawn& drawn : columns)
    if (drawn.column.left_aligned) naming.push_back(drawn);
  if (naming.empty()) naming.push_back({table_column("kernel"), kNarrowestName});

  const auto best = winners(group.all);
  for (const ResultRow* row : sorted(group.shown, style.sort)) {
    if (row->status == Status::skipped) continue;
    const auto cell = [row](const TableColumn& column) { return column.text(*row); };
    if (row->status != Status::ok) {
      const std::string line = fmt::format("  {} {}: {}", line_of(naming, cell),
                                           to_string(row->status), printable_message(row->reason));
      text += painted(wrap(line, width, kContinuedIndent), Paint::bad, style.color) + "\n";
      continue;
    }
    const bool winner = best.contains(row);
    text += painted(fmt::format("{} {}", winner ? '*' : ' ', line_of(columns, cell)),
                    winner ? Paint::winner : Paint::plain, style.color) +
            "\n";
  }
  for (const std::string& line : skipped_of(group.shown, style.why))
    text += painted(wrap("  " + line, width, kContinuedIndent), Paint::faint, style.color) + "\n";
  for (const std::string& line : conclusions(group, style))
    text += wrap("  " + line, width, kContinuedIndent) + "\n";
  return text;
}

std::string markdown_block(const TableGroup& group, const std::vector<Drawn>& columns,
                           const TableStyle& style) {
  const auto row_of = [&](const auto& text) {
    std::string line = "|";
    for (const Drawn& drawn : columns)
      line += fmt::format(" {} |", markdown_text(text(drawn.column)));
    return line + "\n";
  };
  std::string text =
      fmt::format("### {}\n\n", markdown_text(title_of(*group.all.front(), style.calls)));
  text += row_of([](const TableColumn& column) { return column.header; });
  text += "|";
  for (const Drawn& drawn : columns) text += drawn.column.left_aligned ? "---|" : "---:|";
  text += "\n";
  const auto best = winners(group.all);
  std::string notes;
  for (const ResultRow* row : sorted(group.shown, style.sort)) {
    if (row->status == Status::skipped) continue;
    if (row->status != Status::ok) {
      notes += markdown_text(
                   printable_message(fmt::format("- {} {}: {}: {}", label_of(*row), types_of(*row),
                                                 to_string(row->status), row->reason))) +
               "\n";
      continue;
    }
    const char* strong = best.contains(row) ? "**" : "";
    text += row_of([&](const TableColumn& column) {
      return fmt::format("{0}{1}{0}", strong, column.text(*row));
    });
  }
  for (const std::string& line : skipped_of(group.shown, style.why))
    notes += markdown_text(fmt::format("- {}\n", line));
  for (const std::string& line : conclusions(group, style))
    notes += markdown_text(fmt::format("- {}\n", line));
  return notes.empty() ? text : fmt::format("{}\n{}", text, notes);
}

}  // namespace

void check_style(const TableStyle& style) {
  for (const std::string& key : style.columns) table_column(key);
  sorted({}, style.sort);
}

std::string format_table(std::span<const ResultRow> rows, const TableStyle& style) {
  const std::vector<TableGroup> groups = groups_of(rows, style);
  const std::vector<Drawn> columns = columns_for(groups, style);
  std::string text;
  for (const TableGroup& group : groups) text += block(group, columns, style) + "\n";
  return text;
}

std::string markdown_text(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '|' || c == '<') escaped += '\\';
    escaped += c;
  }
  return escaped;
}

std::string format_markdown(std::span<const ResultRow> rows, const TableStyle& style) {
  TableStyle unlimited = style;
  unlimited.width = 0;
  const std::vector<TableGroup> groups = groups_of(rows, style);
  const std::vector<Drawn> columns = columns_for(groups, unlimited);
  std::string text;
  for (const TableGroup& group : groups) text += markdown_block(group, columns, style) + "\n";
  return text;
}

void Summary::add(std::span<const ResultRow> rows, const TableStyle& style) {
  ++matrices_;
  for (const TableGroup& group : groups_of(rows, style)) {
    const auto best = winners(group.all);
    for (const ResultRow* row : group.shown) {
      Sums& sums = kernels_[printable_message(types_of(*row) + " " + label_of(*row))];
      sums.wrong += row->status == Status::wrong;
      if (!ranked(*row)) continue;
      ++sums.cases;
      sums.wins += best.contains(row);
      const auto accumulate = [](Mean& mean, const std::optional<double>& value) {
        if (!value) return;
        mean.log_sum += std::log(*value);
        ++mean.n;
      };
      reference_ = std::max(reference_, reference_of(*row));
      auto& [of_default, of_best] = sums.speedups[reference_of(*row)];
      accumulate(of_default, over_default(*row));
      accumulate(of_best, over_best(*row));
      accumulate(sums.bound, row->of_bound);
    }
  }
}

std::string Summary::format(const TableStyle& style) const {
  if (matrices_ < 2) return {};
  constexpr std::size_t kFigures = 45;  // columns of the lines below that are no names
  constexpr std::string_view kNames = "precision kernel";
  std::size_t names = kNames.size();
  for (const auto& [name, sums] : kernels_) names = std::max(names, display_width(name));
  constexpr std::size_t kFewest = 8;  // letters of a name; the figures are not cut
  if (style.width > 0)
    names = std::min(names, std::max<std::size_t>(style.width, kFigures + kFewest) - kFigures);
  std::string text =
      painted(fmt::format("geometric means over {} matrices", matrices_), Paint::strong,
              style.color) +
      "\n" +
      painted(fmt::format("  {} {:>6} {:>5} {:>5} {:>7} {:>7} {:>7}",
                          pad_right(clip(kNames, names), names), "cases", "wins", "wrong",
                          default_header(reference_), best_header(reference_), "bound"),
              Paint::faint, style.color) +
      "\n";
  for (const auto& [name, sums] : kernels_) {
    if (sums.cases == 0 && sums.wrong == 0) continue;
    const auto text_of = [](const Mean& mean) {
      return mean.n == 0 ? std::string("-")
                         : fmt::format("{:.2f}", std::exp(mean.log_sum / mean.n));
    };
    const auto over = sums.speedups.find(reference_);
    const auto [of_default, of_best] =
        over == sums.speedups.end() ? std::array<Mean, 2>() : over->second;
    text += fmt::format("  {} {:>6} {:>5} {:>5} {:>7} {:>7} {:>7}\n",
                        pad_right(clip(name, names), names), sums.cases, sums.wins, sums.wrong,
                        text_of(of_default), text_of(of_best), text_of(sums.bound));
  }
  return text;
}

}  // namespace spmmbench
