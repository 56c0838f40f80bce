#pragma once
// C_i = A * B_i for the members of a strided batch of dense operands (--batch). Column-major
// members follow one another as columns, so that they are one product of N * members columns. Of
// row-major ones the rows follow one another: B has K * members rows and C has M * members, member
// by member, and a plan is launched once for each unless it takes all. To all checks that is the
// product with a matrix that has A once for each member, on a diagonal.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "spmmbench/batch.hpp"
#include "spmmbench/kernel.hpp"
#include "spmmbench/matrix.hpp"

namespace spmmbench {

inline constexpr std::int64_t kLargestBatch = 65'535;  // a choice: the blocks that a grid has in z

// Why a kernel cannot multiply row-major members; empty where it can.
std::string why_no_batch(const KernelInfo& kernel);

// A plan of all members: the kernel's own where it has one (BatchPrepared) or where there is one
// member, else one that launches the kernel's own for each. `a` outlives it.
std::unique_ptr<Plan> bind_members(Prepared& a, const Shape& shape, std::int64_t members,
                                   StageTimer& stages);

// A once for each member, on a diagonal, and the rows of C that its rows are (none: the same).
struct Diagonal {
  CsrMatrix a;
  std::vector<std::int32_t> row_ids;
};
std::size_t diagonal_bytes(const CsrMatrix& a, std::int64_t members);
// Throws Error where 32 bits do not count its rows and columns, and std::bad_alloc.
Diagonal on_diagonal(const CsrMatrix& a, std::span<const std::int32_t> row_ids,
                     std::int64_t members);

}  // namespace spmmbench
