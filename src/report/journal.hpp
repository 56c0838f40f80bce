#pragma once
// The journal of a run: one line of JSON per finished case, with a checksum, appended and synced to
// the disk at once next to the output file, so that a kill or a power cut loses at most the case
// that was being measured. At the end, and on Ctrl-C, the JSON document and the CSV are made from
// the journal; memory holds only the medians of baselines.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "io/output.hpp"
#include "process/temporary_folder.hpp"
#include "report/baselines.hpp"
#include "spmmbench/result.hpp"

namespace spmmbench {

// The row of a case in an output file.
struct Recorded {
  Status status = Status::failed;
  std::string sha256;  // of the matrix
};

// What to do with the rows of a run that has left a journal or a document.
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

// Throws Error where the files that a run writes, with its journal and what each is first written
// as, are not all different, or where one of them is among `inputs`.
void require_own_files(const RunOutputs& paths, const std::vector<std::string>& inputs);

// Throws Error where a run that did not end has left a journal with rows at these outputs, or where
// that journal cannot be read. `can_resume`: the command has --resume, which the message may name.
void require_no_unfinished(const RunOutputs& paths, bool can_resume);

// The context of the run that has left a journal, or else a document, at these outputs.
std::optional<RunContext> earlier_context(const RunOutputs& paths);

enum class Ending {
  complete,
  partly_read,  // the run ended, without the rows of inputs that it could not read
  interrupted,  // --resume has something to go on with
};

class Journal {
 public:
  // Opens the outputs and the journal, which are locked, before anything is measured. Throws Error
  // where that fails, and Error(not_comparable) where rows to take over are of another build,
  // machine, seed or protocol. `can_resume`: the command has --resume, which a message may name.
  Journal(RunOutputs paths, RunContext context, Earlier earlier, bool can_resume = true);

  // For rows that can be remade at once, as those of `merge`: they need not be synced one by one,
  // no run resumes them, and their journal has no name. `give_up`: another run's journal is removed
  // at the end. The context must be set before finish.
  Journal(RunOutputs paths, bool give_up);
  void set_context(RunContext context) { context_ = std::move(context); }

  // Throws Error when the disk is full. Drops the rows of another matrix that was at the same place
  // and returns their number.
  std::size_t append(const ResultRow& row);

  // The rows of a matrix of the same content become those of `matrix`, as `rename` changes them,
  // unless `named` has the former name. Returns that name; empty where there is none.
  std::string take_renamed(const MatrixSummary& matrix, const std::set<std::string>& named,
                           const std::function<void(ResultRow&)>& rename);

  std::optional<Recorded> find(const ResultRow& row) const;
  bool any(const std::function<bool(Status)>& is) const;
  // The rows of all matrices of this name, by case_key.
  std::map<std::string, Recorded> cases_of(const std::string& name) const;
  // The last row of each case of a matrix, as far as they can be read back.
  std::vector<ResultRow> rows_of(const MatrixSummary& matrix) const;
  // The rows of each matrix name.
  std::map<std::string, std::size_t> count_by_name() const;
  // How the run ended whose rows were taken over; complete where there is none.
  Ending earlier_ending() const { return earlier_ending_; }

  // Those among the rows so far that count.
  const Baselines& baselines();
  // "out.json.journal:7: damaged: ...", of what could not be taken over or written.
  const std::vector<std::string>& damaged() const { return damaged_; }

  // Writes the outputs, the last row of every case. They are complete when the run is and every row
  // could be read back: the result. The journal of a run that ended is then removed, unless there
  // is only a CSV, which cannot be gone on with.
  bool finish(const ClockState& clocks_after, Ending ending);

  // Call it instead of finish if there is no row: an existing document or CSV stays as it is.
  // Returns its name; empty if there are rows or no such file.
  std::string leave_outputs();

 private:
  struct Entry {
    std::uint64_t offset;  // of the line that counts
    Recorded recorded;
  };
  struct Matrix {
    std::string name, source;            // as the last row tells it
    std::map<std::string, Entry> cases;  // by case_key
  };

  void open_outputs();
  void require_can_begin(Earlier earlier) const;
  bool has_document() const;  // not a CSV alone, nor streams
  void take_over(const std::string& path, bool is_journal);
  void write_line(const std::string& line);
  std::size_t give_up_other_matrices(const MatrixSummary& matrix);
  std::size_t size() const;                                       // cases
  const Entry* entry_of(const ResultRow& row) const;              // null where there is none
  bool counts(std::uint64_t offset, const ResultRow& row) const;  // it is the last of its case
  // From the rows that count; returns the number of those that could be read.
  std::size_t read_baselines(const std::function<void(const std::string&)>& damage);
  void write_outputs(bool complete);

  RunOutputs paths_;
  RunContext context_;
  std::unique_ptr<TemporaryFolder> folder_;  // of the journal, when every output is a stream
  std::optional<OutputFile> json_, csv_;
  std::string path_, given_up_;
  std::optional<LineFile> file_;
  bool durable_ = true, can_resume_ = false;
  Ending earlier_ending_ = Ending::complete;
  std::uint64_t size_ = 0;
  std::map<std::string, Matrix> matrices_;  // by identity_of
  Baselines baselines_;
  bool superseded_ = false;  // baselines_ may have a row that no longer counts
  std::vector<std::string> damaged_;
};

}  // namespace spmmbench
