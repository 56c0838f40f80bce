#include "report/csv.hpp"

#include "report/fields.hpp"

namespace spmmbench {
namespace {

// RFC 4180: a field with a comma, quote or line break is quoted, quotes doubled.
std::string quoted(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"') out += '"';
    out += c;
  }
  return out + '"';
}

}  // namespace

std::string csv_header() {
  std::string line;
  for (const auto& column : row_columns()) line += (line.empty() ? "" : ",") + column.name;
  return line;
}

std::string csv_line(const ResultRow& row) {
  std::string line;
  bool first = true;
  for (const auto& column : row_columns()) {
    if (!first) line += ',';
    first = false;
    line += quoted(column.text(row));
  }
  return line;
}

}  // namespace spmmbench
