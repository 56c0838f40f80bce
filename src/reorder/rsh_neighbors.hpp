#pragma once
// Stages 1 and 2 of the RSH-SpMM ordering: finds candidates through an inverted index over the
// rarest columns of each row, and keeps the k most similar ones.

#include <cstdint>
#include <vector>

#include "reorder/similarity.hpp"

namespace spmmbench {

struct RshNeighborOptions {
  int k = 0;               // neighbours kept per row
  int features = 0;        // representative columns per row
  int candidates = 0;      // rows compared per row, and rows taken from one column's list
  std::uint64_t seed = 0;  // for the rows drawn from lists that are longer
};

// Row r's neighbours at [r * k, (r + 1) * k), most similar first; -1 where there are fewer.
struct RshNeighbors {
  static constexpr float kScale = 65535;  // similarity is stored in units of 1 / kScale
  int k = 0;
  std::vector<std::int32_t> row;
  std::vector<std::uint16_t> similarity;
};

// `counts`: the column_counts() of the matrix. They are taken over, so that their memory can be
// freed early.
RshNeighbors find_neighbors(const WeightedJaccard& jaccard, std::vector<std::int32_t> counts,
                            const RshNeighborOptions& options);

}  // namespace spmmbench
