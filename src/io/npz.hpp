#pragma once
// scipy.sparse.save_npz: a zip archive of .npy arrays (format, shape, data, indices, indptr),
// stored or deflated. Only CSR.

#include <map>
#include <string>

#include "spmmbench/matrix.hpp"

namespace spmmbench {

// Member name without .npy -> its bytes.
using NpzMembers = std::map<std::string, std::string>;

// Values of every real type, rounded to fp32. Columns may stand in any order; repeated ones are
// added. Throws Error that begins with `path` for arrays that are missing or do not fit together.
CsrMatrix csr_from_npz(const NpzMembers& members, const std::string& path);

// Throws Error also for what is no zip archive, is truncated or corrupt, or does not fit in memory.
CsrMatrix read_npz(const std::string& path);

}  // namespace spmmbench
