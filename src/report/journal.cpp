#include "report/journal.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "report/csv.hpp"
#include "report/json.hpp"
#include "spmmbench/error.hpp"

namespace spmmbench {
namespace {

using Json = nlohmann::ordered_json;

// Whole lines of a journal that parse as result rows. The line a kill cut short is passed over.
template <class Visit>
void for_each_row(const std::string& path, Visit visit) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);  // the context
  for (std::size_t index = 0; std::getline(file, line); ++index) {
    const Json json = Json::parse(line, nullptr, false);
    if (!json.is_discarded()) visit(index, row_from_json(json));
  }
}

void check_same_run(const RunContext& old, const RunContext& now, const std::string& path) {
  if (old.device.name != now.device.name || old.seed != now.seed)
    throw Error(fmt::format("{}: measured on '{}' with seed {}, this run is on '{}' with seed {}",
                            path, old.device.name, old.seed, now.device.name, now.seed),
                ExitCode::not_comparable);
  for (const auto& [name, value] : now.protocol) {
    const auto it = old.protocol.find(name);
    if (name != "isolated" && it != old.protocol.end() && it->second != value)
      throw Error(
          fmt::format("{}: measured with {} = {}, this run has {}", path, name,
                      it->second.empty() ? "none" : it->second, value.empty() ? "none" : value),
          ExitCode::not_comparable);
  }
}

RunContext read_journal_context(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  const Json json = Json::parse(line, nullptr, false);
  if (json.is_discarded()) throw Error(fmt::format("{}:1: expected the run's context", path));
  return context_from_json(json);
}

// Written beside its destination and renamed over it by commit().
class AtomicFile {
 public:
  explicit AtomicFile(std::string path) : path_(std::move(path)), temporary_(path_ + ".part") {
    stream_.open(temporary_);
    if (!stream_) throw Error(fmt::format("{}: cannot be written: {}", path_, strerror(errno)));
  }
  std::ofstream& stream() { return stream_; }
  void commit() {
    stream_.close();
    std::error_code error;
    if (stream_.fail()) throw Error(fmt::format("{}: write failed", path_));
    std::filesystem::rename(temporary_, path_, error);
    if (error) throw Error(fmt::format("{}: {}", path_, error.message()));
  }

 private:
  std::string path_, temporary_;
  std::ofstream stream_;
};

void check_writable(const std::string& path) {
  if (path.empty()) return;
  if (std::filesystem::is_directory(path))
    throw Error(fmt::format("{}: is a directory, expected a file to write", path));
  std::FILE* file = std::fopen(path.c_str(), "ab");
  if (file == nullptr) throw Error(fmt::format("{}: cannot be written: {}", path, strerror(errno)));
  std::fclose(file);
  if (std::filesystem::file_size(path) == 0) std::filesystem::remove(path);
}

// A run holds a lock on its journal; the lock goes with the process, however that ends.
void check_not_in_use(const std::string& path) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return;
  const bool in_use = flock(file, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  close(file);
  if (in_use) throw Error(fmt::format("{}: another run is writing it", path));
}

}  // namespace

std::string case_key(const ResultRow& row) {
  return fmt::format("{}|{}|{}|{}|{}|{}|{}", row.matrix.source, row.n, row.kernel, row.precision,
                     row.c_type, row.layout, row.reorder);
}

ResultDocument read_journal(const std::string& path) {
  ResultDocument document;
  document.context = read_journal_context(path);
  std::map<std::string, std::size_t> index_of;
  for_each_row(path, [&](std::size_t, ResultRow row) {
    const auto [it, inserted] = index_of.try_emplace(case_key(row), document.rows.size());
    if (inserted) document.rows.push_back(std::move(row));
    else document.rows[it->second] = std::move(row);
  });
  return document;
}

