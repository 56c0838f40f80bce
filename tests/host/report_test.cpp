#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <sstream>

#include "report/answer.hpp"
#include "report/baselines.hpp"
#include "report/csv.hpp"
#include "report/json.hpp"
#include "report/table.hpp"
#include "report/terminal.hpp"
#include "report/warnings.hpp"
#include "spmmbench/error.hpp"
#include "spmmbench/suggest.hpp"
#include "stats/quantiles.hpp"

namespace spmmbench {
namespace {

ResultRow row_of(const std::string& kernel, const std::string& precision, double hot_us,
                 bool baseline = false) {
  ResultRow row;
  row.matrix = {"m", "m.mtx", "00ff", 10, 20, 30, 3, 0.5, 9};
  row.n = 128;
  row.kernel = kernel;
  row.baseline = baseline;
  row.precision = precision;
  row.c_type = "fp32";
  row.layout = "row";
  row.reorder = "none";
  row.status = Status::ok;
  row.stages_ms = {{"load", 5}, {"build", 2}, {"upload", 1}};
  row.verify = Verdict{true, 0.25, 1, 2, 1e-8};
  row.hot = summarise({hot_us, hot_us + 1, hot_us - 1}, 10);
  row.cold = summarise({hot_us * 2}, 1);
  row.gflops = 1.5;
  row.bound_us = 1;
  row.of_bound = 1 / hot_us;
  row.command = "spmmbench run m.mtx";
  return row;
}

class ReportFiles : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ =
        std::filesystem::temp_directory_path() / ("spmmbench_report_" + std::to_string(getpid()));
    std::filesystem::create_directories(folder_);
    context_.device.name = "device";
    context_.seed = 1;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  static std::string read(const std::string& path) {
    std::stringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
  }

  std::filesystem::path folder_;
  RunContext context_;
};

TEST(Json, RowsRoundTrip) {
  ResultRow row = row_of("rsh?tau=4", "fp16", 10);
  row.format = FormatStats{};
  row.format->extra["cuda_share"] = 0.125;
  row.params = {{"tau", "4"}};
  row.metrics = {{"a_scale_log2", -3}};
  row.break_even_calls = std::numeric_limits<double>::infinity();
  row.device_bytes = 12345678901ULL;
  const auto json = to_json(row);
  EXPECT_EQ(json.at("break_even_calls"), "never");
  EXPECT_EQ(to_json(row_from_json(json)), json);
}

TEST(Json, AbsentValuesAreNull) {
  ResultRow row = row_of("k", "fp16", 1);
  row.status = Status::skipped;
  row.hot.reset();
  row.cold.reset();
  row.verify.reset();
  const auto json = to_json(row);
  EXPECT_TRUE(json.at("hot").is_null());
  EXPECT_EQ(to_json(row_from_json(json)), json);
}

TEST(Json, AMissingFieldIsNamed) {
  auto json = to_json(row_of("k", "fp16", 1));
  json.erase("kernel");
  try {
    row_from_json(json);
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("kernel"), std::string::npos);
  }
}

// A row that has everything a row can have.
ResultRow full_row() {
  ResultRow row = row_of("rsh?tau=4", "fp16", 10);
  row.format = FormatStats{};
  row.device_bytes = 1;
  row.issued_flops = row.compulsory_bytes = 1;
  row.speedup = {1, 2, 3, 4, 5, 6};
  row.break_even_calls = 4;
  row.break_even_against = "csr_row_split";
  row.in_all_us = 12;
  return row;
}

// Every place below `schema` that says which keys an object has, against the object itself.
void expect_described(const nlohmann::ordered_json& schema, const nlohmann::ordered_json& json,
                      const std::string& path) {
  if (!json.is_object()) return;
  const auto* object = &schema;
  if (schema.contains("oneOf")) object = &schema.at("oneOf").back();  // null or this
  if (!object->contains("properties")) return;
  for (const auto& [key, value] : json.items()) {
    ASSERT_TRUE(object->at("properties").contains(key)) << path << key << " is not in the schema";
    expect_described(object->at("properties").at(key), value, path + key + ".");
  }
  for (const auto& [key, described] : object->at("properties").items())
    EXPECT_TRUE(json.contains(key)) << path << key << " is never written";
}

