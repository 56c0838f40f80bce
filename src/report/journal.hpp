#pragma once
// The journal of a run: one line per finished case, appended and flushed at once next to the output
// file, so that a run killed at any moment loses at most the case it was in. At the end, and on
// Ctrl-C, the journal becomes the JSON document and the CSV; only the baselines' medians are held
// in memory.

#include <cstdio>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "report/baselines.hpp"
#include "spmmbench/result.hpp"

namespace spmmbench {

// What makes two rows the same case.
std::string case_key(const ResultRow& row);

// The last row of every case that the journal at `path` has, in first-seen order. Throws Error
// where it has no context.
ResultDocument read_journal(const std::string& path);

class Journal {
 public:
  struct Paths {
    std::string json, csv;  // either may be empty
  };

  // Opens PATH.journal and checks that the outputs can be written. With `resume`, takes over the
  // rows of an existing journal, else of an existing JSON document; throws Error(not_comparable)
  // when those are of another device, seed or protocol.
  Journal(Paths paths, RunContext context, bool resume);
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;
  ~Journal();

  void append(const ResultRow& row);  // throws Error when the disk is full

  // Status of the last row of this case; empty when it has none.
  std::optional<Status> status_of(const std::string& key) const;
  bool any(const std::function<bool(Status)>& is) const;
  // Of every case of an input, by case_key.
  std::map<std::string, Status> statuses_of(const std::string& source) const;

  // Of the rows there are so far.
  const Baselines& baselines() const { return baselines_; }

  // Writes the outputs (temporary file, then rename), the last row of every case in first-seen
  // order, and removes the journal when `complete`.
  void finish(const ClockState& clocks_after, bool complete);

 private:
  struct Entry {
    std::size_t index;  // of the line that counts
    Status status;
  };

  Paths paths_;
  std::string path_;
  RunContext context_;
  std::FILE* file_ = nullptr;
  std::size_t lines_ = 0;
  std::map<std::string, Entry> cases_;
  Baselines baselines_;
};

}  // namespace spmmbench
