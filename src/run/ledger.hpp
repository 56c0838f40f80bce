#pragma once
// The outcome of every case: the journal behind the output files, the tables on stdout, and the
// exit code.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "report/journal.hpp"
#include "report/table.hpp"
#include "report/warnings.hpp"
#include "run/options.hpp"
#include "run/progress.hpp"
#include "spmmbench/error.hpp"
#include "spmmbench/result.hpp"

namespace spmmbench {

// Whether to measure a case whose row has this status in the output file (none: no row there).
bool is_pending(std::optional<Status> recorded, Resume resume);

inline constexpr const char* kBeginsCase = "begins ";  // before the row of such a line

class Ledger {
 public:
  // Opens the output files. Throws Error when they cannot be written, or when a run that resumes
  // finds those of another run.
  Ledger(const RunOptions& options, RunContext context);

  // An input before it is loaded: its name, and the content of the last recorded matrix of that
  // name, if there is one.
  MatrixSummary expected(const std::string& input) const;
  // Whether this case must still be measured.
  bool pending(const ResultRow& planned) const;
  // False where no case of the input can be pending; then it need not be loaded. Files are always
  // loaded, since they may have changed.
  bool may_be_pending(const std::string& input, const std::vector<ResultRow>& planned) const;
  void begin(std::size_t cases, std::size_t pending);  // of the whole run, for the status line

  // The cases that already have a row, of matrices with the name of the input, by case_key.
  std::map<std::string, Recorded> known_of(const std::string& input) const;

  Progress& progress() { return *progress_; }

  // A run that goes on keeps the rows of a file that has another name since, under its new name.
  void take_renamed(const MatrixSummary& matrix);

  // Says in a line of jsonl that this case begins, where a parent reads these lines.
  void begin_case(const ResultRow& planned);
  void add(ResultRow row, std::vector<ResultRow>& rows_of_matrix);
  void print_matrix(std::vector<ResultRow>& rows);  // and forgets them
  void input_failed(const std::string& message, ExitCode code);

  ExitCode finish(const ClockState& clocks_after, bool interrupted);

 private:
  std::optional<Recorded> find(const ResultRow& row) const;
  void note_other_rows() const;
  void show(const std::string& text);  // on stdout
  void add_earlier(std::vector<ResultRow>& rows, TableStyle& style) const;
  void write_outputs(const ClockState& clocks_after, bool interrupted);
  void tell_failures() const;

  const RunOptions& options_;
  std::optional<Journal> journal_;
  std::optional<Progress> progress_;
  Summary summary_;
  Warnings warnings_;
  ClockState clocks_before_;
  std::size_t planned_ = 0;
  std::size_t unproved_ = 0;  // cases of this run that failed or are wrong
  std::string first_unproved_;
  std::string output_error_;  // why stdout could not be written; output files still are
  bool wrong_ = false, failed_ = false, unreadable_ = false, incomplete_ = false;
  bool measured_ = false;
};

}  // namespace spmmbench