TEST(Schema, DescribesEveryFieldThatIsWrittenAndNoOther) {
  const auto schema = result_schema();
  expect_described(schema.at("$defs").at("row"), to_json(full_row()), "row.");
  expect_described(schema.at("$defs").at("context"), to_json(RunContext{}), "context.");
  const auto answer =
      to_json(Answer{"m", "m.mtx", 128, "row", "fp16", "fp32", {{1, "rsh", "none", 1, 2, 0.5}}});
  expect_described(schema.at("$defs").at("answer"), answer, "answer.");
  expect_described(schema.at("$defs").at("answer").at("properties").at("steps").at("items"),
                   answer.at("steps")[0], "answer.steps.");
}

TEST(Schema, TheRecordedOneIsTheProgramsOwn) {
  std::ifstream file(SPMMBENCH_SOURCE_DIR "/results/schema.json");
  EXPECT_EQ(nlohmann::ordered_json::parse(file), result_schema())
      << "spmmbench list schema > results/schema.json";
}

TEST(Json, AFieldOfTheWrongTypeIsNamedWithWhatWasExpected) {
  auto json = to_json(full_row());
  json["hot"]["median_us"] = "12 us";
  try {
    row_from_json(json);
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "result row: 'hot.median_us': expected a number, got \"12 us\"");
  }
}

TEST(Json, ReadsBackWhatItWrites) {
  EXPECT_EQ(to_json(row_from_json(to_json(full_row()))), to_json(full_row()));
  RunContext context;
  context.argv = {"spmmbench", "run"};
  context.protocol = {{"noise_limit", "0.01"}};
  context.clocks_before.power_w = 700;
  context.device.kind = DeviceKind::cuda;
  EXPECT_EQ(to_json(context_from_json(to_json(context))), to_json(context));
}

TEST(Baselines, WithoutAGpuEigenIsWhatSpeedupsAreOverAndTheTableSaysSo) {
  std::vector<ResultRow> rows = {row_of("eigen_csr", "fp32", 60, true),
                                 row_of("eigen_csr", "fp16", 90, true),
                                 row_of("cpu_csr", "fp16", 30)};
  Baselines baselines;
  for (const ResultRow& row : rows) baselines.add(row);
  for (ResultRow& row : rows) baselines.fill(row);
  const ResultRow& mine = rows[2];
  EXPECT_DOUBLE_EQ(*mine.speedup.eigen_fp32, 2);
  EXPECT_DOUBLE_EQ(*mine.speedup.eigen, 3);
  EXPECT_FALSE(mine.speedup.cusparse_best);
  EXPECT_DOUBLE_EQ(*mine.speedup.eigen_fp32, 2);
  const std::string table = format_table(rows, {});
  EXPECT_NE(table.find("x Eig32 x Eigen"), std::string::npos) << table;
  EXPECT_EQ(table.find("x best"), std::string::npos);
  Summary summary;
  summary.add(rows);
  summary.add(rows);
  EXPECT_NE(summary.format({}).find("x Eigen"), std::string::npos);
}

TEST(Csv, HasEveryScalarFieldOfTheJsonUnderAUniqueName) {
  const std::string header = "," + csv_header() + ",";
  for (const std::string name : {"matrix", "nnz", "kernel", "load_ms", "format", "format_fill",
                                 "hot_median_us", "cold_n", "speedup_cublas", "command"})
    EXPECT_NE(header.find("," + name + ","), std::string::npos) << name;
  std::set<std::string> names;
  for (const auto& column : row_columns())
    EXPECT_TRUE(names.insert(column.name).second) << column.name;
}

TEST(Csv, HasAsManyFieldsAsItsHeader) {
  const ResultRow row = row_of("k", "fp16", 1);
  const auto fields = [](const std::string& line) {
    return std::count(line.begin(), line.end(), ',');
  };
  EXPECT_EQ(fields(csv_header()), fields(csv_line(row)));
}

TEST(Csv, QuotesCommasAndQuotes) {
  ResultRow row = row_of("k", "fp16", 1);
  row.reason = "a \"b\", c";
  EXPECT_NE(csv_line(row).find("\"a \"\"b\"\", c\""), std::string::npos);
}

TEST(Baselines, SpeedUpsNameTheirBaseline) {
  Baselines baselines;
  baselines.add(row_of("cusparse_csr_default", "fp32", 100, true));
  baselines.add(row_of("cusparse_csr_default", "fp16", 80, true));
  baselines.add(row_of("cusparse_csr_alg3", "fp16", 60, true));
  baselines.add(row_of("cublas_dense", "fp16", 400, true));
  ResultRow mine = row_of("rsh", "fp16", 20);
  baselines.fill(mine);
  EXPECT_DOUBLE_EQ(*mine.speedup.cusparse_default_fp32, 5);
  EXPECT_DOUBLE_EQ(*mine.speedup.cusparse_best, 3);
  EXPECT_DOUBLE_EQ(*mine.speedup.cublas, 20);
}

