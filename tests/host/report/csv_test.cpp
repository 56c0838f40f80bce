#include <gtest/gtest.h>

#include "report/csv.hpp"
#include "report/json.hpp"
#include "result_rows.hpp"

namespace spmmbench {
namespace {

TEST(Csv, HasEveryScalarFieldOfTheJsonUnderAUniqueName) {
  const std::string header = "," + csv_header() + ",";
  for (const std::string name : {"matrix", "nnz", "kernel", "load_ms", "format", "format_fill",
                                 "hot_median_us", "cold_n", "speedup_cublas", "command"})
    EXPECT_NE(header.find("," + name + ","), std::string::npos) << name;
  std::set<std::string> names;
  for (const auto& column : row_columns())
    EXPECT_TRUE(names.insert(column.name).second) << column.name;
}

TEST(Csv, HasTheTimeOfEveryStageAndOfAllButLoading) {
  ResultRow row = row_of("auto", "fp16", 1);
  const auto cell = [&row](const std::string& name) {
    for (const auto& column : row_columns())
      if (column.name == name) return column.text(row);
    return std::string("no such column");
  };
  row.stages_ms = {{"load", 5}, {"build", 2}, {"choose", 0.5}, {"compare", 1}, {"own", 4}};
  EXPECT_EQ(cell("choose_ms"), "0.5");
  EXPECT_EQ(cell("compare_ms"), "1");
  EXPECT_EQ(cell("prepare_ms"), "7.5");
  row.stages_ms = {{"load", 5}};
  EXPECT_EQ(cell("prepare_ms"), "") << "nothing was prepared";
}

TEST(Csv, HasAsManyFieldsAsItsHeader) {
  const ResultRow row = row_of("k", "fp16", 1);
  const auto fields = [](const std::string& line) {
    return std::count(line.begin(), line.end(), ',');
  };
  EXPECT_EQ(fields(csv_header()), fields(csv_line(row)));
}

TEST(Csv, CallsThatNeverPayAreNamedAsInTheJson) {
  ResultRow row = row_of("k", "fp16", 1);
  row.break_even_calls = std::numeric_limits<double>::infinity();
  EXPECT_NE(csv_line(row).find(",never,"), std::string::npos) << csv_line(row);
}

TEST(Csv, QuotesCommasAndQuotes) {
  ResultRow row = row_of("k", "fp16", 1);
  row.reason = "a \"b\", c";
  EXPECT_NE(csv_line(row).find("\"a \"\"b\"\", c\""), std::string::npos);
}

TEST(Csv, ShowsControlCharacters) {
  ResultRow row = row_of("k", "fp16", 1);
  row.reason = "a\x1b[2J\nb";
  EXPECT_NE(csv_line(row).find("\"a\\x1b[2J\nb\""), std::string::npos) << csv_line(row);
}

}  // namespace
}  // namespace spmmbench
