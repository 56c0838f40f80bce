// TC-cache-aware ordering (DTC-SpMM, ASPLOS 2024): similar rows are found by MinHash and LSH and
// clustered up to the height of a tensor-core window; the clusters are clustered again, so that
// windows that share columns run close in time. A cluster's signature is the MinHash of the union
// of its rows' columns, so both levels are the same step.

#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <utility>

#include "spmmbench/error.hpp"
#include "spmmbench/random.hpp"
#include "spmmbench/registry.hpp"

namespace spmmbench::tca {
namespace {

constexpr int kMostHashes = 64;

// Disjoint sets of rows, ordered by their smallest row. Set i lies at [ptr[i], ptr[i + 1]).
struct RowSets {
  std::vector<std::int32_t> ptr = {0};
  std::vector<std::int32_t> rows;

  std::int64_t size() const { return static_cast<std::int64_t>(ptr.size()) - 1; }
  std::span<const std::int32_t> of(std::int64_t set) const {
    return std::span(rows).subspan(ptr[set], ptr[set + 1] - ptr[set]);
  }
};

RowSets nonempty_rows(const CsrMatrix& matrix) {
  std::int64_t count = 0;
  for (std::int64_t row = 0; row < matrix.rows; ++row) count += matrix.row_length(row) > 0;
  RowSets out;
  out.ptr.reserve(count + 1);
  out.rows.reserve(count);
  for (std::int64_t row = 0; row < matrix.rows; ++row)
    if (matrix.row_length(row) > 0) {
      out.rows.push_back(static_cast<std::int32_t>(row));
      out.ptr.push_back(static_cast<std::int32_t>(out.rows.size()));
    }
  return out;
}

// The MinHash signature of every set of rows. That of a set with few nonzeros is computed when it
// is needed: keeping it would take more memory than the rows.
class Signatures {
 public:
  using Signature = std::array<std::uint32_t, kMostHashes>;

  Signatures(const CsrMatrix& matrix, const RowSets& sets, int hashes, std::uint64_t seed)
      : matrix_(matrix), sets_(sets), hashes_(hashes), seed_(seed), place_(sets.size(), -1) {
    // Hash h of a column is the h-th state of a linear congruential generator that starts there.
    for (int h = 1; h < hashes; ++h) {
      factor_[h] = factor_[h - 1] * 0x5851F42D4C957F2DULL;
      offset_[h] = offset_[h - 1] * 0x5851F42D4C957F2DULL + 0x14057B7EF767814FULL;
    }
    std::int32_t kept = 0;
    for (std::int64_t set = 0; set < sets.size(); ++set) {
      std::int64_t nonzeros = 0;
      for (const std::int32_t row : sets.of(set)) nonzeros += matrix.row_length(row);
      if (4 * nonzeros >= hashes) place_[set] = kept++;
    }
    minima_.resize(std::int64_t{kept} * hashes);
#pragma omp parallel for schedule(dynamic, 1024)
    for (std::int64_t set = 0; set < sets.size(); ++set)
      if (place_[set] >= 0) compute(set, 0, hashes, &minima_[std::int64_t{place_[set]} * hashes]);
  }

  std::int64_t size() const { return sets_.size(); }
  int hashes() const { return hashes_; }

  // All hashes of a set; in `scratch` where they are not kept.
  const std::uint32_t* of(std::int64_t set, Signature& scratch) const {
    return part_of(set, 0, hashes_, scratch);
  }
  // The hash of a band. Sets that agree on the whole band have the same hash.
  std::uint64_t band_key(std::int64_t set, int first, int count) const {
    Signature scratch;
    const std::uint32_t* const part = part_of(set, first, count, scratch);
    std::uint64_t key = 0;
    for (int h = 0; h < count; ++h) key = mix64(key ^ part[h]);
    return key;
  }

 private:
  const std::uint32_t* part_of(std::int64_t set, int first, int count, Signature& scratch) const {
    if (place_[set] >= 0) return &minima_[std::int64_t{place_[set]} * hashes_ + first];
    compute(set, first, count, scratch.data());
    return scratch.data();
  }

  void compute(std::int64_t set, int first, int count, std::uint32_t* minima) const {
    std::fill_n(minima, count, UINT32_MAX);
    for (const std::int32_t row : sets_.of(set))
      for (std::int64_t e = matrix_.row_ptr[row]; e < matrix_.row_ptr[row + 1]; ++e) {
        const std::uint64_t hash =
            mix64(seed_ + static_cast<std::uint64_t>(matrix_.col_idx[e]) + 1);
        for (int h = 0; h < count; ++h)
          minima[h] = std::min(
              minima[h],
              static_cast<std::uint32_t>((hash * factor_[first + h] + offset_[first + h]) >> 32));
      }
  }

