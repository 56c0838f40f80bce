#pragma once
// scipy.sparse.save_npz: a zip archive of .npy arrays, stored or deflated. All have format, shape
// and data; CSR, CSC and BSR indices and indptr, COO row and col.

#include <cstddef>
#include <map>
#include <string>

#include "spmmbench/matrix.hpp"

namespace spmmbench {

// Member name without .npy -> its bytes.
using NpzMembers = std::map<std::string, std::string>;

// Values of every real type, rounded to fp32; `fp64`: values64 too. Entries may stand in any order;
// those of one place are added. Throws Error that begins with `path` for arrays that are missing or
// do not fit together, and for a matrix that needs more than `memory_bytes`, or more than the
// machine has left where that is 0.
CsrMatrix csr_from_npz(const NpzMembers& members, const std::string& path,
                       std::size_t memory_bytes = 0, bool fp64 = false);

// Throws Error also for what is no zip archive, is truncated or corrupt, or does not fit in memory.
CsrMatrix read_npz(const std::string& path, bool fp64 = false);

}  // namespace spmmbench
