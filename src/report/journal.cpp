#include "report/journal.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/contains.hpp"
#include "core/numbered.hpp"
#include "io/file.hpp"
#include "io/input.hpp"
#include "report/answer.hpp"
#include "report/csv.hpp"
#include "report/identity.hpp"
#include "report/journal_lines.hpp"
#include "report/json.hpp"
#include "report/machine_and_build.hpp"
#include "spmmbench/error.hpp"
#include "spmmbench/printable.hpp"

namespace spmmbench {
namespace {

// The context is written on this many lines, so that damage to one line loses no rows.
constexpr int kContextLines = 2;

struct Contents {
  std::optional<RunContext> context;
  std::size_t rows = 0;
  bool complete = false;
};

Contents look_into(const std::string& path) {
  Contents found;
  read_journal_lines(path, {[&](RunContext context) { found.context = std::move(context); },
                            [&](std::uint64_t, const ResultRow&) { ++found.rows; },
                            [&] { found.complete = true; }, [](const std::string&) {}});
  return found;
}

// Throws Error where the journal has no context.
Contents readable(const std::string& path) {
  Contents found = look_into(path);
  if (!found.context)
    throw Error(
        fmt::format("{}:1: damaged, or of another version: expected the run's context: "
                    "--overwrite gives it up",
                    path));
  return found;
}

// The rows of one document are of one build on one machine under one protocol.
void require_same_run(const RunContext& old, const RunContext& now, const std::string& path) {
  std::vector<Difference> found = differences_of_machine_and_build(old, now);
  const auto check = [&found](const std::string& field, const auto& was, const auto& is) {
    if (was != is) found.push_back({field, fmt::format("{}", was), fmt::format("{}", is)});
  };
  check("seed", old.seed, now.seed);
  for (const auto& [name, value] : now.protocol)
    if (const auto it = old.protocol.find(name); name != "isolated" && it != old.protocol.end())
      check(name, it->second, value);
  if (found.empty()) return;
  throw Error(fmt::format("{}: was measured with {} '{}', this run has '{}': name another output "
                          "file, or --overwrite to measure all of it again",
                          path, found[0].field, found[0].one, found[0].other),
              ExitCode::not_comparable);
}

// A resumed run keeps the original start time, command and measured rates, to which the bounds of
// its rows belong. The plug-ins are those of both runs.
RunContext continued(RunContext earlier, const RunContext& now) {
  earlier.protocol.insert(now.protocol.begin(), now.protocol.end());
  earlier.tags = now.tags;
  if (now.shards.empty()) earlier.shards.clear();
  else if (!earlier.shards.empty() && !contains(earlier.shards, now.shards.front()))
    earlier.shards.push_back(now.shards.front());
  earlier.calls = now.calls;
  if (!earlier.gather_gb_per_s) earlier.gather_gb_per_s = now.gather_gb_per_s;
  if (!earlier.dense_tflops) earlier.dense_tflops = now.dense_tflops;
  return earlier;
}

std::string journal_name(const std::string& output) { return output + std::string(kJournalEnding); }

}  // namespace

std::string journal_of(const RunOutputs& paths) {
  for (const std::string& output : {paths.json, paths.csv})
    if (!output.empty() && !is_stream(output)) return journal_name(output);
  return {};
}

void require_own_files(const RunOutputs& paths, const std::vector<std::string>& inputs) {
  if (!paths.json.empty() && paths.json == paths.csv)
    throw Error(
        fmt::format("{}: expected different files for the document and the CSV", paths.json));
  require_two_files(paths.json, paths.csv);
  const std::string journal = journal_of(paths);
  const std::string& owner = journal == journal_name(paths.json) ? paths.json : paths.csv;
  for (const std::string* output : {&paths.json, &paths.csv}) {
    require_not_an_input(*output, inputs);
    if (!shared_name(journal, *output).empty())
      throw Error(
          fmt::format("{}: is the journal of {}: expected another file to write", *output, owner));
  }
  for (const std::string& input : inputs)
    if (!shared_name(journal, input).empty())
      throw Error(
          fmt::format("{}: is the journal of the output {}: expected another input", input, owner));
}

void require_no_unfinished(const RunOutputs& paths, bool can_resume) {
  const std::string path = journal_of(paths);
  if (!has_content(path)) return;
  const Contents found = readable(path);
  if (found.rows > 0 && !found.complete)
    throw Error(fmt::format("{}: has {} of a run that did not end: {}--overwrite gives it up", path,
                            numbered(found.rows, "case"),
                            can_resume ? "--resume goes on with it, " : ""));
}

std::optional<RunContext> earlier_context(const RunOutputs& paths) {
  const std::string journal = journal_of(paths);
  if (has_content(journal)) return look_into(journal).context;
  if (journal != journal_name(paths.json) || !has_content(paths.json)) return std::nullopt;
  return scan_document(paths.json, [](const ResultRow&) {}).context;
}

Journal::Journal(RunOutputs paths, RunContext context, Earlier earlier, bool can_resume)
    : paths_(std::move(paths)),
      context_(std::move(context)),
      can_resume_(can_resume),
      baselines_(context_.calls) {
  open_outputs();
  if (path_.empty()) {
    folder_ = std::make_unique<TemporaryFolder>();
    path_ = folder_->file("journal");
  }
  require_can_begin(earlier);
  const bool journal = has_content(path_);
  const bool document = !journal && has_document() && has_content(paths_.json);
  if (journal && earlier == Earlier::take_over && !look_into(path_).complete)
    earlier_ending_ = Ending::interrupted;
  if (document && earlier == Earlier::take_over) {
    const ResultDocument found = scan_document(paths_.json, [](const ResultRow&) {});
    require_same_run(found.context, context_, paths_.json);
    if (!found.complete) earlier_ending_ = Ending::partly_read;
  }
  if (earlier == Earlier::take_over)
    if (std::optional<RunContext> found = earlier_context(paths_))
      context_ = continued(*std::move(found), context_);

  file_.emplace(path_);
  file_->begin_anew();
  for (int i = 0; i < kContextLines; ++i) write_line(journal_line(to_json(context_)));
  if (earlier == Earlier::take_over && (journal || document))
    take_over(journal ? path_ : paths_.json, journal);
  file_->end_anew();
}

Journal::Journal(RunOutputs paths, bool give_up) : paths_(std::move(paths)), durable_(false) {
  open_outputs();
  given_up_ = path_;
  if (path_.empty()) {
    folder_ = std::make_unique<TemporaryFolder>();
    path_ = folder_->file("journal");
  } else {
    require_can_begin(give_up ? Earlier::give_up : Earlier::keep);
  }
  file_.emplace(LineFile::without_a_name(path_));
  path_ = file_->path();
}

void Journal::open_outputs() {
  require_own_files(paths_, {});
  if (!paths_.json.empty()) json_.emplace(paths_.json);
  if (!paths_.csv.empty()) csv_.emplace(paths_.csv);
  path_ = journal_of(paths_);
}

void Journal::require_can_begin(Earlier earlier) const {
  if (earlier == Earlier::give_up || !has_content(path_)) return;
  if (earlier == Earlier::keep) require_no_unfinished(paths_, can_resume_);
  else require_same_run(*readable(path_).context, context_, path_);
}

void Journal::take_over(const std::string& path, bool is_journal) {
  if (!is_journal) {
    scan_document(path, [this](const ResultRow& row) { append(row); });
    return;
  }
  read_journal_lines(path, {[](const RunContext&) {},
                            [this](std::uint64_t, const ResultRow& row) { append(row); }, [] {},
                            [this](const std::string& line) {
                              damaged_.push_back(line + ": what it held is measured again");
                            }});
}

bool Journal::has_document() const { return path_ == journal_name(paths_.json); }

void Journal::write_line(const std::string& line) {
  file_->append(line, durable_);
  size_ += line.size() + 1;
}

// A file that was written anew has the same name and another content.
std::size_t Journal::give_up_other_matrices(const MatrixSummary& matrix) {
  std::size_t count = 0;
  const std::string place = place_of_input(from_printable(matrix.source));
  std::erase_if(matrices_, [&](const auto& entry) {
    const auto& [identity, other] = entry;
    if (other.name != matrix.name || place_of_input(from_printable(other.source)) != place)
      return false;
    count += other.cases.size();
    baselines_.forget(identity);
    return true;
  });
  return count;
}

std::size_t Journal::append(const ResultRow& row) {
  const std::string identity = identity_of(row.matrix);
  const std::size_t given_up =
      matrices_.contains(identity) ? 0 : give_up_other_matrices(row.matrix);
  Matrix& matrix = matrices_[identity];
  matrix.name = row.matrix.name;
  matrix.source = row.matrix.source;
  const Entry entry{size_, {row.status, row.matrix.sha256}};
  write_line(journal_line(to_json(row)));
  const auto [it, added] = matrix.cases.try_emplace(case_key(row), entry);
  if (!added) {
    superseded_ |= it->second.recorded.status == Status::ok;
    it->second = entry;
  }
  baselines_.add(row);
  return given_up;
}

std::string Journal::take_renamed(const MatrixSummary& matrix, const std::set<std::string>& named,
                                  const std::function<void(ResultRow&)>& rename) {
  MatrixSummary former = matrix;
  const auto is_former = [&](const auto& entry) {
    former.name = entry.second.name;
    return former.name != matrix.name && !named.contains(former.name) &&
           identity_of(former) == entry.first;
  };
  if (matrix.sha256.empty() || std::ranges::none_of(matrices_, is_former)) return {};
  for (ResultRow& row : rows_of(former)) {
    rename(row);
    if (!find(row)) append(row);
  }
  matrices_.erase(identity_of(former));
  baselines_.forget(identity_of(former));
  return former.name;
}

const Journal::Entry* Journal::entry_of(const ResultRow& row) const {
  const auto matrix = matrices_.find(identity_of(row.matrix));
  if (matrix == matrices_.end()) return nullptr;
  const auto it = matrix->second.cases.find(case_key(row));
  return it == matrix->second.cases.end() ? nullptr : &it->second;
}

bool Journal::counts(std::uint64_t offset, const ResultRow& row) const {
  const Entry* entry = entry_of(row);
  return entry != nullptr && entry->offset == offset;
}

std::size_t Journal::read_baselines(const std::function<void(const std::string&)>& damage) {
  baselines_ = Baselines(context_.calls);
  std::size_t readable = 0;
  const auto add = [&](std::uint64_t offset, const ResultRow& row) {
    if (!counts(offset, row)) return;
    ++readable;
    baselines_.add(row);
  };
  read_journal_lines(path_, {[](const RunContext&) {}, add, [] {}, damage});
  superseded_ = false;
  return readable;
}

const Baselines& Journal::baselines() {
  if (superseded_) read_baselines([](const std::string&) {});
  return baselines_;
}

std::optional<Recorded> Journal::find(const ResultRow& row) const {
  const Entry* entry = entry_of(row);
  return entry == nullptr ? std::nullopt : std::optional(entry->recorded);
}

std::size_t Journal::size() const {
  std::size_t cases = 0;
  for (const auto& [identity, matrix] : matrices_) cases += matrix.cases.size();
  return cases;
}

bool Journal::any(const std::function<bool(Status)>& is) const {
  return std::any_of(matrices_.begin(), matrices_.end(), [&](const auto& matrix) {
    const std::map<std::string, Entry>& cases = matrix.second.cases;
    return std::any_of(cases.begin(), cases.end(),
                       [&](const auto& entry) { return is(entry.second.recorded.status); });
  });
}

std::vector<ResultRow> Journal::rows_of(const MatrixSummary& matrix) const {
  const auto found = matrices_.find(identity_of(matrix));
  if (found == matrices_.end()) return {};
  std::ifstream file(path_, std::ios::binary);
  std::vector<ResultRow> rows;
  std::string line;
  for (const auto& [key, entry] : found->second.cases) {
    file.seekg(static_cast<std::streamoff>(entry.offset));
    if (!std::getline(file, line)) break;
    visit_journal_line(line, entry.offset,
                       {[](const RunContext&) {},
                        [&](std::uint64_t, ResultRow row) { rows.push_back(std::move(row)); },
                        [] {}, [](const std::string&) {}});
  }
  return rows;
}

std::map<std::string, Recorded> Journal::cases_of(const std::string& name) const {
  std::map<std::string, Recorded> found;
  for (const auto& [identity, matrix] : matrices_)
    if (matrix.name == name)
      for (const auto& [key, entry] : matrix.cases) found.emplace(key, entry.recorded);
  return found;
}

std::map<std::string, std::size_t> Journal::count_by_name() const {
  std::map<std::string, std::size_t> counts;
  for (const auto& [identity, matrix] : matrices_) counts[matrix.name] += matrix.cases.size();
  return counts;
}

void Journal::write_outputs(bool complete) {
  if (json_)
    json_->write(
        fmt::format("{{\"schema_version\": {},\n\"context\": {},\n\"complete\": {},\n\"rows\": [",
                    kSchemaVersion, dump_line(to_json(context_)), complete));
  if (csv_) csv_->write(csv_header() + '\n');
  bool first = true;
  Answers answers;
  read_journal_lines(path_, {[](const RunContext&) {},
                             [&](std::uint64_t offset, ResultRow row) {
                               if (!counts(offset, row)) return;
                               row.matrix.source = matrices_[identity_of(row.matrix)].source;
                               baselines_.fill(row);
                               answers.add(row);
                               if (json_)
                                 json_->write((first ? "\n" : ",\n") + dump_line(to_json(row)));
                               if (csv_) csv_->write(csv_line(row) + '\n');
                               first = false;
                             },
                             [] {}, [](const std::string&) {}});
  if (json_) {
    json_->write("\n],\n\"answers\": [");
    first = true;
    for (const Answer& answer : answers.all()) {
      json_->write((first ? "\n" : ",\n") + dump_line(to_json(answer)));
      first = false;
    }
    json_->write("\n]}\n");
    json_->commit();
  }
  if (csv_) csv_->commit();
}

bool Journal::finish(const ClockState& clocks_after, Ending ending) try {
  context_.clocks_after = clocks_after;
  const std::size_t readable =
      read_baselines([this](const std::string& line) { damaged_.push_back(line); });
  const bool all_readable = readable == size();
  const bool complete = ending == Ending::complete && all_readable;
  write_outputs(complete);
  if (!durable_) {
    if (has_content(given_up_)) std::filesystem::remove(given_up_);
    return complete;
  }
  if (ending == Ending::interrupted || !all_readable || folder_) return complete;
  write_line(journal_line({{"complete", true}}));
  if (has_document()) file_->remove();
  return complete;
} catch (const Error& error) {
  if (!durable_) throw;
  if (folder_) folder_->keep();
  throw Error(fmt::format("{}; the rows are kept in {}", error.what(), path_), error.code());
}

std::string Journal::leave_outputs() {
  const auto earlier = [](const std::string& path) {
    return !path.empty() && !is_stream(path) && has_content(path);
  };
  if (!matrices_.empty()) return {};
  std::string kept = earlier(paths_.json)  ? paths_.json
                     : earlier(paths_.csv) ? paths_.csv
                                           : std::string();
  if (!kept.empty() && !folder_) file_->remove();
  return kept;
}

}  // namespace spmmbench
