#pragma once
// The fields of a result document. Each is described once, in a table: those of a row in
// src/report/fields.cpp, all others in document_fields.cpp. JSON, CSV and results/schema.json are
// made from it. To add a field: a member in include/spmmbench/result.hpp, a row in the table, then
// `spmmbench list schema > results/schema.json`.

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "report/answer.hpp"
#include "spmmbench/result.hpp"

namespace spmmbench {

inline constexpr Status kStatuses[] = {Status::ok, Status::wrong, Status::skipped, Status::failed,
                                       Status::timeout};
inline constexpr const char* kStatusNames = "ok, wrong, skipped, failed or timeout";

// One cell of a line of CSV.
template <class Owner>
struct CsvColumn {
  std::string name;
  std::function<std::string(const Owner&)> text;  // empty: absent
  bool real = false;  // of a number with digits behind the point, all of which are in the text
};

const std::vector<CsvColumn<ResultRow>>& row_columns();

nlohmann::ordered_json to_json(const ResultRow& row);
nlohmann::ordered_json to_json(const RunContext& context);
nlohmann::ordered_json to_json(const Answer& answer);
// Throw Error naming a field that is missing or of the wrong type.
ResultRow row_from_json(const nlohmann::ordered_json& json);
RunContext context_from_json(const nlohmann::ordered_json& json);

nlohmann::ordered_json result_schema();  // of a whole document, as JSON Schema 2020-12

}  // namespace spmmbench
