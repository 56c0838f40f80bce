#include "report/journal_lines.hpp"

#include <fmt/format.h>
#include <zlib.h>

#include <fstream>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "core/parse_json.hpp"
#include "io/input.hpp"
#include "report/fields.hpp"
#include "report/identity.hpp"
#include "report/json.hpp"
#include "spmmbench/error.hpp"
#include "spmmbench/printable.hpp"

namespace spmmbench {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kChecksumKey = ",\"crc32\":\"";
constexpr std::size_t kChecksumDigits = 8;
constexpr std::size_t kChecksumLength = kChecksumKey.size() + kChecksumDigits + 2;  // and `"}`

std::string checksum_member(std::string_view body) {
  const uLong crc = crc32_z(0, reinterpret_cast<const Bytef*>(body.data()), body.size());
  return fmt::format("{}{:0{}x}\"}}", kChecksumKey, crc, kChecksumDigits);
}

// The inverse of journal_line; empty for any other line.
std::optional<Json> open_line(const std::string& line) {
  if (line.size() < kChecksumLength) return std::nullopt;
  const std::string body = line.substr(0, line.size() - kChecksumLength);
  if (line.substr(body.size()) != checksum_member(body)) return std::nullopt;
  Json json = parse_json_if_any(body + '}');
  return json.is_object() ? std::optional(std::move(json)) : std::nullopt;
}

}  // namespace

bool visit_journal_line(const std::string& line, std::uint64_t offset,
                        const JournalVisitor& visit) try {
  const std::optional<Json> json = open_line(line);
  if (!json) return false;
  if (json->contains("git_revision")) visit.context(context_from_json(*json));
  else if (json->contains("kernel")) visit.row(offset, row_from_json(*json));
  else visit.end();
  return true;
} catch (const Error&) {  // the line has a field that this version cannot read
  return false;
}

void read_journal_lines(const std::string& path, const JournalVisitor& visit) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw Error(fmt::format("{}: cannot be opened", path));
  std::uint64_t offset = 0;
  std::size_t number = 0;
  for (std::string line; std::getline(file, line); offset += line.size() + 1) {
    ++number;
    const bool cut = file.eof();  // no line break: a kill came while it was written
    if (!visit_journal_line(line, offset, visit) && !cut)
      visit.damage(fmt::format("{}:{}: damaged: the checksum does not match", path, number));
  }
}

std::string journal_line(const Json& json) {
  std::string line = dump_line(json);
  line.pop_back();  // the closing brace
  return line + checksum_member(line);
}

ResultDocument read_journal(const std::string& path, std::vector<std::string>* damaged) {
  std::optional<RunContext> context;
  ResultDocument document;
  std::map<std::string, std::size_t> index_of;
  std::map<std::string, std::string> source_of;  // of each matrix, from its last row
  std::map<std::pair<std::string, std::string>, std::string> matrix_at;  // the last one of a name
  std::map<std::string, std::string> place_of;                           // by source
  const auto spot_of = [&](const std::string& name, const std::string& source) {
    const auto [it, inserted] = place_of.try_emplace(source);
    if (inserted) it->second = place_of_input(from_printable(source));
    return std::pair(name, it->second);
  };
  read_journal_lines(path, {[&](RunContext found) { context = std::move(found); },
                            [&](std::uint64_t, ResultRow row) {
                              const std::string matrix = identity_of(row.matrix);
                              source_of[matrix] = row.matrix.source;
                              matrix_at[spot_of(row.matrix.name, row.matrix.source)] = matrix;
                              const auto [it, inserted] =
                                  index_of.try_emplace(case_key(row), document.rows.size());
                              if (inserted) document.rows.push_back(std::move(row));
                              else document.rows[it->second] = std::move(row);
                            },
                            [&] { document.complete = true; },
                            [&](const std::string& line) {
                              if (damaged != nullptr) damaged->push_back(line);
                            }});
  if (!context) throw Error(fmt::format("{}:1: expected the run's context", path));
  document.context = std::move(*context);
  std::erase_if(document.rows, [&](const ResultRow& row) {
    const std::string matrix = identity_of(row.matrix);
    return matrix_at[spot_of(row.matrix.name, source_of[matrix])] != matrix;
  });
  for (ResultRow& row : document.rows) row.matrix.source = source_of[identity_of(row.matrix)];
  return document;
}

}  // namespace spmmbench
