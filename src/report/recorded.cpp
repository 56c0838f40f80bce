#include "report/recorded.hpp"

#include <fmt/format.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "report/baselines.hpp"
#include "report/journal.hpp"
#include "report/json.hpp"
#include "spmmbench/error.hpp"

namespace spmmbench {
namespace {

using Json = nlohmann::ordered_json;

// The context is a journal's first line; a document's first line has its version.
bool is_journal(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw Error(fmt::format("{}: cannot be opened", path));
  std::string line;
  std::getline(file, line);
  const Json json = Json::parse(line, nullptr, false);
  return json.is_object() && json.contains("git_revision");
}

}  // namespace

ResultDocument read_recorded(const std::string& path, std::optional<std::int64_t> calls) {
  ResultDocument document = is_journal(path) ? read_journal(path) : read_document(path);
  if (calls) document.context.calls = *calls;
  Baselines baselines(document.context.calls);
  for (const ResultRow& row : document.rows) baselines.add(row);
  for (ResultRow& row : document.rows) baselines.fill(row);
  return document;
}

}  // namespace spmmbench