TEST(Baselines, AVectorsBestIsThatOfSpmvToo) {
  Baselines baselines;
  baselines.add(row_of("cusparse_csr_default", "fp16", 100, true));
  baselines.add(row_of("cusparse_spmv", "fp16", 80, true));
  baselines.add(row_of("cusparse_spmv_alg1", "fp16", 40, true));
  ResultRow mine = row_of("jagged_slices", "fp16", 20);
  baselines.fill(mine);
  EXPECT_DOUBLE_EQ(*mine.speedup.cusparse_best, 2);
}

TEST(Warnings, NameTheWorstNoiseOrSayThatSamplesAreTooFew) {
  const auto warning_of = [](std::vector<double> samples_us) {
    ResultRow row = row_of("rsh", "fp16", 100);
    row.hot->samples_us = std::move(samples_us);
    row.cold = row.hot;
    Warnings warnings(0.01, 0);
    warnings.add(row);
    return warnings.lines();
  };
  EXPECT_TRUE(warning_of({100, 100, 100, 100, 101}).empty());
  const auto noisy = warning_of({100, 150, 100, 150, 200}), few = warning_of({100, 101});
  ASSERT_EQ(noisy.size(), 1U);
  EXPECT_NE(noisy[0].find("(worst "), std::string::npos) << noisy[0];
  ASSERT_EQ(few.size(), 1U);
  EXPECT_NE(few[0].find("(too few samples to tell: rsh on"), std::string::npos) << few[0];
}

// With so much preparation, all of it "build".
ResultRow prepared(ResultRow row, double ms) {
  row.stages_ms = {{"load", 5}, {"build", ms}};
  return row;
}

std::vector<ResultRow> filled(std::vector<ResultRow> rows, std::int64_t calls = 0) {
  Baselines baselines(calls);
  for (const ResultRow& row : rows) baselines.add(row);
  for (ResultRow& row : rows) baselines.fill(row);
  return rows;
}

TEST(BreakEven, IsAgainstTheRowThatIsDoneFirstWhenCalledOnce) {
  const auto rows =
      filled({prepared(row_of("cusparse_csr_default", "fp16", 80, true), 2),
              prepared(row_of("csr_row_split", "fp16", 70), 1),
              prepared(row_of("rsh", "fp16", 20), 11), prepared(row_of("slow", "fp16", 90), 11)});
  EXPECT_EQ(rows[2].break_even_against, "csr_row_split");
  EXPECT_DOUBLE_EQ(*rows[2].break_even_calls, 10 / 0.05) << "10 ms more, 50 us saved per call";
  EXPECT_FALSE(rows[1].break_even_calls) << "it is that row";
  EXPECT_FALSE(rows[1].break_even_against);
  EXPECT_TRUE(std::isinf(*rows[0].break_even_calls)) << "nothing is saved";
  EXPECT_TRUE(std::isinf(*rows[3].break_even_calls));
}

TEST(BreakEven, OfAnOrderIsAgainstTheSameKernelWithoutIt) {
  ResultRow ordered = prepared(row_of("rsh", "fp16", 20), 31);
  ordered.reorder = "rabbit";
  ResultRow alone = prepared(row_of("async_wcsr", "fp16", 25), 31);
  alone.reorder = "rabbit";
  const auto rows = filled({prepared(row_of("csr_row_split", "fp16", 70), 1),
                            prepared(row_of("rsh", "fp16", 30), 11), ordered, alone});
  EXPECT_EQ(rows[2].break_even_against, "rsh");
  EXPECT_DOUBLE_EQ(*rows[2].break_even_calls, 20 / 0.01);
  EXPECT_EQ(rows[3].break_even_against, "csr_row_split") << "async_wcsr was not run without it";
  const std::string table = format_table(rows, {});
  EXPECT_NE(table.find("pays at: against csr_row_split, the same kernel without the order"),
            std::string::npos)
      << table;
}

