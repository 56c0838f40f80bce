#pragma once
// The journal of a run: one line of JSON per finished case, with a checksum, appended and synced to
// the disk at once next to the output file, so that a kill or a power cut loses at most the case
// that was being measured. At the end, and on Ctrl-C, the JSON document and the CSV are made from
// the journal; memory holds only the medians of baselines.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "io/output.hpp"
#include "process/temporary_folder.hpp"
#include "report/baselines.hpp"
#include "spmmbench/result.hpp"

namespace spmmbench {

// What makes two rows the same case.
std::string case_key(const ResultRow& row);

// The row of a case in an output file.
struct Recorded {
  Status status = Status::failed;
  std::string sha256;  // of the matrix
};

// The last row of every case that the journal at `path` has, in first-seen order. Rows of a matrix
// that another one has replaced are left out. A line that is damaged is passed over and named in
// `damaged`, if that is given; a last line that a kill cut short is no damage. Throws Error where
// it has no context.
ResultDocument read_journal(const std::string& path, std::vector<std::string>* damaged = nullptr);

// A line of a journal, whose last member is the checksum of what stands before it.
std::string journal_line(const nlohmann::ordered_json& json);

// What to do with rows that an earlier run has left.
enum class Earlier {
  keep,       // throws Error where a run that did not end has left a journal with rows
  take_over,  // of its journal, else of the JSON document
  give_up,
};

struct RunOutputs {
  std::string json, csv;  // either may be empty, or a stream
};

inline constexpr std::string_view kJournalEnding = ".journal";
// The journal's path: beside the document, or else beside the CSV; empty where both are streams.
std::string journal_of(const RunOutputs& paths);

// The context of the run that has left a journal, or else a document, at these outputs.
std::optional<RunContext> earlier_context(const RunOutputs& paths);

class Journal {
 public:
  // Opens the outputs and the journal, which are locked, before anything is measured. Throws Error
  // where that fails, and Error(not_comparable) where rows to take over are of another build,
  // device, seed or protocol.
  // Rows that can be made again at once need not be `durable`: each of them on the disk.
  Journal(RunOutputs paths, RunContext context, Earlier earlier, bool durable = true);

  // Throws Error when the disk is full. Drops rows of the same input with another matrix and
  // returns their number.
  std::size_t append(const ResultRow& row);

  std::optional<Recorded> find(const std::string& key) const;
  bool any(const std::function<bool(Status)>& is) const;
  // The rows of an input, by case_key.
  std::map<std::string, Recorded> cases_of(const std::string& source) const;

  // Those among the rows so far.
  const Baselines& baselines() const { return baselines_; }
  // "out.json.journal:7: damaged: ...", of what could not be taken over or written.
  const std::vector<std::string>& damaged() const { return damaged_; }

  // Writes the outputs, the last row of every case. They are complete when the run is and every row
  // could be read back: the result. The journal is then removed, unless there is only a CSV, which
  // cannot be gone on with. One that is not durable is removed in any case.
  bool finish(const ClockState& clocks_after, bool complete);

 private:
  struct Entry {
    std::uint64_t offset;  // of the line that counts
    Recorded recorded;
  };

  bool has_document() const;  // not a CSV alone, nor streams
  void take_over(const std::string& path, bool is_journal);
  void write_line(const std::string& line);
  std::size_t give_up_other_matrices(const ResultRow& row);
  void write_outputs(bool complete);

  RunOutputs paths_;
  RunContext context_;
  std::unique_ptr<TemporaryFolder> folder_;  // of the journal, when every output is a stream
  std::optional<OutputFile> json_, csv_;
  std::string path_;
  std::optional<LineFile> file_;
  bool durable_;
  std::uint64_t size_ = 0;
  std::map<std::string, Entry> cases_;
  Baselines baselines_;
  std::vector<std::string> damaged_;
};

}  // namespace spmmbench
