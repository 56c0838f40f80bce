#include "report/json.hpp"

#include <fmt/format.h>

#include <istream>
#include <memory>

#include "core/parse_json.hpp"
#include "io/file.hpp"
#include "spmmbench/error.hpp"

namespace spmmbench {

using Json = nlohmann::ordered_json;

std::string dump_line(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::optional<ResultRow> row_from_line(const std::string& line) try {
  const Json json = parse_json_if_any(line);
  if (!json.is_object() || !json.contains("kernel")) return std::nullopt;
  return row_from_json(json);
} catch (const Error&) {  // what a plug-in prints may look like a row
  return std::nullopt;
}

// The library writes "[json.exception.NAME.NUMBER] " first, and for text that is no JSON "parse
// error at line L, column C: syntax error while parsing WHAT - " before what it met and expected.
std::string describe_json_error(const std::exception& error) {
  std::string text = error.what();
  if (const auto tag = text.find("] "); tag != std::string::npos) text.erase(0, tag + 2);
  const std::string place = "parse error at ";
  if (!text.starts_with(place)) return text;
  text.erase(0, place.size());
  const auto begin = text.find(": syntax error"), end = text.find(" - ");
  if (begin != std::string::npos && end != std::string::npos && begin < end)
    text.replace(begin, end + 3 - begin, ": ");
  return "no JSON: " + text;
}

ResultDocument scan_document(const std::string& path, const std::function<void(ResultRow)>& visit) {
  const std::unique_ptr<std::istream> file = open_text(path);
  // The parser's depth is 1 for the document's own keys and 2 for the end of a row in `rows`.
  std::string key;
  std::size_t count = 0;  // of rows
  const auto take_row = [&](const Json& json) {
    try {
      return row_from_json(json);
    } catch (const Error& error) {  // which names the field only
      throw Error(fmt::format("{}: rows[{}]: {}", path, count, error.what()), error.code());
    }
  };
  const auto take_rows = [&](int depth, Json::parse_event_t event, Json& parsed) {
    if (depth == 1 && event == Json::parse_event_t::key) key = parsed.get<std::string>();
    if (depth == 1 && event == Json::parse_event_t::value && key == "schema_version" &&
        parsed != kSchemaVersion)
      throw Error(
          fmt::format("{}: schema version {}, expected {}", path, parsed.dump(), kSchemaVersion));
    if (key != "rows") return true;
    const bool list = event == Json::parse_event_t::array_start;
    const bool value = event == Json::parse_event_t::value;
    if (depth == 1 && (value || event == Json::parse_event_t::object_start))
      throw Error(fmt::format("{}: 'rows': expected a list", path));
    if (depth == 2 && (value || list))
      throw Error(fmt::format("{}: 'rows[{}]': expected an object, got {}", path, count,
                              list ? "a list" : parsed.dump().substr(0, 40)));
    if (depth != 2 || event != Json::parse_event_t::object_end) return true;
    visit(take_row(parsed));
    ++count;
    return false;
  };
  try {
    const Json json = parse_json(*file, take_rows);
    if (!json.is_object() || !json.contains("schema_version") || !json.contains("rows"))
      throw Error(fmt::format("{}: expected a result document of `spmmbench run --json`", path));
    if (json.at("schema_version") != kSchemaVersion || !json.at("rows").is_array())
      throw Error(
          fmt::format("{}: expected schema version {} and a list of rows", path, kSchemaVersion));
    ResultDocument document;
    try {
      document.context = context_from_json(json.at("context"));
    } catch (const Error& error) {
      throw Error(fmt::format("{}: {}", path, error.what()), error.code());
    }
    const Json& complete = json.at("complete");
    if (!complete.is_boolean())
      throw Error(fmt::format("{}: 'complete': expected true or false, got {}", path,
                              complete.dump().substr(0, 40)));
    document.complete = complete;
    return document;
  } catch (const nlohmann::json::exception& error) {
    throw Error(fmt::format("{}: {}", path, describe_json_error(error)));
  }
}

ResultDocument read_document(const std::string& path) {
  std::vector<ResultRow> rows;
  ResultDocument document =
      scan_document(path, [&](ResultRow row) { rows.push_back(std::move(row)); });
  document.rows = std::move(rows);
  return document;
}

}  // namespace spmmbench