TEST(InAll, PreparationDecidesTheStarAndTheSpeedUpOfFewCalls) {
  const std::vector<ResultRow> rows = {
      prepared(row_of("cusparse_csr_default", "fp16", 80, true), 2),
      prepared(row_of("rsh", "fp16", 20), 11)};
  const auto few = filled(rows, 100), many = filled(rows, 1000), none = filled(rows);
  EXPECT_DOUBLE_EQ(*few[0].in_all_us, 100);  // 2000 us / 100 + 80 us
  EXPECT_DOUBLE_EQ(*few[1].in_all_us, 130);
  EXPECT_DOUBLE_EQ(*few[1].speedup.best_in_all, 100.0 / 130);
  EXPECT_DOUBLE_EQ(*few[1].speedup.cusparse_best, 4) << "of a call alone";
  EXPECT_DOUBLE_EQ(*many[1].speedup.best_in_all, 82.0 / 31);
  EXPECT_FALSE(none[1].in_all_us);
  EXPECT_FALSE(none[1].speedup.best_in_all);
  const auto star = [](const std::vector<ResultRow>& rows, std::int64_t calls) {
    const std::string table = format_table(rows, {.calls = calls});
    return table.substr(table.find("* ") + 2, 3);
  };
  EXPECT_EQ(star(few, 100), "cus");
  EXPECT_EQ(star(many, 1000), "rsh");
  EXPECT_EQ(star(none, 0), "rsh");
  EXPECT_NE(format_table(few, {.calls = 100}).find("preparation counted for 100 calls"),
            std::string::npos);
  EXPECT_EQ(format_table(none, {}).find("in all us"), std::string::npos);
}

TEST(Answer, IsTheLowerEnvelopeOfPreparationPlusCallsTimesTime) {
  std::mt19937 random(1);
  std::uniform_int_distribution<int> count(1, 12), ms(0, 40), us(1, 60);
  for (int trial = 0; trial < 300; ++trial) {
    std::vector<Cost> costs(count(random));
    for (Cost& cost : costs) cost = {0.25 * ms(random), 5.0 * us(random)};
    const auto steps = lower_envelope(costs);
    ASSERT_FALSE(steps.empty());
    EXPECT_EQ(steps.front().first, 1);
    std::size_t step = 0;
    for (std::int64_t calls = 1; calls < 3000; ++calls) {
      while (step + 1 < steps.size() && steps[step + 1].first <= calls) ++step;
      const auto total = [&](const Cost& cost) {
        return cost.total_us(static_cast<double>(calls));
      };
      const auto best = std::min_element(costs.begin(), costs.end(),
                                         [&](auto& a, auto& b) { return total(a) < total(b); });
      ASSERT_LE(total(costs[steps[step].second]), total(*best) * (1 + 1e-12)) << calls;
    }
    for (std::size_t i = 1; i < steps.size(); ++i)
      EXPECT_LT(costs[steps[i].second].us, costs[steps[i - 1].second].us);
  }
}

TEST(Answer, WhatIsFasterByLessThanNoiseTakesOverFromNone) {
  EXPECT_EQ(lower_envelope({{1, 100}, {2, 99.5}}).size(), 1U);
  EXPECT_EQ(lower_envelope({{1, 100}, {2, 98.5}}).size(), 2U);
  using Steps = std::vector<std::pair<std::int64_t, std::size_t>>;
  EXPECT_EQ(lower_envelope({{1, 100}, {1, 100}}), (Steps{{1, 0}})) << "a tie: the first";
  EXPECT_EQ(lower_envelope({}), Steps{});
  EXPECT_EQ(lower_envelope({{1, 100}, {2, 50}, {2, 50}, {2, 60}}), (Steps{{1, 0}, {20, 1}}));
}

TEST(Answer, HasOnlyRowsThatAreVerifiedComparableAndOfTheGroup) {
  ResultRow wrong = row_of("wrong", "fp16", 1);
  wrong.status = Status::wrong;
  ResultRow binary = row_of("binary", "fp16", 1);
  binary.binary = true;
  std::vector<ResultRow> others(5, row_of("other", "fp16", 1));
  others[0].n = 64;
  others[1].layout = "col";
  others[2].precision = "tf32";
  others[3].c_type = "fp16";
  others[4].matrix.source = "other.mtx";
  Answers answers;
  answers.add(wrong);
  answers.add(binary);
  EXPECT_TRUE(answers.all().empty()) << "no row that counts";
  answers.add(row_of("rsh", "fp16", 20));
  for (const ResultRow& row : others) answers.add(row);
  answers.add(row_of("cusparse_csr_default", "fp32", 10, true));  // there to divide by
  const std::vector<Answer> all = answers.all();
  ASSERT_EQ(all.size(), 6U);
  ASSERT_EQ(all[0].steps.size(), 1U);
  EXPECT_EQ(all[0].steps[0].kernel, "rsh");
  EXPECT_EQ(to_string(all[0]), "1 call rsh 3020 us in all, then 20 us each, 0.05 of the limit");
}

