#pragma once
// Result rows and documents as JSON (results/schema.json describes it). Numbers are numbers; absent
// values are null; an infinite break-even is the string "never"; other non-finite numbers are the
// strings "inf" and "nan".

#include <exception>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "report/fields.hpp"
#include "spmmbench/result.hpp"

namespace spmmbench {

// On one line; bytes that are no UTF-8 (file names) are replaced.
std::string dump_line(const nlohmann::ordered_json& json);
// The row that dump_line made a line of; empty for any other line.
std::optional<ResultRow> row_from_line(const std::string& line);

// What the JSON library found wrong in a file, in words for somebody who did not write the reader.
std::string describe_json_error(const std::exception& error);

// Reads a document as written by Journal. Throws Error for a file that is not one, or of another
// schema version.
ResultDocument read_document(const std::string& path);
// The same without holding the rows: each is handed to `visit` as it is read, and the document that
// is returned has none.
ResultDocument scan_document(const std::string& path, const std::function<void(ResultRow)>& visit);

}  // namespace spmmbench
