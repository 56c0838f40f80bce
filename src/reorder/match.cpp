// Matches rows into clusters of 2, 4, 8, 16 and 32 that share columns. At each level every cluster
// ranks some others by the share of columns that both have, and two that rank each other first,
// among those without a partner, are joined. Clusters that find none are joined in their order.
// Rows rank those that they meet in the lists of their columns; a cluster of two ranks the clusters
// of those that its two ranked best. Who is left without a partner goes on to those that its best
// ones ranked best. All of a level can be done at once, and the result does not depend on who is
// faster: the device computes the same order (kernels/row_order/match_order.hpp).

#include "reorder/match.hpp"

#include <omp.h>

#include <array>
#include <bit>
#include <functional>
#include <iterator>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "core/parallel.hpp"
#include "reorder/compact.hpp"
#include "reorder/threads.hpp"
#include "spmmbench/registry.hpp"

namespace spmmbench::match {
namespace {

const auto kRows = choice_option("rows", "32", {"32", "auto"},
                                 "in the largest clusters; auto: 8 where rows share few columns");

Height height_of(const Options& options) {
  return kRows(options) == "auto" ? Height::by_need : Height::all;
}

// Rows that are not empty.
struct Rows {
  std::vector<std::int32_t> ptr = {0};  // into columns
  std::vector<std::int32_t> columns;    // of each row, ascending

  std::int32_t count() const { return static_cast<std::int32_t>(ptr.size()) - 1; }
  std::int32_t length(std::int32_t i) const { return ptr[i + 1] - ptr[i]; }
};

using Sketch = std::array<std::uint32_t, match::kSketchWords>;

match::SketchBits bits_of(const Sketch& own, const Sketch& other) {
  match::SketchBits out{0, 0, 0};
  for (int i = 0; i < match::kSketchWords; ++i) {
    out.own += std::popcount(own[i]);
    out.other += std::popcount(other[i]);
    out.both += std::popcount(own[i] & other[i]);
  }
  return out;
}

// Clusters of equally many rows, in the order of their first rows.
struct Clusters {
  std::vector<std::int32_t> rows;     // all rows of the first cluster, then of the second, ...
  std::vector<std::int32_t> lengths;  // columns of each, about
  std::vector<Sketch> sketches;

  std::int32_t count() const { return static_cast<std::int32_t>(lengths.size()); }
};

// For each column whether more than kMostOfColumn rows have it.
std::vector<char> find_hubs(const CsrMatrix& matrix) {
  std::vector<std::int32_t> rows(matrix.cols);
  for (const std::int32_t column : matrix.col_idx) ++rows[column];
  std::vector<char> is_hub(matrix.cols);
  std::ranges::transform(rows, is_hub.begin(),
                         [](std::int32_t count) { return count > match::kMostOfColumn; });
  return is_hub;
}

constexpr std::int32_t kNone = -1;

// For each column the clusters that have it, ascending; none for a hub.
struct Lists {
  std::vector<std::int32_t> ptr;
  std::vector<std::int32_t> clusters;

