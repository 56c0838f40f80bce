#pragma once
// Columns that many rows have.

#include <cstdint>

#include "spmmbench/host_device.hpp"
#include "spmmbench/matrix.hpp"
#include "spmmbench/random.hpp"

namespace spmmbench {

struct HubColumns {
  double share = 0;  // of the nonzeros
  int count = 0;
};

// How many nonzeros are drawn for it, and how many times a hub column is drawn at least; none are
// where no sample could tell.
struct HubSample {
  std::int64_t draws = 0;
  double least = 0;
};
HubSample hub_sample(std::int64_t rows, std::int64_t nnz);
// Columns share a counter by chance. With one draw for each counter or fewer, twelve hardly ever
// meet in one, and hubs are drawn at least as often.
inline constexpr int kHubCounterBits = 14;
SPMMBENCH_HOST_DEVICE constexpr std::uint32_t hub_counter(std::int32_t column) {
  constexpr std::uint32_t kGolden = 0x9E3779B9;  // 2^32 / golden ratio
  return static_cast<std::uint32_t>(column) * kGolden >> (32 - kHubCounterBits);
}
// The nonzero of a draw: a random one, since evenly spaced ones would meet the same few columns of
// rows that are alike.
SPMMBENCH_HOST_DEVICE constexpr std::int64_t hub_draw(std::int64_t draw, std::int64_t nnz) {
  return static_cast<std::int64_t>(hash_position(0, static_cast<std::uint64_t>(draw), 0) %
                                   static_cast<std::uint64_t>(nnz));
}

// Columns that at least an eighth of the rows have, so that most windows of eight rows do, by a
// sample of 1,024 to 16,384 nonzeros, more the longer the rows are. None where rows have over 170
// nonzeros in the mean: so large a sample could not tell such columns from others. Deterministic.
HubColumns find_hub_columns(const CsrMatrix& matrix);

}  // namespace spmmbench
