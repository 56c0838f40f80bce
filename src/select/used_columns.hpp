#pragma once
// How many columns of A have nonzeros, from entries of sampled rows. The CPU and the GPU look at
// the same entries. A column marks a bit by its hash, and another one where it is seen again.

#include <cstdint>

#include "format/column_hash.hpp"
#include "spmmbench/host_device.hpp"

namespace spmmbench::used_columns {

constexpr int kMarkBits = 15;  // 8 marks for each entry; columns that share one count as one
constexpr int kMarkWords = (1 << kMarkBits) / 32;
constexpr std::int64_t kMostOfRow = 64;  // entries that are looked at

SPMMBENCH_HOST_DEVICE inline std::uint32_t mark_of(std::int32_t column) {
  return column_hash(column) >> (32 - kMarkBits);
}

struct Entries {
  std::int64_t first, end;
};

// Of a longer row neighbouring entries somewhere, since rows may be alike.
SPMMBENCH_HOST_DEVICE inline Entries looked_at(std::int64_t begin, std::int64_t end, int sample) {
  const std::int64_t others = end - begin - kMostOfRow;
  if (others <= 0) return {begin, end};
  const std::int64_t first = begin + (std::int64_t{column_hash(sample + 1)} * others >> 32);
  return {first, first + kMostOfRow};
}

struct Seen {
  std::int64_t entries = 0;
  std::int64_t columns = 0, once = 0;  // distinct ones, and those of a single entry
};

// At most so many have nonzeros: those that were seen, and one for each nonzero of the others. The
// share of nonzeros that lie in columns that were not seen is about that of entries whose column
// was seen once (Good and Turing). `all` columns where these are not twice as many: there the sizes
// of A tell as much.
inline double estimate(const Seen& seen, double nnz, double all) {
  if (seen.entries == 0) return all;
  const double unseen = static_cast<double>(seen.once) / static_cast<double>(seen.entries);
  const double most = static_cast<double>(seen.columns) + unseen * nnz;
  return 2 * most <= all ? most : all;
}

}  // namespace spmmbench::used_columns
