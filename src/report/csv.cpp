#include "report/csv.hpp"

#include <string_view>

#include "core/parse_number.hpp"
#include "report/fields.hpp"
#include "spmmbench/printable.hpp"

namespace spmmbench {
namespace {

// RFC 4180: a field with a comma, quote or line break is quoted, quotes doubled. What a spreadsheet
// would take for a formula gets an apostrophe before it.
std::string quoted(std::string text) {
  if (!text.empty() && std::string_view("=+-@\t\r").find(text[0]) != std::string_view::npos &&
      !parse_number<double>(text))
    text.insert(0, 1, '\'');
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
    line += quoted(printable_message(column.text(row), true));
  }
  return line;
}

}  // namespace spmmbench
