#include "jagged_slices/gathered_sectors.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <vector>

namespace spmmbench::jagged {

double gathered_sector_share(const CsrMatrix& matrix, const Permutation& row_order,
                             std::int64_t rows_of_sector) {
  static_assert(kMostSectorBlocks <= std::numeric_limits<std::int8_t>::max());  // see `last`
  const int shift = std::countr_zero(static_cast<std::uint64_t>(rows_of_sector));
  const std::int64_t blocks = (matrix.rows + kSectorBlock - 1) / kSectorBlock;
  const std::int64_t samples = std::min(blocks, kMostSectorBlocks);
  // The last sample that gathers each sector.
  std::vector<std::int8_t> last((matrix.cols >> shift) + 1, -1);
  std::int64_t sectors = 0, nonzeros = 0;
  for (std::int64_t s = 0; s < samples; ++s) {
    const std::int64_t first = blocks * s / samples * kSectorBlock;
    for (std::int64_t place = first; place < std::min(first + kSectorBlock, matrix.rows); ++place) {
      const std::int64_t row = row_order.empty() ? place : row_order[place];
      nonzeros += matrix.row_length(row);
      for (std::int64_t e = matrix.row_ptr[row]; e < matrix.row_ptr[row + 1]; ++e) {
        std::int8_t& seen = last[matrix.col_idx[e] >> shift];
        sectors += seen != s ? 1 : 0;
        seen = static_cast<std::int8_t>(s);
      }
    }
  }
  return nonzeros == 0 ? 0 : static_cast<double>(sectors) / static_cast<double>(nonzeros);
}

}  // namespace spmmbench::jagged
