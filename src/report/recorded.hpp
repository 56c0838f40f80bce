#pragma once
// The rows that a run has recorded, whether it has ended or not.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "spmmbench/result.hpp"

namespace spmmbench {

// Reads a result document, or the journal of a run that is at work or was cut off: of a case that
// was repeated the last row counts. Speed-ups and break-even are those among the rows there are,
// with preparation counted for `calls`; by default for those of the run. Lines of a journal that
// are damaged are named in `damaged`, if that is given. Throws Error for what is neither, and for
// rows that no run has written (consistency.hpp).
ResultDocument read_recorded(const std::string& path, std::optional<std::int64_t> calls = {},
                             std::vector<std::string>* damaged = nullptr);

// Speed-ups and break-even among the rows of the document.
void compare_rows(ResultDocument& document);

// Throws Error naming the file at `path` where kernel or row order is no spec, of which no run is.
void require_names(const std::string& path, const ResultRow& row);

}  // namespace spmmbench
