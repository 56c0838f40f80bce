#pragma once
// The lines of a journal (report/journal.hpp): how they are written and what stands in them.

#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "spmmbench/result.hpp"

namespace spmmbench {

// The last row of every case that the journal at `path` has, in first-seen order. Rows of a matrix
// that another one has replaced are left out. A line that is damaged is passed over and named in
// `damaged`, if that is given; a last line that a kill cut short is no damage. Throws Error where
// it has no context.
ResultDocument read_journal(const std::string& path, std::vector<std::string>* damaged = nullptr);

// A line of a journal, whose last member is the checksum of what stands before it.
std::string journal_line(const nlohmann::ordered_json& json);

// What is called for the lines of a journal, in their order.
struct JournalVisitor {
  std::function<void(RunContext)> context;
  std::function<void(std::uint64_t offset, ResultRow)> row;
  std::function<void()> end;  // the run is complete
  std::function<void(const std::string&)> damage;
};

// False where the line's checksum does not match, or it has a field that this version cannot read.
bool visit_journal_line(const std::string& line, std::uint64_t offset, const JournalVisitor& visit);

// Throws Error where the file cannot be opened. `damage` gets a line for each one whose checksum
// does not match; a last line that a kill cut short is no damage.
void read_journal_lines(const std::string& path, const JournalVisitor& visit);

}  // namespace spmmbench