Journal::Journal(Paths paths, RunContext context, bool resume)
    : paths_(std::move(paths)), context_(std::move(context)), baselines_(context_.calls) {
  check_writable(paths_.json);
  check_writable(paths_.csv);
  path_ = (paths_.json.empty() ? paths_.csv : paths_.json) + ".journal";

  const bool journal = resume && std::filesystem::exists(path_);
  const bool document =
      resume && !journal && !paths_.json.empty() && std::filesystem::exists(paths_.json);
  if (journal) check_same_run(read_journal_context(path_), context_, path_);
  if (document)
    check_same_run(scan_document(paths_.json, [](const ResultRow&) {}).context, context_,
                   paths_.json);

  check_not_in_use(path_);
  const std::string fresh = path_ + ".part";
  file_ = std::fopen(fresh.c_str(), "wbe");
  if (file_ == nullptr)
    throw Error(fmt::format("{}: cannot be written: {}", fresh, strerror(errno)));
  flock(fileno(file_), LOCK_EX | LOCK_NB);
  fmt::print(file_, "{}\n", dump_line(to_json(context_)));
  if (journal) for_each_row(path_, [&](std::size_t, const ResultRow& row) { append(row); });
  if (document) scan_document(paths_.json, [this](const ResultRow& row) { append(row); });
  std::fflush(file_);
  std::filesystem::rename(fresh, path_);
}

Journal::~Journal() {
  if (file_ != nullptr) std::fclose(file_);
}

void Journal::append(const ResultRow& row) {
  const std::string line = dump_line(to_json(row)) + '\n';
  if (std::fwrite(line.data(), 1, line.size(), file_) != line.size() || std::fflush(file_) != 0)
    throw Error(fmt::format("{}: write failed: {}", path_, strerror(errno)));
  const auto [it, inserted] = cases_.try_emplace(case_key(row), Entry{lines_, row.status});
  if (!inserted) it->second = {lines_, row.status};
  ++lines_;
  baselines_.add(row);
}

std::optional<Status> Journal::status_of(const std::string& key) const {
  const auto it = cases_.find(key);
  return it == cases_.end() ? std::nullopt : std::optional(it->second.status);
}

bool Journal::any(const std::function<bool(Status)>& is) const {
  return std::any_of(cases_.begin(), cases_.end(),
                     [&](const auto& entry) { return is(entry.second.status); });
}

std::map<std::string, Status> Journal::statuses_of(const std::string& source) const {
  const std::string prefix = source + '|';
  std::map<std::string, Status> found;
  for (auto it = cases_.lower_bound(prefix); it != cases_.end() && it->first.starts_with(prefix);
       ++it)
    found.emplace(it->first, it->second.status);
  return found;
}

void Journal::finish(const ClockState& clocks_after, bool complete) {
  context_.clocks_after = clocks_after;
  const auto counts = [&](std::size_t index, const ResultRow& row) {
    return cases_.at(case_key(row)).index == index;
  };

  std::optional<AtomicFile> json, csv;
  if (!paths_.json.empty()) json.emplace(paths_.json);
  if (!paths_.csv.empty()) csv.emplace(paths_.csv);
  if (json)
    json->stream() << "{\"schema_version\": " << kSchemaVersion
                   << ",\n\"context\": " << dump_line(to_json(context_))
                   << ",\n\"complete\": " << (complete ? "true" : "false") << ",\n\"rows\": [";
  if (csv) csv->stream() << csv_header() << '\n';
  bool first = true;
  Answers answers;
  for_each_row(path_, [&](std::size_t index, ResultRow row) {
    if (!counts(index, row)) return;
    baselines_.fill(row);
    answers.add(row);
    if (json) json->stream() << (first ? "\n" : ",\n") << dump_line(to_json(row));
    if (csv) csv->stream() << csv_line(row) << '\n';
    first = false;
  });
  if (json) {
    json->stream() << "\n],\n\"answers\": [";
    first = true;
    for (const Answer& answer : answers.all()) {
      json->stream() << (first ? "\n" : ",\n") << dump_line(to_json(answer));
      first = false;
    }
    json->stream() << "\n]}\n";
    json->commit();
  }
  if (csv) csv->commit();
  if (complete) {
    std::fclose(std::exchange(file_, nullptr));
    std::filesystem::remove(path_);
  }
}

}  // namespace spmmbench
