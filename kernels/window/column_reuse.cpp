#include "window/column_reuse.hpp"

#include <omp.h>

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "core/parallel.hpp"
#include "format/column_hash.hpp"

namespace spmmbench {
namespace {

constexpr std::int64_t kStretches = 4;

// One thread for each stretch of two orders. If threads take all cores, one that the system holds
// up keeps the others waiting for 10 ms (docs/decisions/locality.md).
int threads_of_stretches() {
  return std::min(2 * static_cast<int>(kStretches), omp_get_max_threads());
}

// The places where each of kStretches equal parts of the entries begins.
std::array<std::int64_t, kStretches> places_at_entries(const CsrMatrix& matrix,
                                                       const Permutation& row_order) {
  std::array<std::int64_t, kStretches> places{};
  const auto start = [&](std::int64_t stretch) { return matrix.nnz() * stretch / kStretches; };
  if (row_order.empty()) {
    for (std::int64_t stretch = 1; stretch < kStretches; ++stretch)
      places[stretch] =
          std::lower_bound(matrix.row_ptr.begin(), matrix.row_ptr.end(), start(stretch)) -
          matrix.row_ptr.begin();
    return places;
  }
  // Rows of another order lie far apart, so threads count the entries of some places each.
  constexpr std::int64_t kChunk = 1 << 12;
  const std::int64_t chunks = (matrix.rows + kChunk - 1) / kChunk;
  std::vector<std::int64_t> entries(chunks);
#pragma omp parallel for schedule(static) num_threads(threads_of_stretches())
  for (std::int64_t chunk = 0; chunk < chunks; ++chunk)
    for (std::int64_t i = chunk * kChunk; i < std::min((chunk + 1) * kChunk, matrix.rows); ++i)
      entries[chunk] += matrix.row_length(row_order[i]);
  std::int64_t chunk = 0, before = 0;  // entries before `chunk`
  for (std::int64_t stretch = 1; stretch < kStretches; ++stretch) {
    while (before + entries[chunk] < start(stretch)) before += entries[chunk++];
    std::int64_t place = chunk * kChunk;
    for (std::int64_t at = before; at < start(stretch); ++place)
      at += matrix.row_length(row_order[place]);
    places[stretch] = place;
  }
  return places;
}

// The share of new columns in the second half of a stretch that begins at the place `first`, with a
// cache that its first half has filled.
double new_column_share(const CsrMatrix& matrix, const Permutation& row_order, std::int64_t first,
                        std::int64_t kept) {
  const std::int64_t most_entries = std::min<std::int64_t>(1 << 18, matrix.nnz() / 3);
  // Entries that are read together: few where the cache keeps few, which one batch must not fill.
  constexpr std::int64_t kLeastBatch = 1 << 5, kMostBatch = 1 << 10, kBatches = 8;
  const std::int64_t batch = std::clamp(kept / kBatches, kLeastBatch, kMostBatch);
  constexpr std::int64_t kCounted = 1 << 11, kMostStep = 16;
  // One column of this many stands for all of them.
  const std::int64_t step = std::clamp<std::int64_t>(kept / kCounted, 1, kMostStep);
  const std::uint32_t highest = std::numeric_limits<std::uint32_t>::max() / step;
  struct Seen {
    std::int64_t entries, distinct;
  };
  std::vector<bool> seen(matrix.cols, false);
  std::vector<std::int32_t> counted;  // columns of some rows
  Seen now = {0, 0};
  std::vector<Seen> points = {now};
  for (std::int64_t place = first;
       place < matrix.rows && now.distinct * step < kept && now.entries < most_entries;) {
    // The entries of the next places, as few ranges as they make. Rows of another order lie far
    // apart, so they are all asked for before the first is read.
    std::array<std::pair<std::int64_t, std::int64_t>, 32> ranges;
    std::size_t count = 0;
    std::int64_t entries = 0;
    for (; place < matrix.rows && count < ranges.size() && entries < batch; ++place) {
      const std::int64_t row = row_order.empty() ? place : row_order[place];
      const std::int64_t begin = matrix.row_ptr[row], end = matrix.row_ptr[row + 1];
      entries += end - begin;
      if (count > 0 && ranges[count - 1].second == begin) {
        ranges[count - 1].second = end;
      } else {
        ranges[count++] = {begin, end};
        __builtin_prefetch(matrix.col_idx.data() + begin);
        __builtin_prefetch(matrix.col_idx.data() + end);
      }
    }
    if (std::ssize(counted) < entries) counted.resize(entries);
    std::size_t kept_columns = 0;  // written without a branch, which would be taken at random
    for (std::size_t i = 0; i < count; ++i)
      for (std::int64_t e = ranges[i].first; e < ranges[i].second; ++e) {
        counted[kept_columns] = matrix.col_idx[e];
        kept_columns += column_hash(matrix.col_idx[e]) <= highest ? 1 : 0;
      }
    for (std::size_t i = 0; i < kept_columns; ++i) {
      now.distinct += seen[counted[i]] ? 0 : 1;
      seen[counted[i]] = true;
    }
    now.entries += entries;
    points.push_back(now);
  }
  const auto half = std::lower_bound(
      points.begin(), points.end(), now.entries / 2,
      [](const Seen& seen_so_far, std::int64_t entries) { return seen_so_far.entries < entries; });
  return static_cast<double>((now.distinct - half->distinct) * step) /
         static_cast<double>(std::max<std::int64_t>(now.entries - half->entries, 1));
}

}  // namespace

std::vector<double> new_column_shares(const CsrMatrix& matrix,
                                      const std::vector<const Permutation*>& row_orders,
                                      std::int64_t kept) {
  std::vector<double> shares(row_orders.size(), 0.0);
  if (matrix.nnz() == 0) return shares;
  std::vector<std::array<std::int64_t, kStretches>> first;
  first.reserve(row_orders.size());
  for (const Permutation* order : row_orders) first.push_back(places_at_entries(matrix, *order));
  std::vector<double> of_stretch(row_orders.size() * kStretches);
  ExceptionTrap trap;
#pragma omp parallel for schedule(dynamic, 1) num_threads(threads_of_stretches())
  for (std::size_t i = 0; i < of_stretch.size(); ++i)
    trap.run([&] {
      of_stretch[i] = new_column_share(matrix, *row_orders[i / kStretches],
                                       first[i / kStretches][i % kStretches], kept);
    });
  trap.rethrow();
  for (std::size_t i = 0; i < of_stretch.size(); ++i)
    shares[i / kStretches] += of_stretch[i] / kStretches;
  return shares;
}

}  // namespace spmmbench