  const CsrMatrix& matrix_;
  const RowSets& sets_;
  int hashes_;
  std::uint64_t seed_;
  std::array<std::uint64_t, kMostHashes> factor_ = {1}, offset_ = {};
  std::vector<std::int32_t> place_;    // of a set's minima, -1 where they are not kept
  std::vector<std::uint32_t> minima_;  // `hashes` each
};

// For one band after the other, calls visit(a, b) for every set b, where a is the last set before b
// that agrees with it on the whole band.
template <class Visit>
void for_each_candidate(const Signatures& signatures, int band_hashes, Visit&& visit) {
  // With fewer sets, threads wait for each other longer than they gain.
  constexpr std::int64_t kManySets = 1 << 18;
  constexpr std::int64_t kAhead = 16;
  const std::int64_t size = signatures.size();
  std::vector<std::uint64_t> keys(size);
  std::vector<std::int32_t> last(size + size / 2 + 1);  // by key: open addressing
  const auto slot_of = [&](std::uint64_t key) { return (key >> 32) * last.size() >> 32; };
  for (int band = 0; band + band_hashes <= signatures.hashes(); band += band_hashes) {
#pragma omp parallel for schedule(dynamic, 4096) if (size >= kManySets)
    for (std::int64_t i = 0; i < size; ++i) keys[i] = signatures.band_key(i, band, band_hashes);
    std::fill(last.begin(), last.end(), -1);
    for (std::int64_t i = 0; i < size; ++i) {
      if (i + kAhead < size) __builtin_prefetch(&last[slot_of(keys[i + kAhead])]);
      std::size_t slot = slot_of(keys[i]);
      while (last[slot] >= 0 && keys[last[slot]] != keys[i])
        slot = slot + 1 == last.size() ? 0 : slot + 1;
      if (last[slot] >= 0) visit(last[slot], static_cast<std::int32_t>(i));
      last[slot] = static_cast<std::int32_t>(i);
    }
  }
}

// The sets that set a is compared with, ascending: partner[ptr[a]] up to partner[ptr[a + 1]].
struct Candidates {
  static constexpr std::uint8_t kRepeated = 255;
  std::vector<std::int64_t> ptr;
  std::vector<std::int32_t> partner;
  // The Jaccard similarity, as the number of hashes that agree; or kRepeated.
  std::vector<std::uint8_t> similarity;
};

Candidates find_candidates(const Signatures& signatures, int band_hashes) {
  const std::int64_t size = signatures.size();
  Candidates out;
  {
    // Similar sets agree on most bands. A pair that the previous band gave is skipped.
    std::vector<std::int32_t> before(size, -1);
    const auto for_each_new = [&](auto&& visit) {
      for_each_candidate(signatures, band_hashes, [&](std::int32_t a, std::int32_t b) {
        if (before[a] != b) visit(a, b);
        before[a] = b;
      });
    };
    out.ptr.assign(size + 2, 0);
    for_each_new([&](std::int32_t a, std::int32_t) { ++out.ptr[a + 2]; });
    for (std::int64_t a = 0; a < size; ++a) out.ptr[a + 2] += out.ptr[a + 1];
    out.partner.resize(out.ptr.back());
    std::fill(before.begin(), before.end(), -1);
    // While the lists are filled, the next partner of a goes to ptr[a + 1], which becomes the end
    // of its list.
    for_each_new([&](std::int32_t a, std::int32_t b) { out.partner[out.ptr[a + 1]++] = b; });
  }
  out.similarity.resize(out.partner.size());
#pragma omp parallel for schedule(dynamic, 1024)
  for (std::int64_t a = 0; a < size; ++a) {
    if (out.ptr[a] == out.ptr[a + 1]) continue;
    std::sort(out.partner.begin() + out.ptr[a], out.partner.begin() + out.ptr[a + 1]);
    Signatures::Signature scratch, other_scratch;
    const std::uint32_t* const one = signatures.of(a, scratch);
    for (std::int64_t i = out.ptr[a]; i < out.ptr[a + 1]; ++i) {
      if (i > out.ptr[a] && out.partner[i] == out.partner[i - 1]) {
        out.similarity[i] = Candidates::kRepeated;
        continue;
      }
      const std::uint32_t* const other = signatures.of(out.partner[i], other_scratch);
      std::uint8_t equal = 0;
      for (int h = 0; h < signatures.hashes(); ++h) equal += one[h] == other[h];
      out.similarity[i] = equal;
    }
  }
  return out;
}

// Clusters of at most `capacity` sets.
class Clusters {
 public:
  Clusters(std::int64_t sets, int capacity) : link_(sets, -1), capacity_(capacity) {}

