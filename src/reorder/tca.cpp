// TC-cache-aware ordering (DTC-SpMM, ASPLOS 2024): similar rows are found by MinHash and LSH and
// clustered up to the height of a tensor-core window; the clusters are clustered again, so that
// windows that share columns run close in time. A cluster's signature is the minimum over its
// members', which is the MinHash of the union of their columns, so both levels are the same step.

#include <algorithm>
#include <numeric>
#include <utility>

#include "spmmbench/random.hpp"
#include "spmmbench/registry.hpp"

namespace spmmbench {
namespace {

// Signature of item i: `hashes` minima at [i * hashes].
struct Signatures {
  int hashes = 0;
  std::vector<std::uint32_t> minima;

  std::uint32_t* of(std::int64_t item) { return minima.data() + item * hashes; }
  const std::uint32_t* of(std::int64_t item) const { return minima.data() + item * hashes; }
  // Estimated Jaccard similarity, in units of 1 / hashes.
  int similarity(std::int64_t a, std::int64_t b) const {
    int equal = 0;
    for (int h = 0; h < hashes; ++h) equal += of(a)[h] == of(b)[h];
    return equal;
  }
};

Signatures min_hash(const CsrMatrix& matrix, int hashes, std::uint64_t seed) {
  Signatures out{hashes, std::vector<std::uint32_t>(matrix.rows * hashes, UINT32_MAX)};
#pragma omp parallel for schedule(dynamic, 1024)
  for (std::int64_t row = 0; row < matrix.rows; ++row)
    for (std::int64_t e = matrix.row_ptr[row]; e < matrix.row_ptr[row + 1]; ++e) {
      std::uint64_t hash = mix64(seed + static_cast<std::uint64_t>(matrix.col_idx[e]) + 1);
      for (int h = 0; h < hashes; ++h) {
        const auto value = static_cast<std::uint32_t>(hash >> 32);
        out.of(row)[h] = std::min(out.of(row)[h], value);
        hash = hash * 0x5851F42D4C957F2DULL + 0x14057B7EF767814FULL;
      }
    }
  return out;
}

using Pair = std::pair<std::int32_t, std::int32_t>;

// Pairs of equal similarity, each once.
class PairSet {
 public:
  void add(Pair pair) {
    pairs_.push_back(pair);
    // Most pairs are found in several bands: what is kept stays within twice the distinct ones.
    if (pairs_.size() >= limit_) {
      compact();
      limit_ = std::max(kLeastLimit, 2 * pairs_.size());
    }
  }
  const std::vector<Pair>& sorted() {
    compact();
    return pairs_;
  }

 private:
  void compact() {
    std::sort(pairs_.begin(), pairs_.end());
    pairs_.erase(std::unique(pairs_.begin(), pairs_.end()), pairs_.end());
  }