  Lists(const Rows& all, const std::vector<char>& is_hub) : ptr(is_hub.size() + 1) {
    for (const std::int32_t column : all.columns) ptr[column + 1] += is_hub[column] ? 0 : 1;
    std::partial_sum(ptr.begin(), ptr.end(), ptr.begin());
    clusters.resize(ptr.back());
    std::vector<std::int32_t> next(ptr.begin(), ptr.end() - 1);
    for (std::int32_t i = 0; i < all.count(); ++i)
      for (std::int32_t at = all.ptr[i]; at < all.ptr[i + 1]; ++at)
        if (const std::int32_t column = all.columns[at]; !is_hub[column])
          clusters[next[column]++] = i;
  }
};

// The best of these ranks, best first.
void keep_best(std::vector<std::uint64_t>& ranks) {
  const auto kept = ranks.begin() + std::min<std::ptrdiff_t>(match::kNear, std::ssize(ranks));
  std::partial_sort(ranks.begin(), kept, ranks.end(), std::greater<>());
  ranks.erase(kept, ranks.end());
}

// How the rows that are nearest to one rank, best first. `weight` is all zero, before and after.
std::vector<std::uint64_t> near_row(std::int32_t own, const Rows& all, const Lists& lists,
                                    std::vector<std::int32_t>& weight) {
  const std::int32_t columns = all.length(own), places = match::places_for(columns);
  const std::int32_t used = match::used_columns(columns, places);
  std::vector<std::int32_t> met;
  for (std::int32_t i = 0; i < used; ++i) {
    const std::int32_t column = all.columns[all.ptr[own] + match::used_column(i, columns, used)];
    const auto begin = lists.clusters.begin() + lists.ptr[column];
    const auto end = lists.clusters.begin() + lists.ptr[column + 1];
    const auto length = static_cast<std::int32_t>(end - begin);
    const bool is_long = length > places;
    const auto before =
        is_long ? static_cast<std::int32_t>(std::lower_bound(begin, end, own) - begin) : 0;
    const match::Part part = match::part_of_list(length, before, places);
    for (auto at = begin + part.begin; at != begin + part.end; ++at) {
      if (*at == own) continue;
      if (weight[*at] == 0) met.push_back(*at);
      weight[*at] += part.weight;
    }
  }
  std::vector<std::uint64_t> out;
  out.reserve(met.size());
  for (const std::int32_t other : met)
    out.push_back(match::rank_partner(own, other, std::exchange(weight[other], 0), columns, used,
                                      all.length(other)));
  keep_best(out);
  return out;
}

// How one cluster ranks others, best first, by the columns that they have.
std::vector<std::uint64_t> rank_by_sketches(std::int32_t own, const Clusters& all,
                                            const std::vector<std::int32_t>& others) {
  std::vector<std::uint64_t> out;
  out.reserve(others.size());
  for (const std::int32_t other : others)
    out.push_back(match::rank_sketch(own, other, bits_of(all.sketches[own], all.sketches[other])));
  keep_best(out);
  return out;
}

// So many others of every cluster, best first, and kNone after the last.
class Others {
 public:
  Others(std::int32_t count, int of_one)
      : of_one_(of_one), all_(static_cast<std::size_t>(count) * of_one, kNone) {}

  void set(std::int32_t own, const std::vector<std::uint64_t>& ranks) {
    std::int32_t* out = all_.data() + std::int64_t{own} * of_one_;
    for (int i = 0; i < of_one_; ++i)
      out[i] = i < std::ssize(ranks) ? match::ranked_partner(own, ranks[i]) : kNone;
  }
  std::span<const std::int32_t> operator[](std::int32_t own) const {
    const auto of_one = std::span(all_).subspan(std::int64_t{own} * of_one_, of_one_);
    return of_one.first(std::ranges::find(of_one, kNone) - of_one.begin());
  }

