#pragma once
// How many sectors of B neighbouring rows of A gather. Kernels for narrow B choose a row order by
// it.

#include <cstdint>

#include "spmmbench/matrix.hpp"
#include "spmmbench/reordering.hpp"

namespace spmmbench::jagged {

inline constexpr std::int64_t kSectorBlock = 512, kMostSectorBlocks = 16;

// The different sectors of B that blocks of kSectorBlock places gather, as a share of the nonzeros
// of these places, from up to kMostSectorBlocks blocks. The L1 cache of a multiprocessor gets a
// sector once for the rows that it multiplies at a time, which are about as many
// (docs/decisions/jagged-slices.md). `rows_of_sector`: rows of B that lie in one sector, a power of
// two. `row_order` as in Wcsr: empty is natural. 0 without nonzeros.
double gathered_sector_share(const CsrMatrix& matrix, const Permutation& row_order,
                             std::int64_t rows_of_sector);

}  // namespace spmmbench::jagged