  static constexpr std::size_t kLeastLimit = 4096;
  std::size_t limit_ = kLeastLimit;
  std::vector<Pair> pairs_;
};

// Candidates, by similarity: items that agree on a whole band of hashes and stand next to each
// other in the bucket.
std::vector<PairSet> similar_pairs(const Signatures& signatures, const std::vector<bool>& skip,
                                   int band_hashes) {
  const auto items = static_cast<std::int64_t>(skip.size());
  std::vector<PairSet> out(signatures.hashes + 1);
  std::vector<std::pair<std::uint64_t, std::int32_t>> bucket;
  for (int band = 0; band + band_hashes <= signatures.hashes; band += band_hashes) {
    bucket.clear();
    for (std::int64_t i = 0; i < items; ++i) {
      if (skip[i]) continue;
      std::uint64_t key = 0;
      for (int h = 0; h < band_hashes; ++h) key = mix64(key ^ signatures.of(i)[band + h]);
      bucket.emplace_back(key, static_cast<std::int32_t>(i));
    }
    std::sort(bucket.begin(), bucket.end());
    for (std::size_t i = 1; i < bucket.size(); ++i)
      if (bucket[i - 1].first == bucket[i].first) {
        const std::int32_t a = bucket[i - 1].second, b = bucket[i].second;
        out[signatures.similarity(a, b)].add({a, b});
      }
  }
  return out;
}

// Agglomerative: most similar pairs first, clusters of at most `capacity` items. Returns the items
// of every cluster, clusters by their smallest item.
std::vector<std::vector<std::int32_t>> cluster(const Signatures& signatures,
                                               const std::vector<bool>& skip, int band_hashes,
                                               int capacity) {
  const auto items = static_cast<std::int64_t>(skip.size());
  std::vector<std::int32_t> parent(items), size(items, 1);
  std::iota(parent.begin(), parent.end(), 0);
  const auto root_of = [&](std::int32_t i) {
    while (parent[i] != i) i = parent[i] = parent[parent[i]];
    return i;
  };
  std::vector<PairSet> pairs = similar_pairs(signatures, skip, band_hashes);
  for (auto level = pairs.rbegin(); level != pairs.rend(); ++level)
    for (const Pair& pair : level->sorted()) {
      const std::int32_t a = std::min(root_of(pair.first), root_of(pair.second)),
                         b = std::max(root_of(pair.first), root_of(pair.second));
      if (a == b || size[a] + size[b] > capacity) continue;
      parent[b] = a;
      size[a] += size[b];
    }
  pairs = {};
  std::vector<std::vector<std::int32_t>> out;
  std::vector<std::int32_t> index(items, -1);
  for (std::int64_t i = 0; i < items; ++i) {
    const std::int32_t root = root_of(static_cast<std::int32_t>(i));
    if (index[root] < 0) {
      index[root] = static_cast<std::int32_t>(out.size());
      out.emplace_back();
    }
    out[index[root]].push_back(static_cast<std::int32_t>(i));
  }
  return out;
}

class Tca final : public Reordering {
 public:
  std::string name() const override { return "tca"; }
  std::string summary() const override {
    return "TC-cache-aware: MinHash clusters of rows, then clusters of clusters (DTC-SpMM)";
  }
  std::vector<OptionSpec> options() const override {
    return {{"hashes", "16", "MinHash values per row, 4 to 64"},
            {"band", "2", "hashes that must agree for two rows to be compared"},
            {"cluster", "16", "rows per cluster, and clusters per cluster of clusters"},
            {"seed", "1", "of the hash functions"}};
  }
  Permutation compute(const CsrMatrix& matrix, const Options& options) const override {
    options.require_known(this->options(), name());
    const int hashes = static_cast<int>(options.get_int("hashes", 16, 4, 64));
    const int band = static_cast<int>(options.get_int("band", 2, 1, hashes));
    const int capacity = static_cast<int>(options.get_int("cluster", 16, 2, 1 << 20));
    const auto seed = static_cast<std::uint64_t>(options.get_int("seed", 1));

    Signatures rows = min_hash(matrix, hashes, seed);
    std::vector<bool> empty(matrix.rows);
    for (std::int64_t row = 0; row < matrix.rows; ++row) empty[row] = matrix.row_length(row) == 0;
    const auto clusters = cluster(rows, empty, band, capacity);

    const auto count = static_cast<std::int64_t>(clusters.size());
    Signatures unions{hashes, std::vector<std::uint32_t>(count * hashes, UINT32_MAX)};
    std::vector<bool> skip(count);
    for (std::int64_t c = 0; c < count; ++c) {
      skip[c] = empty[clusters[c].front()];
      for (const std::int32_t row : clusters[c])
        for (int h = 0; h < hashes; ++h)
          unions.of(c)[h] = std::min(unions.of(c)[h], rows.of(row)[h]);
    }
    rows.minima = {};
    Permutation order;
    order.reserve(matrix.rows);
    // Unions agree on fewer hashes than rows do, so one agreement makes a candidate.
    for (const auto& super : cluster(unions, skip, 1, capacity))
      for (const std::int32_t c : super)
        order.insert(order.end(), clusters[c].begin(), clusters[c].end());
    return order;
  }
};

SPMMBENCH_REGISTER_REORDERING(Tca);

}  // namespace
}  // namespace spmmbench