  void join(std::int32_t a, std::int32_t b) {
    a = root_of(a), b = root_of(b);
    if (a == b || -(link_[a] + link_[b]) > capacity_) return;
    if (a > b) std::swap(a, b);
    link_[a] += link_[b];
    link_[b] = a;
  }

  RowSets unite(const RowSets& sets) {
    RowSets out;
    out.ptr.assign(
        std::count_if(link_.begin(), link_.end(), [](auto link) { return link < 0; }) + 2, 0);
    // The smallest set of a cluster is its root, so a cluster has its number before its other sets
    // ask for it.
    std::vector<std::int32_t> cluster(sets.size());
    std::int32_t clusters = 0;
    for (std::int64_t i = 0; i < sets.size(); ++i) {
      const std::int32_t root = root_of(static_cast<std::int32_t>(i));
      cluster[i] = root == i ? clusters++ : cluster[root];
      out.ptr[cluster[i] + 2] += static_cast<std::int32_t>(sets.of(i).size());
    }
    for (std::int32_t c = 0; c < clusters; ++c) out.ptr[c + 2] += out.ptr[c + 1];
    out.rows.resize(sets.rows.size());
    for (std::int64_t i = 0; i < sets.size(); ++i)
      for (const std::int32_t row : sets.of(i)) out.rows[out.ptr[cluster[i] + 1]++] = row;
    out.ptr.pop_back();
    return out;
  }

 private:
  std::int32_t root_of(std::int32_t i) {
    while (link_[i] >= 0) {
      if (link_[link_[i]] >= 0) link_[i] = link_[link_[i]];
      i = link_[i];
    }
    return i;
  }

  // A set of the same cluster; in the root, minus the number of its sets.
  std::vector<std::int32_t> link_;
  int capacity_;
};

// Agglomerative clustering: the most similar pairs first, at most `capacity` sets in a cluster.
RowSets cluster(const RowSets& sets, const Signatures& signatures, int band_hashes, int capacity) {
  Clusters clusters(sets.size(), capacity);
  const Candidates candidates = find_candidates(signatures, band_hashes);
  const std::uint8_t* const begin = candidates.similarity.data();
  const std::uint8_t* const end = begin + candidates.similarity.size();
  for (int level = signatures.hashes(); level > 0; --level) {
    std::int32_t a = 0;
    for (const std::uint8_t* at = begin; at != end; ++at) {
      at = static_cast<const std::uint8_t*>(std::memchr(at, level, end - at));
      if (at == nullptr) break;
      while (candidates.ptr[a + 1] <= at - begin) ++a;
      clusters.join(a, candidates.partner[at - begin]);
    }
  }
  return clusters.unite(sets);
}

const auto kHashes = integer_option("hashes", 16, 4, kMostHashes, "MinHash values per row");
const auto kBand =
    integer_option("band", 2, 1, kMostHashes, "hashes that must agree for two rows to be compared");
const auto kCluster = integer_option("cluster", 16, 2, 1 << 20,
                                     "rows per cluster, and clusters per cluster of clusters");
const auto kHashSeed = seed_option("of the hash functions");

class Tca final : public Reordering {
 public:
  std::string name() const override { return "tca"; }
  std::string summary() const override {
    return "TC-cache-aware: MinHash clusters of rows, then clusters of clusters (DTC-SpMM)";
  }
  std::vector<OptionSpec> options() const override { return {kHashes, kBand, kCluster, kHashSeed}; }
  void check(const Options& options) const override {
    if (kBand(options) > kHashes(options))
      throw Error("reordering tca: expected band at most hashes");
  }
  Permutation compute(const CsrMatrix& matrix, const Options& options) const override {
    const int hashes = kHashes(options), band = kBand(options), capacity = kCluster(options);
    const std::uint64_t seed = kHashSeed(options);

    RowSets sets = nonempty_rows(matrix);
    // Unions agree on fewer hashes than rows do, so one agreement makes a candidate.
    for (const int band_hashes : {band, 1})
      sets = cluster(sets, Signatures(matrix, sets, hashes, seed), band_hashes, capacity);

    // Rows without entries stay between the clusters: everything is ordered by its first row.
    Permutation order;
    order.reserve(matrix.rows);
    std::int64_t next = 0;
    for (std::int64_t row = 0; row < matrix.rows; ++row)
      if (matrix.row_length(row) == 0) {
        order.push_back(static_cast<std::int32_t>(row));
      } else if (next < sets.size() && sets.of(next).front() == row) {
        order.insert(order.end(), sets.of(next).begin(), sets.of(next).end());
        ++next;
      }
    return order;
  }
};

SPMMBENCH_REGISTER_REORDERING(Tca);

}  // namespace
}  // namespace spmmbench::tca
