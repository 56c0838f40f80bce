#pragma once
// Pruning of dense weights.

#include <cstdint>
#include <string_view>

#include "spmmbench/matrix.hpp"

namespace spmmbench {

// Every form, for help texts and messages.
inline constexpr std::string_view kPruneForms =
    "magnitude:S, random:S, 2:4, block:RxC:S or random-block:RxC:S";

// Sets values of a dense matrix to zero; S is the fraction of values or of blocks, in [0, 1]:
//   magnitude:S         the values of the smallest magnitude
//   random:S            values drawn by `seed`
//   2:4                 of every four neighbours in a row the two of the smallest magnitude
//   block:RxC:S         the R x C blocks with the smallest Frobenius norm
//   random-block:RxC:S  R x C blocks drawn by `seed`
// Blocks at the edges may be smaller, and so may the last group of a row, of which two values stay.
// Deterministic; ties go by position. NaN counts as the largest. Throws Error where check_prune
// does.
void prune(DenseMatrix& matrix, std::string_view spec, std::uint64_t seed);

// Throws Error naming --prune where the spec is none of these forms.
void check_prune(std::string_view spec);

}  // namespace spmmbench
