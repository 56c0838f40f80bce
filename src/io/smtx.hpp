#pragma once
// The Deep Learning Matrix Collection's .smtx (Gale, Zaharia, Young, Elsen 2020): the pattern of a
// CSR matrix as text: "rows, cols, nonzeros", then rows + 1 offsets, then the columns.

#include <string>
#include <string_view>

#include "spmmbench/matrix.hpp"

namespace spmmbench {

// `values` stays empty. Columns may stand in any order; repeated ones are merged. Throws Error
// "PATH:LINE: expected ..., got ...". Sizes are checked against the text's before memory is taken.
CsrMatrix parse_smtx(std::string_view text, const std::string& path);

CsrMatrix read_smtx(const std::string& path);

}  // namespace spmmbench
