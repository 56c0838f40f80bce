#pragma once
// Block pruning of dense weights.

#include <cstdint>
#include <string_view>

#include "spmmbench/matrix.hpp"

namespace spmmbench {

// Sets blocks of a dense matrix to zero. `spec` is KIND:RxC:S with S in [0, 1]:
//   block         the S fraction of R x C blocks with the smallest Frobenius norm
//   random-block  a random S fraction, drawn by `seed`
// Blocks at the edges may be smaller. Deterministic; ties go by position. Throws Error on a
// malformed spec.
void prune(DenseMatrix& matrix, std::string_view spec, std::uint64_t seed);

}  // namespace spmmbench
