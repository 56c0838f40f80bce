#include "report/recorded.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>

#include "core/parse_json.hpp"
#include "report/baselines.hpp"
#include "report/consistency.hpp"
#include "report/journal.hpp"
#include "report/journal_lines.hpp"
#include "report/json.hpp"
#include "spmmbench/error.hpp"
#include "spmmbench/spec.hpp"

namespace spmmbench {
namespace {

using Json = nlohmann::ordered_json;

// A journal is so called, or its first line is the context; a document's first line has its
// version.
bool is_journal(const std::string& path) {
  if (path.ends_with(kJournalEnding)) return true;
  if (!std::filesystem::is_regular_file(path)) return false;  // a pipe can be read once only
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  const Json json = parse_json_if_any(line);
  return json.is_object() && json.contains("git_revision");
}

}  // namespace

ResultDocument read_recorded(const std::string& path, std::optional<std::int64_t> calls,
                             std::vector<std::string>* damaged) {
  if (const std::string journal = journal_of({path, ""});
      !std::filesystem::exists(path) && std::filesystem::exists(journal))
    throw Error(fmt::format("{}: no such file; {} has the rows of the run that has not ended", path,
                            journal));
  ResultDocument document = is_journal(path) ? read_journal(path, damaged) : read_document(path);
  require_consistent(path, document.rows);
  if (calls) document.context.calls = *calls;
  compare_rows(document);
  return document;
}

void require_names(const std::string& path, const ResultRow& row) try {
  Spec::parse(row.kernel);
  Spec::parse(row.reorder);
} catch (const Error& error) {
  throw Error(fmt::format("{}: {}", path, error.what()), error.code());
}

void compare_rows(ResultDocument& document) {
  Baselines baselines(document.context.calls);
  for (const ResultRow& row : document.rows) baselines.add(row);
  for (ResultRow& row : document.rows) baselines.fill(row);
}

}  // namespace spmmbench
