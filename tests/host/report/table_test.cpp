// The table of a matrix, as a terminal shows it.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "report/table.hpp"
#include "report/table_columns.hpp"
#include "report/terminal.hpp"
#include "result_rows.hpp"

namespace spmmbench {
namespace {

TEST(Table, EndsWithTheAnswerAndOnRequestWithWhatAutoPicked) {
  std::vector<ResultRow> rows = filled({prepared(row_of("cublas_dense", "fp16", 120, true), 0.3),
                                        prepared(row_of("async_wcsr", "fp16", 86.1), 0.5),
                                        prepared(row_of("auto", "fp16", 77.1), 3)});
  rows[2].pick =
      Pick{.kernel = "rsh", .measured_us = {}, .why = "expected rsh 77 us, async_wcsr 86 us"};
  const std::string table = format_table(rows, {});
  EXPECT_NE(
      table.find("  answer (fastest, preparation included): 1 call: cublas_dense, 420 us in "
                 "all \u00b7 from 6 calls: async_wcsr, 86.1 "
                 "us a call \u00b7 from 278 calls: auto, 77.1 us a call, 0.01 of the bound\n"),
      std::string::npos)
      << table;
  EXPECT_EQ(table.find("picked"), std::string::npos);
  EXPECT_NE(format_table(rows, {.why = true})
                .find("auto in fp16 picked rsh: expected rsh 77 us, async_wcsr 86 us\n"),
            std::string::npos);
  EXPECT_NE(format_markdown(rows, {}).find(
                "- answer (fastest, preparation included): 1 call: cublas_dense"),
            std::string::npos);
}

TEST(Table, SaysOnRequestBelowWhichTimeAResultIsWrong) {
  std::vector<ResultRow> rows = filled({row_of("rsh", "fp16", 20), row_of("auto", "fp16", 30)});
  for (ResultRow& row : rows) row.metrics["least_us"] = 2.5;
  EXPECT_EQ(format_table(rows, {}).find("least time"), std::string::npos);
  EXPECT_NE(format_table(rows, {.why = true})
                .find("  least time: 2.500 us, below which a hot time is wrong\n"),
            std::string::npos);
  rows[1].metrics["least_us"] = 1.25;
  EXPECT_NE(format_table(rows, {.why = true})
                .find("  least time: 1.250 to 2.500 us, below which a hot time is wrong\n"),
            std::string::npos);
}

TEST(Table, AnswersForTheNumberOfCallsThatIsAskedFor) {
  const std::vector<ResultRow> rows = filled({prepared(row_of("cublas_dense", "fp16", 120), 0.3),
                                              prepared(row_of("async_wcsr", "fp16", 86.1), 0.5)});
  const auto answer = [&](std::int64_t calls) {
    const std::string table = format_table(rows, {.calls = calls});
    const std::size_t at = table.find("  answer (fastest, preparation included): ");
    return table.substr(at, table.find('\n', at) - at);
  };
  EXPECT_TRUE(
      answer(5).starts_with("  answer (fastest, preparation included): 5 calls: cublas_dense, 900 "
                            "us in all \u00b7 1 call: "));
  EXPECT_TRUE(
      answer(100).starts_with("  answer (fastest, preparation included): 100 calls: async_wcsr, "
                              "9110 us in all \u00b7 1 "));
  EXPECT_TRUE(answer(1).starts_with(
      "  answer (fastest, preparation included): 1 call: cublas_dense, 420 us "
      "in all \u00b7 from 6 "));
}

TEST(Table, NamesTheBaselineBehindTheBestSpeedUp) {
  const std::string table =
      format_table(filled({row_of("rsh", "fp16", 20), row_of("cusparse_csr_alg2", "fp16", 30, true),
                           row_of("cusparse_coo_alg4", "fp16", 25, true)}),
                   {});
  EXPECT_NE(table.find("  x best: speed-up over cusparse_coo_alg4\n"), std::string::npos) << table;
}

TEST(Table, NamesThePrecisionOfTheAnswerWhereRowsOfAnotherStandBeside) {
  const std::vector<ResultRow> rows =
      filled({row_of("rsh", "fp16", 20), row_of("cusparse_csr_default", "fp32", 10, true)});
  EXPECT_NE(
      format_table(rows, {}).find("  answer in fp16 (fastest, preparation included): 1 call: rsh"),
      std::string::npos);
}

TEST(Table, KeepsRowsApartThatStoreCInAnotherType) {
  std::vector<ResultRow> rows = {row_of("eigen_csr", "fp32", 10, true),
                                 row_of("eigen_csr", "fp32", 20, true),
                                 row_of("cpu_csr", "fp32", 15)};
  rows[1].c_type = rows[2].c_type = "fp16";
  rows = filled(rows);
  const std::string table = format_table(rows, {});
  EXPECT_NE(table.find("* eigen_csr fp32      "), std::string::npos) << table;
  EXPECT_NE(table.find("  eigen_csr fp32>fp16 "), std::string::npos) << table;
  EXPECT_NE(table.find("* cpu_csr   fp32>fp16 "), std::string::npos) << table;
  EXPECT_NE(table.find("  answer in fp32>fp16 (fastest, preparation included): 1 call: cpu_csr"),
            std::string::npos)
      << table;
  EXPECT_NE(format_markdown(rows, {}).find("| **cpu_csr** | **fp32>fp16** |"), std::string::npos);
  Summary summary;
  summary.add(rows, {});
  summary.add(rows, {});
  const std::string means = summary.format({});
  EXPECT_NE(means.find("fp32 eigen_csr           2     2"), std::string::npos) << means;
  EXPECT_NE(means.find("fp32>fp16 cpu_csr        2     2"), std::string::npos) << means;
  EXPECT_NE(means.find("fp32>fp16 eigen_csr      2     0"), std::string::npos) << means;
}

TEST(Table, PrintsTheRowsAskedForAndRanksThemAmongAll) {
  const std::vector<ResultRow> rows =
      filled({row_of("rsh", "fp16", 10), row_of("auto", "fp16", 20)});
  const TableStyle style = {.shows = [](const ResultRow& row) { return row.kernel == "auto"; }};
  for (const std::string& text : {format_table(rows, style), format_markdown(rows, style)}) {
    EXPECT_NE(text.find("answer (fastest, preparation included): 1 call: rsh"), std::string::npos)
        << text;
    EXPECT_EQ(text.find("rsh  "), std::string::npos) << text;
    EXPECT_EQ(text.find("**"), std::string::npos) << text;
  }
  EXPECT_EQ(format_table(rows, style).find("\n* "), std::string::npos);
  Summary summary;
  for (int matrix = 0; matrix < 2; ++matrix) summary.add(rows, style);
  const std::string means = summary.format({});
  EXPECT_NE(means.find("fp16 auto             2     0"), std::string::npos) << means;
  EXPECT_EQ(means.find("rsh"), std::string::npos) << means;
}

TEST(Table, LeavesOutAProductOfWhichNoRowIsAskedFor) {
  std::vector<ResultRow> rows = {row_of("rsh", "fp16", 10), row_of("rsh", "fp16", 20)};
  rows[1].n = rows[0].n * 2;
  const std::vector<ResultRow> all = filled(rows);
  const TableStyle style = {.shows = [&](const ResultRow& row) { return row.n == all[1].n; }};
  const std::string other = fmt::format("N = {}", all[0].n),
                    asked = fmt::format("N = {}", all[1].n);
  for (const std::string& text : {format_table(all, style), format_markdown(all, style)}) {
    EXPECT_EQ(text.find(other), std::string::npos) << text;
    EXPECT_NE(text.find(asked), std::string::npos) << text;
  }
}

TEST(Table, RoundsFieldsOfTheCsvAsItsOwnColumns) {
  ResultRow row = row_of("2.71828182845", "fp16", 26.415999978780746);
  row.matrix.mean_row = 5177.8213;
  row.of_bound = 0.8312345;
  row.verify->relative_frobenius = 1.2345678e-5;
  row.break_even_calls = std::numeric_limits<double>::infinity();
  const std::vector<std::pair<std::string, std::string>> expected = {
      {"hot_median_us", "26.4"},
      {"build_ms", "2.0"},
      {"mean_row", "5178"},
      {"of_bound", "0.831"},
      {"nnz", "30"},
      {"relative_frobenius", "1.23e-05"},
      {"tune_ms", "-"},
      {"break_even_calls", "never"},
      {"kernel", "2.71828182845"}};
  for (const auto& [key, text] : expected) EXPECT_EQ(table_column(key).text(row), text) << key;
  EXPECT_EQ(*table_column("hot_median_us").number(row), row.hot->median_us) << "for sorting";
}

std::size_t widest(const std::string& text) {
  std::istringstream lines(text);
  std::size_t width = 0;
  for (std::string line; std::getline(lines, line);) width = std::max(width, display_width(line));
  return width;
}

TEST(Table, FitsTheTerminalAndMarksTheWinner) {
  std::vector<ResultRow> rows = {
      row_of("cusparse_csr_default", "fp32", 123456789, true), row_of("rsh", "fp16", 20),
      row_of("a_kernel_with_a_name_that_is_far_too_long_for_any_table", "fp16", 30)};
  rows[2].gflops = 1e9;
  rows[2].break_even_calls = 1e12;
  rows[0].matrix.name = rows[1].matrix.name = rows[2].matrix.name = std::string(150, 'x');
  ResultRow skipped = rows[1];
  skipped.status = Status::skipped;
  skipped.reason = std::string(200, 'r');
  rows.push_back(skipped);
  for (const int width : {48, 80, 100, 200}) {
    const std::string table = format_table(rows, {.width = width, .sort = ""});
    EXPECT_LE(widest(table), static_cast<std::size_t>(width)) << table;
    EXPECT_NE(table.find("* rsh"), std::string::npos);
    EXPECT_NE(table.find("hot us"), std::string::npos);
  }
  const std::string file = format_table(rows, {});
  EXPECT_NE(file.find(rows[2].kernel), std::string::npos);
  EXPECT_NE(file.find(skipped.reason), std::string::npos);
}

TEST(Table, NamesAKernelOnceThatIsSkippedForOneReasonInSeveralPrecisions) {
  std::vector<ResultRow> rows = {row_of("rsh", "fp16", 1), row_of("auto", "fp16", 1),
                                 row_of("rsh", "fp32", 1), row_of("rsh", "bf16", 1)};
  for (ResultRow& row : rows) {
    row.status = Status::skipped;
    row.reason = row.precision == "bf16" ? "does not offer bf16" : "no CUDA device";
  }
  const std::string expected = "skipped (does not offer bf16): rsh\n";
  EXPECT_NE(format_table(rows, {.why = true}).find("  skipped (no CUDA device): rsh, auto\n"),
            std::string::npos);
  EXPECT_NE(format_table(rows, {.why = true}).find("  " + expected), std::string::npos);
  EXPECT_NE(format_markdown(rows, {.why = true}).find("- " + expected), std::string::npos);
}

TEST(Table, SkippedKernelsTakeOneLineWithoutWhy) {
  std::vector<ResultRow> rows = {row_of("rsh", "fp16", 1), row_of("auto", "fp16", 1)};
  for (ResultRow& row : rows) {
    row.status = Status::skipped;
    row.reason = "does not offer " + row.kernel;
  }
  const std::string table = format_table(rows, {});
  EXPECT_NE(table.find("  skipped: 2 kernels (--why: which, and why)\n"), std::string::npos);
  EXPECT_EQ(table.find("does not offer"), std::string::npos);
}

TEST(Table, AutoNamesItsKernelAndDoesNotCompeteWithItsRow) {
  std::vector<ResultRow> rows = {row_of("auto", "fp16", 76), row_of("rsh", "fp16", 77),
                                 row_of("csr_row_split", "fp16", 99)};
  rows[0].pick = Pick{.kernel = "rsh", .measured_us = {}, .why = "the best prediction"};
  const std::string table = format_table(rows, {});
  EXPECT_NE(table.find("\n  auto -> rsh "), std::string::npos) << table;
  EXPECT_NE(table.find("\n* rsh "), std::string::npos) << table;
  rows.erase(rows.begin() + 1);
  EXPECT_NE(format_table(rows, {}).find("\n* auto -> rsh "), std::string::npos);
}

TEST(Table, ARowThatIsTooNoisyHasNoStarAndTheAnswerCannotTell) {
  std::vector<ResultRow> rows = {row_of("rsh", "fp16", 10), row_of("csr_row_split", "fp16", 99)};
  rows[0].hot = summarise({5, 8, 10, 20, 30}, 10);
  const std::string table = format_table(rows, {});
  EXPECT_EQ(table.find("\n* "), std::string::npos) << table;
  EXPECT_NE(table.find("included): cannot tell: rsh has 50 % noise, more than 10 %"),
            std::string::npos)
      << table;
}

TEST(Table, WritesMarkdownInWhichNoNameIsHtmlOrEndsACell) {
  std::vector<ResultRow> rows = {row_of("cpu_csr", "fp32", 1)};
  rows[0].matrix.name = "<!--a|b";
  EXPECT_TRUE(format_markdown(rows, {}).starts_with("### \\<!--a\\|b: 10 x 20"));
  rows[0].status = Status::failed;
  rows[0].reason = "x<y";
  EXPECT_NE(format_markdown(rows, {}).find(": failed: x\\<y\n"), std::string::npos);
}

TEST(Table, SortsAbsentValuesLastInBothDirections) {
  std::vector<ResultRow> rows = {row_of("a", "fp16", 1), row_of("b", "fp16", 2),
                                 row_of("c", "fp16", 3)};
  rows[0].break_even_calls = 10;
  rows[2].break_even_calls = 30;
  const auto order = [&](const std::string& sort) {
    const std::string table = format_table(rows, {.columns = {"kernel"}, .sort = sort});
    std::string names;
    const std::size_t first = table.find("kernel\n") + 7;
    for (const char c : table.substr(first, table.find("  answer") - first))
      if (c >= 'a' && c <= 'c') names += c;
    return names;
  };
  EXPECT_EQ(order("pays_at"), "acb");
  EXPECT_EQ(order("pays_at:desc"), "cab");
  EXPECT_EQ(order("hot:desc"), "cba");
  EXPECT_EQ(order("kernel:desc"), "cba");
}

TEST(Terminal, CountsCharactersAndCutsBetweenThem) {
  EXPECT_EQ(display_width("k\u00f6nig"), 5U);
  EXPECT_EQ(clip("k\u00f6nig", 3), "k\u00f6~");
  EXPECT_EQ(clip("k\u00f6nig", 5), "k\u00f6nig");
  EXPECT_EQ(pad_left("\u00f6", 3), "  \u00f6");
}

TEST(Terminal, BreaksLinesAtBlanksAndLongWordsWhereTheLineEnds) {
  EXPECT_EQ(wrap("  one two three", 9, 4), "  one two\n    three");
  EXPECT_EQ(wrap("  " + std::string(12, 'x'), 8, 2), "  xxxxxx\n  xxxxxx");
  EXPECT_EQ(wrap("one two three", 0, 2), "one two three");
}

TEST(Table, NoTextOfADocumentReachesTheTerminalRaw) {
  const std::string raw = "\x1b[31m\n\x9b\xff", shown = R"(\x1b[31m\x0a\x9b\xff)";
  ResultRow ok = row_of("k" + raw, "fp16", 10), failed = ok, skipped = ok;
  ok.matrix.name = "m" + raw;
  ok.reorder = "o" + raw;
  ok.pick = Pick{.kernel = "p" + raw, .measured_us = {{"x" + raw, 1}}, .why = "w" + raw};
  ok.break_even_against = "a" + raw;
  failed.status = Status::failed;
  failed.reason = "f" + raw;
  skipped.status = Status::skipped;
  skipped.reason = "s" + raw;
  const std::vector<ResultRow> rows = {ok, failed, skipped};
  const TableStyle style = {.columns = {"kernel", "reorder", "hot"}, .why = true};
  Summary summary;
  for (int matrix = 0; matrix < 2; ++matrix) summary.add(rows, {});
  for (const std::string& text :
       {format_table(rows, style), format_markdown(rows, style), summary.format(style)}) {
    for (const char* bytes : {"\x1b", "\x9b", "\xff", "[31m\n"})
      EXPECT_EQ(text.find(bytes), std::string::npos) << text;
    EXPECT_NE(text.find("k" + shown), std::string::npos) << text;
  }
  const std::string table = format_table(rows, style);
  for (const char* name : {"m", "o", "w", "p", "x", "a", "f", "s"})
    EXPECT_NE(table.find(name + shown), std::string::npos) << name << " in " << table;
}

}  // namespace
}  // namespace spmmbench