TEST(Answer, OfBaselinesAloneIsGivenWhereThereIsNothingElse) {
  Answers answers;
  answers.add(row_of("cusparse_csr_default", "fp32", 10, true));
  EXPECT_EQ(answers.all().size(), 1U);
}

TEST(Table, EndsWithTheAnswerAndOnRequestWithWhatAutoPicked) {
  std::vector<ResultRow> rows = filled({prepared(row_of("cublas_dense", "fp16", 120, true), 0.3),
                                        prepared(row_of("async_wcsr", "fp16", 86.1), 0.5),
                                        prepared(row_of("auto", "fp16", 77.1), 3)});
  rows[2].params = {{"picked", "rsh"}, {"why", "expected rsh 77 us, async_wcsr 86 us"}};
  const std::string table = format_table(rows, {});
  EXPECT_NE(
      table.find("  answer: 1 call cublas_dense 420 us in all \u00b7 from 6 calls async_wcsr 86.1 "
                 "us each \u00b7 from 278 calls auto 77.1 us each, 0.01 of the limit\n"),
      std::string::npos)
      << table;
  EXPECT_EQ(table.find("picked"), std::string::npos);
  EXPECT_NE(format_table(rows, {.why = true})
                .find("auto in fp16 picked rsh: expected rsh 77 us, async_wcsr 86 us\n"),
            std::string::npos);
  EXPECT_NE(format_markdown(rows, {}).find("- answer: 1 call cublas_dense"), std::string::npos);
}

TEST(Table, AnswersForTheNumberOfCallsThatIsAskedFor) {
  const std::vector<ResultRow> rows = filled({prepared(row_of("cublas_dense", "fp16", 120), 0.3),
                                              prepared(row_of("async_wcsr", "fp16", 86.1), 0.5)});
  const auto answer = [&](std::int64_t calls) {
    const std::string table = format_table(rows, {.calls = calls});
    const std::size_t at = table.find("  answer: ");
    return table.substr(at, table.find('\n', at) - at);
  };
  EXPECT_TRUE(answer(5).starts_with("  answer: 5 calls cublas_dense 900 us in all \u00b7 1 call "));
  EXPECT_TRUE(answer(100).starts_with("  answer: 100 calls async_wcsr 9110 us in all \u00b7 1 "));
  EXPECT_TRUE(answer(1).starts_with("  answer: 1 call cublas_dense 420 us in all \u00b7 from 6 "));
}

TEST(Table, NamesThePrecisionOfTheAnswerWhereRowsOfAnotherStandBeside) {
  const std::vector<ResultRow> rows =
      filled({row_of("rsh", "fp16", 20), row_of("cusparse_csr_default", "fp32", 10, true)});
  EXPECT_NE(format_table(rows, {}).find("  answer in fp16: 1 call rsh"), std::string::npos);
}

TEST(Baselines, WrongRowsNeitherGiveNorGetASpeedUp) {
  Baselines baselines;
  ResultRow wrong = row_of("cusparse_csr_default", "fp32", 1, true);
  wrong.status = Status::wrong;
  baselines.add(wrong);
  ResultRow mine = row_of("rsh", "fp16", 20);
  baselines.fill(mine);
  EXPECT_FALSE(mine.speedup.cusparse_default_fp32);
  baselines.add(row_of("cusparse_csr_default", "fp32", 100, true));
  mine.status = Status::wrong;
  baselines.fill(mine);
  EXPECT_FALSE(mine.speedup.cusparse_default_fp32);
}

TEST_F(ReportFiles, WhatIsNoResultDocumentIsRefused) {
  std::ofstream(path("x.json")) << "[1, 2]";
  EXPECT_THROW(read_document(path("x.json")), Error);
  std::ofstream(path("y.json")) << "not json";
  EXPECT_THROW(read_document(path("y.json")), Error);
  EXPECT_THROW(read_document(path("z.json")), Error);
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

TEST(Suggest, ATypingErrorIsRecognisedAndAnotherWordIsNot) {
  const std::vector<std::string> known = {"run", "profile", "list", "show"};
  EXPECT_EQ(closest("rnu", known), "run");
  EXPECT_EQ(closest("profle", known), "profile");
  EXPECT_EQ(closest("shw", known), "show");
  EXPECT_EQ(closest("measure", known), "");
  EXPECT_EQ(did_you_mean("lits", known), " (did you mean 'list'?)");
}

}  // namespace
}  // namespace spmmbench
