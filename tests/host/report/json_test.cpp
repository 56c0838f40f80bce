#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "report/json.hpp"
#include "result_rows.hpp"
#include "spmmbench/error.hpp"

namespace spmmbench {
namespace {

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
  row.speedup = {1, 2, 3, 4, 5, 6, {}};
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
    EXPECT_STREQ(error.what(), "'hot.median_us': expected a number, got \"12 us\"");
  }
}

// What the reader says of a row in which `change` was made.
template <class Change>
std::string refusal_of(const Change& change) try {
  auto json = to_json(full_row());
  change(json);
  row_from_json(nlohmann::ordered_json::parse(json.dump()));
  return "accepted";
} catch (const Error& error) {
  return error.what();
}

TEST(Json, AValueOutsideTheLimitsOfTheSchemaIsRefused) {
  using Row = nlohmann::ordered_json;
  EXPECT_EQ(refusal_of([](Row&) {}), "accepted");
  EXPECT_EQ(refusal_of([](Row& row) { row["hot"]["median_us"] = -1e-9; }),
            "'hot.median_us': expected at least 0, got -1e-09");
  EXPECT_EQ(refusal_of([](Row& row) { row["hot"]["launches_per_sample"] = 0; }),
            "'hot.launches_per_sample': expected at least 1, got 0");
  EXPECT_EQ(refusal_of([](Row& row) { row["hot"]["samples_us"] = Row::array(); }),
            "'hot.samples_us': expected a list, not empty, got []");
  EXPECT_EQ(refusal_of([](Row& row) { row["n"] = std::uint64_t{1} << 63; }),
            "'n': expected an integer from 0 to 9223372036854775807, got 9223372036854775808");
  EXPECT_EQ(refusal_of([](Row& row) { row["n"] = -5; }),
            "'n': expected an integer from 0 to 9223372036854775807, got -5");
  EXPECT_EQ(refusal_of([](Row& row) { row["n"] = 0; }), "'n': expected at least 1, got 0");
  EXPECT_EQ(refusal_of([](Row& row) { row["device_bytes"] = -1; }),
            "'device_bytes': expected an integer from 0 to 18446744073709551615, got -1");
  EXPECT_EQ(refusal_of([](Row& row) { row["kernel"] = ""; }),
            "'kernel': expected text, not empty, got \"\"");
  EXPECT_EQ(
      refusal_of([](Row& row) { row["precision"] = "fp8"; }),
      R"('precision': expected one of ["fp32","tf32","fp16","bf16","fp64","fp8_e4m3","fp8_e5m2","fp8_e4m3_block"], got "fp8")");
  EXPECT_EQ(refusal_of([](Row& row) { row["layout"] = "rows"; }),
            R"('layout': expected one of ["row","col"], got "rows")");
  EXPECT_EQ(refusal_of([](Row& row) { row["break_even_calls"] = -3; }),
            "'break_even_calls': expected at least 0, got -3");
  auto context = to_json(RunContext{});
  context["argv"] = {"spmmbench"};
  context["calls"] = -3;
  try {
    context_from_json(context);
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "context: 'calls': expected an integer from 0 to 9223372036854775807, got -3");
  }
}

TEST(Json, ALineThatIsNoRowIsNone) {
  EXPECT_TRUE(row_from_line(dump_line(to_json(full_row()))));
  for (const char* line : {"", "text", "7", "{}", R"({"kernel": 1})"})
    EXPECT_FALSE(row_from_line(line)) << line;
}

TEST(Json, ReadsBackWhatItWrites) {
  EXPECT_EQ(to_json(row_from_json(to_json(full_row()))), to_json(full_row()));
  RunContext context;
  context.argv = {"spmmbench", "run"};
  context.protocol = {{"noise_limit", "0.01"}};
  context.copy_gb_per_s = 4000;
  context.clocks_before.power_w = 700;
  context.device.kind = DeviceKind::cuda;
  EXPECT_EQ(to_json(context_from_json(to_json(context))), to_json(context));
}

TEST_F(ReportFiles, WhatIsNoResultDocumentIsRefused) {
  std::ofstream(path("x.json")) << "[1, 2]";
  EXPECT_THROW(read_document(path("x.json")), Error);
  std::ofstream(path("y.json")) << "not json";
  EXPECT_THROW(read_document(path("y.json")), Error);
  EXPECT_THROW(read_document(path("z.json")), Error);
}

TEST_F(ReportFiles, WhatIsNoRowOfADocumentIsNamedWithFileAndField) {
  context_.copy_gb_per_s = 1;
  context_.argv = {"spmmbench"};
  const auto refusal = [&](const char* field, const nlohmann::ordered_json& value) {
    nlohmann::ordered_json document = {{"schema_version", kSchemaVersion},
                                       {"context", to_json(context_)},
                                       {"complete", true},
                                       {"rows", {to_json(row_of("k", "fp16", 1))}}};
    document[field] = value;
    std::ofstream(path("x.json")) << document;
    try {
      return std::to_string(read_document(path("x.json")).rows.size());
    } catch (const Error& error) {
      return std::string(error.what()).substr(path("").size());
    }
  };
  const auto row = to_json(row_of("k", "fp16", 1));
  EXPECT_EQ(refusal("rows", {row, row}), "2");
  EXPECT_EQ(refusal("rows", {1, row}), "x.json: 'rows[0]': expected an object, got 1");
  EXPECT_EQ(refusal("rows", {row, nullptr}), "x.json: 'rows[1]': expected an object, got null");
  EXPECT_EQ(refusal("rows", {row, "x"}), "x.json: 'rows[1]': expected an object, got \"x\"");
  EXPECT_EQ(refusal("rows", {row, {1, row}}), "x.json: 'rows[1]': expected an object, got a list");
  for (const nlohmann::ordered_json& no_list : {nlohmann::ordered_json(7), row})
    EXPECT_EQ(refusal("rows", no_list), "x.json: 'rows': expected a list");
  EXPECT_EQ(refusal("complete", "yes"), "x.json: 'complete': expected true or false, got \"yes\"");
}

}  // namespace
}  // namespace spmmbench