 private:
  int of_one_;
  std::vector<std::int32_t> all_;
};

constexpr std::int64_t kPart = 1024;  // clusters that a thread takes at a time

// act(table, i) for each of them, by so many threads with a table each.
template <class Make, class Act>
void for_each_cluster(std::int32_t count, int threads, const Make& make, const Act& act) {
  for_each_with_table((count + kPart - 1) / kPart, 1, threads, make,
                      [&](auto& table, std::int64_t part) {
                        const std::int64_t last = std::min<std::int64_t>((part + 1) * kPart, count);
                        for (std::int64_t i = part * kPart; i < last; ++i)
                          act(table, static_cast<std::int32_t>(i));
                      });
}
template <class Act>
void for_each_cluster(std::int32_t count, const Act& act) {
  struct None {};
  for_each_cluster(
      count, omp_get_max_threads(), [] { return None{}; },
      [&](None, std::int32_t own) { act(own); });
}

// Of all rows. `threads`: so many may have a table of all clusters.
Others near_rows(const Rows& all, const Lists& lists, int threads) {
  const std::int32_t count = all.count();
  Others out(count, match::kNear);
  for_each_cluster(
      count, threads, [&] { return std::vector<std::int32_t>(count); },
      [&](std::vector<std::int32_t>& weight, std::int32_t own) {
        out.set(own, near_row(own, all, lists, weight));
      });
  return out;
}

// What became of the clusters of a level.
struct Joined {
  std::vector<std::int32_t> number;  // of the new cluster, or kNone
  std::vector<std::int32_t> of;      // of each new cluster the two
};

// Of all clusters, by those that were near to their two.
Others near_clusters(const Clusters& all, const Joined& joined, const Others& near_before) {
  Others out(all.count(), match::kNear);
  for_each_cluster(all.count(), [&](std::int32_t own) {
    std::vector<std::int32_t> met;
    for (const std::int32_t one : {joined.of[2 * own], joined.of[2 * own + 1]})
      for (const std::int32_t other : near_before[one])
        if (const std::int32_t number = joined.number[other]; number != kNone && number != own)
          met.push_back(number);
    std::ranges::sort(met);
    met.erase(std::unique(met.begin(), met.end()), met.end());
    out.set(own, rank_by_sketches(own, all, met));
  });
  return out;
}

// Clusters without a partner that one meets among those near to it and to these, and how they rank.
std::vector<std::uint64_t> further_partners(std::int32_t own, const Clusters& all,
                                            const Others& near,
                                            const std::vector<std::int32_t>& mate) {
  std::vector<std::int32_t> met;
  const auto meet = [&](std::int32_t other) {
    if (other != own && mate[other] == kNone) met.push_back(other);
  };
  for (const std::int32_t one : near[own]) {
    meet(one);
    for (const std::int32_t other : near[one]) meet(other);
  }
  std::ranges::sort(met);
  std::vector<std::uint64_t> ranks;
  for (auto at = met.begin(); at != met.end();) {
    const auto next = std::upper_bound(at, met.end(), *at);
    ranks.push_back(match::rank_ways(own, *at, static_cast<std::int32_t>(next - at)));
    at = next;
  }
  keep_best(ranks);
  std::vector<std::int32_t> others;
  for (const std::uint64_t rank : ranks) others.push_back(match::ranked_partner(own, rank));
  return rank_by_sketches(own, all, others);
}

// What a window of these rows gathers, as a sampled row of so many columns adds it to Sample.
std::uint64_t gathered_by_window(const Rows& all, std::span<const std::int32_t> rows,
                                 std::int32_t columns) {
  std::int64_t entries = 0;
  for (const std::int32_t row : rows) entries += all.length(row);
  const auto columns_of = [&](std::int32_t row) {
    return std::span(all.columns).subspan(all.ptr[row], all.length(row));
  };
  std::int32_t firsts = 0;
  for (std::int32_t i = 0; i < match::tested_of(entries); ++i) {
    std::int64_t at = match::tested_entry(i, entries);
    std::size_t place = 0;
    for (; at >= all.length(rows[place]); ++place) at -= all.length(rows[place]);
    const std::int32_t column = columns_of(rows[place])[at];
    firsts += std::ranges::none_of(rows.first(place), [&](std::int32_t before) {
      return std::ranges::binary_search(columns_of(before), column);
    });
  }
  return match::gathered_by(firsts, entries, columns);
}

// Whether an order of these rows can gain, by a sample.
bool gains(const Rows& rows, const Lists& lists) {
  std::vector<std::int32_t> weight(rows.count());
  match::Sample sample;
  for (std::int32_t row = 0; row < rows.count(); row += match::sample_step(rows.count())) {
    const std::vector<std::uint64_t> ranks = near_row(row, rows, lists, weight);
    const std::int32_t columns = rows.length(row);
    std::vector<std::int32_t> natural, matched = {row};
    for (std::int32_t i = row / match::kWindowRows * match::kWindowRows;
         i < rows.count() && std::ssize(natural) < match::kWindowRows; ++i)
      natural.push_back(i);
    for (const std::uint64_t rank : ranks)
      if (std::ssize(matched) < match::kWindowRows)
        matched.push_back(match::ranked_partner(row, rank));
    sample.shared += match::shared_with(ranks.empty() ? 0 : ranks.front(), columns);
    sample.columns += columns;
    sample.natural += gathered_by_window(rows, natural, columns);
    sample.matched += gathered_by_window(rows, matched, columns);
  }
  return sample.gains(rows.count());
}

// Rounds of a pass: `mate` has the partner of every cluster, or kNone. Each asks the first of these
// that has none.
void hold_rounds(const Others& partners, std::vector<std::int32_t>& mate) {
  const auto count = static_cast<std::int32_t>(mate.size());
  std::vector<std::int32_t> first(count);
  for (int round = 0; round < match::kRounds; ++round) {
    for (std::int32_t i = 0; i < count; ++i) {
      first[i] = kNone;
      if (mate[i] != kNone) continue;
      auto asked = partners[i];
      if (std::ssize(asked) > match::kPartners) asked = asked.first(match::kPartners);
      const auto free =
          std::ranges::find_if(asked, [&](std::int32_t other) { return mate[other] == kNone; });
      if (free != asked.end()) first[i] = *free;
    }
    for (std::int32_t i = 0; i < count; ++i)
      if (first[i] != kNone && first[first[i]] == i) mate[i] = first[i];
  }
}

// The partner of every cluster, or kNone.
std::vector<std::int32_t> match_clusters(const Clusters& all, const Others& near) {
  const std::int32_t count = all.count();
  std::vector<std::int32_t> mate(count, kNone);
  hold_rounds(near, mate);
  for (int pass = 1; pass < match::kPasses; ++pass) {
    Others partners(count, match::kPartners);
    for_each_cluster(count, [&](std::int32_t own) {
      if (mate[own] == kNone) partners.set(own, further_partners(own, all, near, mate));
    });
    hold_rounds(partners, mate);
  }
  return mate;
}

// Joins partners, and those without one two by two in their order. The last of an odd number of
// these is left out: its rows are added to `left`.
Clusters join(const Clusters& all, std::vector<std::int32_t> mate, Joined& joined,
              std::vector<std::vector<std::int32_t>>& left) {
  const auto rows_of_one = all.count() == 0 ? 0 : std::ssize(all.rows) / all.count();
  const auto rows = [&](std::int32_t i) { return all.rows.begin() + i * rows_of_one; };
  std::int32_t waiting = kNone;
  for (std::int32_t i = 0; i < all.count(); ++i) {
    if (mate[i] != kNone) continue;
    if (waiting == kNone) {
      waiting = i;
      continue;
    }
    mate[i] = waiting;
    mate[std::exchange(waiting, kNone)] = i;
  }
  if (waiting != kNone) left.emplace_back(rows(waiting), rows(waiting) + rows_of_one);
  Clusters out;
  out.rows.reserve(all.rows.size());
  joined.number.assign(all.count(), kNone);
  joined.of.clear();
  for (std::int32_t i = 0; i < all.count(); ++i) {
    const std::int32_t other = mate[i];
    if (other == kNone || other < i) continue;
    joined.number[i] = joined.number[other] = out.count();
    joined.of.insert(joined.of.end(), {i, other});
    out.rows.insert(out.rows.end(), rows(i), rows(i) + rows_of_one);
    out.rows.insert(out.rows.end(), rows(other), rows(other) + rows_of_one);
    Sketch sketch = all.sketches[i];
    for (int word = 0; word < match::kSketchWords; ++word)
      sketch[word] |= all.sketches[other][word];
    out.lengths.push_back(match::united_length(all.lengths[i], all.lengths[other],
                                               bits_of(all.sketches[i], all.sketches[other])));
    out.sketches.push_back(sketch);
  }
  return out;
}

Permutation natural_order(std::int64_t rows) {
  Permutation order(rows);
  std::iota(order.begin(), order.end(), 0);
  return order;
}

Sketch sketch_of(const Rows& rows, std::int32_t row) {
  Sketch out{};
  for (std::int32_t at = rows.ptr[row]; at < rows.ptr[row + 1]; ++at) {
    const std::uint32_t bit = match::sketch_bit(rows.columns[at]);
    out[bit / 32] |= 1U << bit % 32;
  }
  return out;
}

Permutation match_rows(const CsrMatrix& matrix, Height height) {
  Rows rows;
  rows.columns = matrix.col_idx;
  Clusters clusters;
  for (std::int32_t row = 0; row < matrix.rows; ++row) {
    if (matrix.row_length(row) == 0) continue;
    clusters.rows.push_back(row);
    clusters.lengths.push_back(static_cast<std::int32_t>(matrix.row_length(row)));
    rows.ptr.push_back(static_cast<std::int32_t>(matrix.row_ptr[row + 1]));
  }
  clusters.sketches.resize(rows.count());
  for_each_cluster(rows.count(),
                   [&](std::int32_t row) { clusters.sketches[row] = sketch_of(rows, row); });
  const auto table_bytes = static_cast<std::int64_t>(clusters.rows.size() * sizeof(std::int32_t));
  const int threads = threads_for_tables(matrix, table_bytes);
  std::vector<std::vector<std::int32_t>> left;  // smaller clusters, ascending in size
  std::int64_t columns_of_pairs = 0, columns_of_fours = 0;
  Joined joined;
  Others near(0, match::kNear);
  for (int level = 0; level < kLevels && clusters.count() > 1; ++level) {
    const std::int64_t columns =
        std::accumulate(clusters.lengths.begin(), clusters.lengths.end(), std::int64_t{0});
    if (level == 1) columns_of_pairs = columns;
    if (level == 2) columns_of_fours = columns;
    if (level == kLowLevels && height == Height::by_need &&
        !grows_on(columns_of_pairs, columns_of_fours))
      break;
    if (level == 0) {
      const Lists lists(rows, find_hubs(matrix));
      if (height == Height::by_need && asks_sample(rows.count(), columns) && !gains(rows, lists))
        return natural_order(matrix.rows);
      near = near_rows(rows, lists, threads);
    } else {
      near = near_clusters(clusters, joined, near);
    }
    clusters = join(clusters, match_clusters(clusters, near), joined, left);
  }
  Permutation order = std::move(clusters.rows);
  order.reserve(matrix.rows);
  for (auto one = left.rbegin(); one != left.rend(); ++one)
    order.insert(order.end(), one->begin(), one->end());
  for (std::int32_t row = 0; row < matrix.rows; ++row)
    if (matrix.row_length(row) == 0) order.push_back(row);
  return order;
}

class Match final : public Reordering {
 public:
  std::string name() const override { return "match"; }
  std::string summary() const override {
    return "rows matched two by two, then pairs, up to clusters of 32 that share columns";
  }
  std::vector<OptionSpec> options() const override { return {kRows}; }
  Permutation compute(const CsrMatrix& matrix, const Options& options) const override {
    return order_compactly(matrix, [height = height_of(options)](const CsrMatrix& compact) {
      return match_rows(compact, height);
    });
  }
};

SPMMBENCH_REGISTER_REORDERING(Match);

}  // namespace

std::optional<Height> height_of(std::string_view spec) {
  const Spec parsed = Spec::parse(spec);
  if (parsed.name != "match") return std::nullopt;
  return height_of(parsed.options);
}

}  // namespace spmmbench::match
