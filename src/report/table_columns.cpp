#include "report/table_columns.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "core/parse_number.hpp"
#include "report/answer.hpp"
#include "report/fields.hpp"
#include "report/limit.hpp"
#include "report/terminal.hpp"
#include "spmmbench/error.hpp"
#include "spmmbench/printable.hpp"
#include "spmmbench/suggest.hpp"
#include "timing/quantiles.hpp"

namespace spmmbench {
namespace {

using Number = std::optional<double>;

// From this number on only the first three digits are shown.
constexpr double kLargest = 1e8;

std::string number_text(const Number& value, int decimals, const char* unit = "") {
  if (!value) return "-";
  if (std::isnan(*value)) return "nan";
  if (std::isinf(*value)) return "inf";
  if (std::abs(*value) >= kLargest) return fmt::format("{:.3g}{}", *value, unit);
  return fmt::format("{:.{}f}{}", *value, decimals, unit);
}

TableColumn numeric(std::string key, std::string header, std::string meaning, int decimals,
                    const std::function<Number(const ResultRow&)>& number, const char* unit = "") {
  return {std::move(key),
          std::move(header),
          std::move(meaning),
          false,
          [number, decimals, unit](const ResultRow& row) {
            return number_text(number(row), decimals, unit);
          },
          [number](const ResultRow& row) {
            const Number value = number(row);
            return value && std::isnan(*value) ? std::nullopt : value;
          }};
}

TableColumn textual(std::string key, std::string header, std::string meaning,
                    std::function<std::string(const ResultRow&)> text) {
  return {std::move(key),
          std::move(header),
          std::move(meaning),
          true,
          [text = std::move(text)](const ResultRow& row) { return printable_message(text(row)); },
          [](const ResultRow&) { return Number(); }};
}

// Shown only where a row has it.
TableColumn rare(TableColumn column) {
  column.rare = true;
  return column;
}

// The time of one call, with its share of the preparation.
TableColumn in_all() {
  return rare(numeric("in_all", "in all us",
                      "the time of a call and its share of the preparation, if there are as many "
                      "calls as `--calls` says",
                      1, [](const ResultRow& row) { return row.in_all_us; }));
}

TableColumn repeats() {
  TableColumn column = rare(
      textual("repeats", "repeats", "whether ten launches agree to the bit (`--repeat-check`)",
              [](const ResultRow& row) {
                return std::string(!row.bit_identical ? "-" : *row.bit_identical ? "yes" : "no");
              }));
  column.left_aligned = false;
  return column;
}

TableColumn limit() {
  return rare(
      textual("limit", "limit",
              "what takes most of a launch, by count: `launch` itself, `output` of C, `gathers` of "
              "rows of B, `padding` or other bytes of `A`; nothing where that explains less than a "
              "third of the time, and on a CPU",
              [](const ResultRow& row) {
                const std::string limit = limit_of(row);
                return limit.empty() ? std::string("-") : limit;
              }));
}

using OfSplit = std::function<Number(const SplitProduct&)>;

// A number of a case on several GPUs.
TableColumn of_split(std::string key, std::string header, std::string meaning, int decimals,
                     const OfSplit& number) {
  return rare(numeric(std::move(key), std::move(header), std::move(meaning), decimals,
                      [number](const ResultRow& row) {
                        return row.split && row.hot ? number(*row.split) : std::nullopt;
                      }));
}

// Whether to divide a product among GPUs pays: as measured, and whether the forecast was another.
TableColumn pays() {
  return rare(
      textual("pays", "pays",
              "whether several GPUs take less time than one: `pays` or `does not pay`, with "
              "`(unforeseen)` where the rate of the link had predicted the opposite",
              [](const ResultRow& row) -> std::string {
                if (!row.split || !row.split->pays) return "-";
                const SplitProduct& split = *row.split;
                return fmt::format("{}{}", *split.pays ? "pays" : "does not pay",
                                   split.should_pay == split.pays ? "" : " (unforeseen)");
              }));
}

TableColumn gathered() {
  return rare(
      textual("gathered", "gathered",
              "how a GPU gets the rows of B that it lacks: `all_gather`, `needed_rows`, in place "
              "by `peer`, `pulled` from the memory of others, or `none` where it lacks none",
              [](const ResultRow& row) -> std::string {
                return row.split && row.hot ? row.split->way : "-";
              }));
}

Number median_of(const std::optional<Timing>& timing) {
  return timing ? Number(timing->median_us) : std::nullopt;
}

// Rounded up to whole calls.
TableColumn pays_at() {
  TableColumn column = numeric(
      "pays_at", "pays at",
      "after how many calls this kernel, preparation included, overtakes the kernel that is "
      "cheapest for one call; `never` if its calls take no less time",
      0, [](const ResultRow& row) -> Number {
        return row.break_even_calls ? Number(std::ceil(*row.break_even_calls)) : std::nullopt;
      });
  column.text = [digits = column.text](const ResultRow& row) {
    const bool never = row.break_even_calls && std::isinf(*row.break_even_calls);
    return never ? std::string("never") : digits(row);
  };
  return column;
}

// Times as in the default columns; of other numbers three digits, or all before the point.
std::string rounded(const std::string& field, double value) {
  if (field.ends_with("_us") || field.ends_with("_ms")) return number_text(value, 1);
  return std::abs(value) >= 100 ? number_text(value, 0) : fmt::format("{:.3g}", value);
}

TableColumn from_csv(const CsvColumn<ResultRow>& field) {
  const auto number = [text = field.text](const ResultRow& row) {
    return parse_number<double>(text(row));
  };
  return {field.name,
          field.name,
          "",
          false,
          [field, number](const ResultRow& row) {
            if (const Number value = number(row); field.real && value)
              return rounded(field.name, *value);
            std::string cell = printable_message(field.text(row));
            return cell.empty() ? "-" : cell;
          },
          number};
}

constexpr const char* kUntested = " (untested)";

bool lacks_exact_test(const ResultRow& row) {
  return row.status == Status::ok && row.exact && !row.exact->not_made.empty();
}

// What stands beside the columns.
struct Sign {
  const char *sign, *meaning;
};
constexpr Sign kSigns[] = {
    {"*",
     "the fastest correct kernel with at most 10 % noise (not known below four samples), for each "
     "precision and type of C; `auto` leaves the star to the kernel that it picked"},
    {"wrong", "a result beyond its bound, with its worst element; it is never ranked"},
    {"untested",
     "there was no exact test, only the error bound, which can hide a missing nonzero in long "
     "rows; a warning says why"},
    {"skipped", "how many kernels cannot take this problem; `--why` says why"},
    {"least time",
     "with `--why`: a hot time below this is `wrong`. It is the longer of two times: writing C, "
     "and making all products, both at four times the fastest rate that was measured"},
    {"answer",
     "the row that takes the least time in all, preparation included, for each number of calls"},
};

// Columns that every table may have.
std::vector<TableColumn> common_columns() {
  using R = const ResultRow&;
  return {
      textual("kernel", "kernel",
              "its name with the options that were given, and the row order; `auto -> rsh` where "
              "`auto` picked `rsh`",
              [](R row) {
                return (row.pick ? fmt::format("{} -> {}", label_of(row), row.pick->kernel)
                                 : label_of(row)) +
                       (lacks_exact_test(row) ? kUntested : "");
              }),
      textual("in", "in",
              "the type that A and B are rounded to; `fp16>fp16` where C is not fp32, the second "
              "being the type of C",
              [](R row) { return types_of(row); }),
      numeric("hot", "hot us",
              "time per launch when launches follow one another over one set of buffers", 1,
              [](R row) { return median_of(row.hot); }),
      in_all(),
      numeric("cold", "cold us", "time of a single launch after the L2 cache was flushed", 1,
              [](R row) { return median_of(row.cold); }),
      numeric("gflops", "GFLOP/s", "useful operations, `2 · nnz · N`, over the hot time", 0,
              [](R row) { return row.gflops; }),
      numeric("gbs", "GB/s",
              "compulsory bytes over the hot time: A in CSR, every referenced row of B and all of "
              "C, each moved once",
              0, gb_per_s),
      numeric("bound", "bound",
              "the share of the memory bound that is reached, `bound_us / hot`. It can exceed 1 "
              "where A is stored in fewer bytes than CSR, or where data stay in the L2 cache",
              2, [](R row) { return row.of_bound; }),
      numeric("x_dflt", "x dflt",
              "speed-up over `cusparse_csr_default` in fp32; `x Eig32` over Eigen in fp32 where "
              "there is no cuSPARSE",
              2, over_default),
      numeric("x_best", "x best",
              "speed-up over the fastest correct cuSPARSE algorithm at the same precision; `x "
              "Eigen` over Eigen where there is no cuSPARSE",
              2, over_best),
      pays_at(),
      numeric("prep", "prep ms",
              "the time of preparation: ordering rows, building the format, upload, measuring", 1,
              [](R row) { return Number(preprocessing_ms(row)); }),
      numeric(
          "noise", "noise", "the relative standard error of the hot median", 1,
          [](R row) {
            return row.hot ? Number(100 * relative_noise(row.hot->samples_us)) : std::nullopt;
          },
          "%"),
  };
}

// Columns of a product on several GPUs.
std::vector<TableColumn> split_columns() {
  return {
      gathered(),
      of_split("sent", "sent MB", "what the GPU that sends most sends, in a product", 1,
               [](const SplitProduct& split) { return split.sent_bytes / 1e6; }),
      of_split("received", "recv MB", "what the GPU that receives most receives, in a product", 1,
               [](const SplitProduct& split) { return split.received_bytes / 1e6; }),
      of_split("transfer", "transfer us", "the time of gathering B alone", 1,
               [](const SplitProduct& split) { return split.transfer_us; }),
      of_split("product", "product us", "the time of the slowest part's product alone", 1,
               [](const SplitProduct& split) { return split.product_us; }),
      of_split("one_gpu", "1 GPU us", "the time of the product on one GPU", 1,
               [](const SplitProduct& split) { return split.one_gpu_us; }),
      pays(),
  };
}

std::vector<TableColumn> last_columns() {
  using R = const ResultRow&;
  return {
      limit(),
      repeats(),
      numeric("memory", "MB", "device memory that the kernel holds besides B and C", 1,
              [](R row) {
                return row.device_bytes ? Number(static_cast<double>(*row.device_bytes) / 1e6)
                                        : std::nullopt;
              }),
      numeric(
          "error", "error", "the largest error over its bound; a correct result has at most 1", 3,
          [](R row) { return row.verify ? Number(row.verify->error_over_bound) : std::nullopt; }),
  };
}

}  // namespace

Reference reference_of(const ResultRow& row) {
  const Speedups& s = row.speedup;
  if (s.cusparse_default_fp32 || s.cusparse_best) return Reference::cusparse;
  return s.eigen_fp32 || s.eigen ? Reference::eigen : Reference::none;
}

std::optional<double> over_default(const ResultRow& row) {
  const Speedups& s = row.speedup;
  return reference_of(row) == Reference::eigen ? s.eigen_fp32 : s.cusparse_default_fp32;
}

std::optional<double> over_best(const ResultRow& row) {
  const Speedups& s = row.speedup;
  if (row.in_all_us) return s.best_in_all;
  return reference_of(row) == Reference::eigen ? s.eigen : s.cusparse_best;
}

const std::vector<TableColumn>& default_columns() {
  static const std::vector<TableColumn> columns = [] {
    std::vector<TableColumn> all;
    for (const auto& part : {common_columns, split_columns, last_columns})
      std::ranges::move(part(), std::back_inserter(all));
    return all;
  }();
  return columns;
}

const std::vector<std::string>& columns_by_importance() {
  static const std::vector<std::string> keys = {
      "kernel",  "in",       "hot",      "in_all", "repeats", "pays",   "one_gpu", "transfer",
      "product", "x_best",   "x_dflt",   "bound",  "pays_at", "cold",   "gflops",  "prep",
      "gbs",     "gathered", "received", "sent",   "noise",   "memory", "error",   "limit"};
  return keys;
}

TableColumn table_column(std::string_view key) {
  std::vector<std::string> known;
  for (const TableColumn& column : default_columns()) {
    if (column.key == key) return column;
    known.push_back(column.key);
  }
  for (const auto& field : row_columns()) {
    if (field.name == key) return from_csv(field);
    known.push_back(field.name);
  }
  throw Error(fmt::format("no column '{}'{}; there are {}, and the fields of the CSV", key,
                          did_you_mean(key, known), table_column_help()));
}

std::string table_column_help() {
  std::vector<std::string> keys;
  for (const TableColumn& column : default_columns()) keys.push_back(column.key);
  return fmt::format("{}", fmt::join(keys, ","));
}

std::string format_legend(bool markdown, std::size_t width) {
  constexpr std::size_t kIndent = 12;  // behind the longest header
  std::string text = markdown ? "| column | meaning |\n|---|---|\n" : "";
  const auto add = [&](std::string_view header, std::string_view meaning) {
    if (markdown) text += fmt::format("| `{}` | {} |\n", header, meaning);
    else text += wrap(pad_right(header, kIndent) + std::string(meaning), width, kIndent) + "\n";
  };
  for (const TableColumn& column : default_columns()) add(column.header, column.meaning);
  for (const auto& [sign, meaning] : kSigns) add(sign, meaning);
  return text;
}

}  // namespace spmmbench
