// Matches rows into clusters of 2, 4, 8, 16 and 32 that share columns. At each level every cluster
// ranks some others by the share of columns that both have, and asks them to be its partner
// (partner_by_suits). Clusters that find none are joined in their order. Rows rank those that they
// meet in the lists of their columns; a cluster of two ranks the clusters of those that its two
// ranked. All of a level can be done at once, and the result does not depend on who is faster: the
// device computes the same order (kernels/row_order/match_order.hpp).

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
#include "reorder/first_columns.hpp"
#include "reorder/rim_distance.hpp"
#include "reorder/threads.hpp"
#include "spmmbench/registry.hpp"

namespace spmmbench::match {
namespace {

const auto kRows = choice_option("rows", "32", {"32", "auto"},
                                 "in the largest clusters; auto: 8 where rows share few columns");

const auto kSort =
    choice_option("sort", "none", {"none", "distance"},
                  "distance: rows, eight by eight, by the distance from one at the rim");

Form form_of(const Options& options) {
  return {kRows(options) == "auto" ? Height::by_need : Height::all, kSort(options) == "distance"};
}

using Columns = std::span<const std::int32_t>;  // ascending

Columns columns_of_row(const CsrMatrix& matrix, std::int32_t row) {
  return Columns(matrix.col_idx).subspan(matrix.row_ptr[row], matrix.row_length(row));
}

// Rows that are not empty.
struct Rows {
  const CsrMatrix& matrix;
  std::vector<std::int32_t> numbers = sorts_rows(matrix.rows, matrix.nnz())
                                          ? rows_by_first_columns(matrix)
                                          : rows_with_columns(matrix);

  std::int32_t count() const { return static_cast<std::int32_t>(numbers.size()); }
  Columns operator[](std::int32_t i) const { return columns_of_row(matrix, numbers[i]); }
  std::int32_t length(std::int32_t i) const {
    return static_cast<std::int32_t>(matrix.row_length(numbers[i]));
  }
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

  std::int32_t count() const { return static_cast<std::int32_t>(lengths.size()); }
  std::span<const std::int32_t> rows_of(std::int32_t i) const {
    const std::size_t of_one = rows.size() / lengths.size();
    return std::span(rows).subspan(i * of_one, of_one);
  }
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
    for (const std::int32_t column : all.matrix.col_idx) ptr[column + 1] += is_hub[column] ? 0 : 1;
    std::partial_sum(ptr.begin(), ptr.end(), ptr.begin());
    clusters.resize(ptr.back());
    std::vector<std::int32_t> next(ptr.begin(), ptr.end() - 1);
    for (std::int32_t i = 0; i < all.count(); ++i)
      for (const std::int32_t column : all[i])
        if (!is_hub[column]) clusters[next[column]++] = i;
  }
};

// The best of these ranks, best first.
void keep_best(std::vector<std::uint64_t>& ranks, std::int32_t most) {
  const auto kept = ranks.begin() + std::min<std::ptrdiff_t>(most, std::ssize(ranks));
  std::partial_sort(ranks.begin(), kept, ranks.end(), std::greater<>());
  ranks.erase(kept, ranks.end());
}

// How the rows that are nearest to one rank, best first. `weight` is all zero, before and after.
std::vector<std::uint64_t> near_row(std::int32_t own, const Rows& all, const Lists& lists,
                                    std::vector<std::int32_t>& weight) {
  const std::int32_t columns = all.length(own), places = match::places_for(columns);
  const std::int32_t used = match::used_columns(columns, places);
  const Columns columns_of_own = all[own];
  std::vector<std::int32_t> met;
  for (std::int32_t i = 0; i < used; ++i) {
    const std::int32_t column = columns_of_own[match::used_column(i, columns, used)];
    const auto begin = lists.clusters.begin() + lists.ptr[column];
    const auto end = lists.clusters.begin() + lists.ptr[column + 1];
    const auto length = static_cast<std::int32_t>(end - begin);
    const std::ptrdiff_t before = length > places ? std::lower_bound(begin, end, own) - begin : 0;
    const match::Part part = match::part_of_list(length, static_cast<std::int32_t>(before), places);
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
  keep_best(out, match::kNear);
  return out;
}

// For every cluster the others, ranked with the best first. Clusters that follow one another share
// an array.
class Ranks {
 public:
  explicit Ranks(std::int32_t count) : end_(count), of_part_((count + kPart - 1) / kPart) {}

  // Fills all by this many threads with a table each. find(table, i) returns those of cluster i, of
  // which most_of(i) are kept.
  template <class Make, class Most, class Find>
  void fill(int threads, const Make& make, const Most& most_of, const Find& find) {
    for_each_with_table(
        std::ssize(of_part_), 1, threads, make, [&](auto& table, std::int64_t part) {
          std::vector<std::uint64_t> all;
          const std::int64_t last = std::min((part + 1) * kPart, std::ssize(end_));
          for (std::int64_t i = part * kPart; i < last; ++i) {
            std::vector<std::uint64_t> ranks = find(table, static_cast<std::int32_t>(i));
            keep_best(ranks, most_of(static_cast<std::int32_t>(i)));
            all.insert(all.end(), ranks.begin(), ranks.end());
            end_[i] = static_cast<std::int32_t>(all.size());
          }
          of_part_[part].assign(all.begin(), all.end());
        });
  }
  template <class Most, class Find>
  void fill(const Most& most_of, const Find& find) {
    struct None {};
    fill(
        omp_get_max_threads(), [] { return None{}; }, most_of,
        [&](None, std::int32_t i) { return find(i); });
  }
  std::span<const std::uint64_t> operator[](std::int32_t i) const {
    const std::int32_t begin = i % kPart == 0 ? 0 : end_[i - 1];
    return std::span(of_part_[i / kPart]).subspan(begin, end_[i] - begin);
  }

 private:
  static constexpr std::int64_t kPart = 128;  // few: every thread has those of one twice

  std::vector<std::int32_t> end_;  // of each cluster's ranks in the array of its part
  std::vector<std::vector<std::uint64_t>> of_part_;
};

Ranks rank_rows(const Rows& all, const Lists& lists, int threads) {
  Ranks out(all.count());
  out.fill(
      threads, [&] { return std::vector<std::int32_t>(all.count()); },
      [&](std::int32_t own) { return match::near_of(all.length(own)); },
      [&](std::vector<std::int32_t>& weight, std::int32_t own) {
        return near_row(own, all, lists, weight);
      });
  return out;
}

// The columns of clusters as sets of bits. All are kept where that needs little memory beside the
// matrix, else those of long clusters: a row that nearly all others meet is read once.
class Sketches {
 public:
  Sketches(const CsrMatrix& matrix, const Clusters& all) : matrix_(matrix), all_(all) {
    if (all.count() * std::int64_t{sizeof(Sketch)} <= csr_bytes(matrix) / 2) least_ = 0;
    for (std::int32_t i = 0; i < all.count(); ++i)
      if (is_kept(i)) numbers_.push_back(i);
    kept_.resize(numbers_.size());
#pragma omp parallel for schedule(static)
    for (std::size_t i = 0; i < kept_.size(); ++i) kept_[i] = make(numbers_[i]);
  }
  Sketch operator[](std::int32_t i) const {
    if (!is_kept(i)) return make(i);
    return kept_[least_ == 0 ? i : std::ranges::lower_bound(numbers_, i) - numbers_.begin()];
  }

 private:
  bool is_kept(std::int32_t i) const { return all_.lengths[i] >= least_; }
  Sketch make(std::int32_t i) const {
    Sketch out{};
    for (const std::int32_t row : all_.rows_of(i))
      for (std::int64_t at = matrix_.row_ptr[row]; at < matrix_.row_ptr[row + 1]; ++at) {
        const std::uint32_t bit = match::sketch_bit(matrix_.col_idx[at]);
        out[bit / 32] |= 1U << bit % 32;
      }
    return out;
  }

  const CsrMatrix& matrix_;
  const Clusters& all_;
  std::int32_t least_ = match::kSketchBits;  // columns of a cluster that is kept
  std::vector<std::int32_t> numbers_;        // of those that are kept, ascending
  std::vector<Sketch> kept_;
};

// What became of the clusters of a level.
struct Joined {
  std::vector<std::int32_t> number;  // of the new cluster, or kNone
  std::vector<std::int32_t> of;      // of each new cluster the two
};

// Ranks clusters by the ranks that the two parts of each gave.
Ranks rank_clusters(const CsrMatrix& matrix, const Clusters& all, const Joined& joined,
                    const Ranks& before) {
  Ranks out(all.count());
  const Sketches sketches(matrix, all);
  out.fill([&](std::int32_t own) { return match::near_of(all.lengths[own]); },
           [&](std::int32_t own) {
             std::vector<std::int32_t> met;
             for (const std::int32_t one : {joined.of[2 * own], joined.of[2 * own + 1]})
               for (const std::uint64_t rank : before[one]) {
                 const std::int32_t number = joined.number[match::ranked_partner(one, rank)];
                 if (number != kNone && number != own) met.push_back(number);
               }
             std::ranges::sort(met);
             met.erase(std::unique(met.begin(), met.end()), met.end());
             const Sketch own_set = sketches[own];
             std::vector<std::uint64_t> ranks;
             ranks.reserve(met.size());
             for (const std::int32_t other : met)
               ranks.push_back(match::rank_sketch(own, other, bits_of(own_set, sketches[other])));
             return ranks;
           });
  return out;
}

// What a window of these rows gathers, as a sampled row of this many columns adds it to Sample.
std::uint64_t gathered_by_window(std::span<const Columns> rows, std::int32_t columns) {
  std::int64_t entries = 0;
  for (const Columns row : rows) entries += std::ssize(row);
  std::int32_t firsts = 0;
  for (std::int32_t i = 0; i < match::tested_of(entries); ++i) {
    std::int64_t at = match::tested_entry(i, entries);
    std::size_t place = 0;
    for (; at >= std::ssize(rows[place]); ++place) at -= std::ssize(rows[place]);
    const std::int32_t column = rows[place][at];
    firsts += std::ranges::none_of(rows.first(place), [&](Columns before) {
      return std::ranges::binary_search(before, column);
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
    std::vector<Columns> natural, matched = {rows[row]};
    const std::int64_t first = match::first_of_window(rows.numbers[row]);
    const std::int64_t end = std::min(first + match::kWindowReach, rows.matrix.rows);
    for (std::int64_t i = first; i < end && std::ssize(natural) < match::kWindowRows; ++i)
      if (const auto own = static_cast<std::int32_t>(i); rows.matrix.row_length(own) > 0)
        natural.push_back(columns_of_row(rows.matrix, own));
    for (const std::uint64_t rank : ranks)
      if (std::ssize(matched) < match::kWindowRows)
        matched.push_back(rows[match::ranked_partner(row, rank)]);
    sample.shared += match::shared_with(ranks.empty() ? 0 : ranks.front(), columns);
    sample.columns += columns;
    sample.natural += gathered_by_window(natural, columns);
    sample.matched += gathered_by_window(matched, columns);
  }
  return sample.gains(rows.count());
}

// Clusters without a partner find one among those that they rank. `mate`: of every cluster, or
// kNone.
void ask_partners(const Ranks& ranks, std::vector<std::int32_t>& mate) {
  const auto count = static_cast<std::int32_t>(mate.size());
  std::vector<std::uint64_t> best(count);  // of the suitors of each
  const auto suitor_of = [&](std::int32_t i) {
    return best[i] == 0 ? kNone : match::ranked_partner(i, best[i]);
  };
  std::vector<std::int32_t> taken_by(count, kNone);
  for (std::int32_t i = 0; i < count; ++i) {
    std::uint64_t lost = ~std::uint64_t{0};  // all that rank at least so high were asked
    for (std::int32_t own = mate[i] == kNone ? i : kNone; own != kNone;) {
      std::int32_t loser = kNone;
      for (const std::uint64_t rank : ranks[own]) {
        const std::int32_t other = match::ranked_partner(own, rank);
        if (rank >= lost || rank <= best[other]) continue;
        loser = suitor_of(other);
        lost = std::exchange(best[other], rank);
        taken_by[own] = other;
        break;
      }
      if (loser != kNone) taken_by[loser] = kNone;
      own = loser;
    }
  }
  for (std::int32_t i = 0; i < count; ++i)
    if (mate[i] == kNone)
      mate[i] = match::partner_by_suits(
          i, [&](std::int32_t own) { return taken_by[own]; }, suitor_of);
}

// How a cluster without a partner ranks others that it meets further away.
std::vector<std::uint64_t> rank_further(std::int32_t own, const Ranks& near,
                                        const std::vector<std::int32_t>& mate) {
  std::vector<std::int32_t> met, ways;
  const auto meet = [&](std::int32_t other) {
    if (other == own || mate[other] != kNone) return;
    const auto at = std::ranges::find(met, other);
    if (at != met.end()) {
      ++ways[at - met.begin()];
    } else if (std::ssize(met) < match::kMet) {
      met.push_back(other);
      ways.push_back(1);
    }
  };
  for (const std::uint64_t rank : near[own]) meet(match::ranked_partner(own, rank));
  for (const std::uint64_t rank : near[own]) {
    const std::int32_t one = match::ranked_partner(own, rank);
    for (const std::uint64_t next : near[one]) meet(match::ranked_partner(one, next));
  }
  std::vector<std::uint64_t> out;
  for (std::size_t i = 0; i < met.size(); ++i)
    out.push_back(match::rank_ways(own, met[i], ways[i]));
  return out;
}

// The partner of every cluster, or kNone.
std::vector<std::int32_t> match_clusters(std::int32_t count, const Ranks& near) {
  std::vector<std::int32_t> mate(count, kNone);
  ask_partners(near, mate);
  Ranks further(count);
  further.fill(
      [&](std::int32_t own) {
        return std::min<std::int32_t>(match::kFurther, std::ssize(near[own]));
      },
      [&](std::int32_t own) {
        return mate[own] == kNone ? rank_further(own, near, mate) : std::vector<std::uint64_t>();
      });
  ask_partners(further, mate);
  return mate;
}

// Joins partners, and those without one two by two in their order. The last of an odd number of
// these is left out: its rows are added to `left`.
Clusters join(const CsrMatrix& matrix, const Clusters& all, std::vector<std::int32_t> mate,
              Joined& joined, std::vector<std::vector<std::int32_t>>& left) {
  const Sketches sketches(matrix, all);
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
    out.lengths.push_back(match::united_length(all.lengths[i], all.lengths[other],
                                               bits_of(sketches[i], sketches[other])));
  }
  return out;
}

Clusters clusters_of(const Rows& rows) {
  Clusters out{rows.numbers, {}};
  out.lengths.reserve(rows.count());
  for (std::int32_t i = 0; i < rows.count(); ++i) out.lengths.push_back(rows.length(i));
  return out;
}

// How rows rank each other; nothing where no order of them can gain.
std::optional<Ranks> rank_if_gains(const Rows& rows, Height height) {
  const Lists lists(rows, find_hubs(rows.matrix));
  const bool asks = height == Height::by_need && asks_sample(rows.count(), rows.matrix.nnz());
  if (asks && !gains(rows, lists)) return std::nullopt;
  const auto table_bytes = static_cast<std::int64_t>(rows.count() * sizeof(std::int32_t));
  return rank_rows(rows, lists, threads_for_tables(rows.matrix, table_bytes));
}

Permutation match_rows(const CsrMatrix& matrix, Height height) {
  Joined joined;
  std::optional<Ranks> ranks;
  Clusters clusters;
  {
    const Rows rows{matrix};
    ranks = rank_if_gains(rows, height);
    if (!ranks) {
      Permutation natural(matrix.rows);
      std::iota(natural.begin(), natural.end(), 0);
      return natural;
    }
    clusters = clusters_of(rows);
  }
  std::vector<std::vector<std::int32_t>> left;  // smaller clusters, ascending in size
  std::int64_t columns_of_pairs = 0, columns_of_fours = 0;
  for (int level = 0; level < kLevels && clusters.count() > 1; ++level) {
    const std::int64_t columns =
        std::accumulate(clusters.lengths.begin(), clusters.lengths.end(), std::int64_t{0});
    if (level == 1) columns_of_pairs = columns;
    if (level == 2) columns_of_fours = columns;
    if (level == kLowLevels && height == Height::by_need &&
        !grows_on(columns_of_pairs, columns_of_fours))
      break;
    if (level > 0) ranks = rank_clusters(matrix, clusters, joined, *ranks);
    clusters = join(matrix, clusters, match_clusters(clusters.count(), *ranks), joined, left);
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
  std::vector<OptionSpec> options() const override { return {kRows, kSort}; }
  Permutation compute(const CsrMatrix& matrix, const Options& options) const override {
    const auto compute = [form = form_of(options)](const CsrMatrix& compact) {
      Permutation order = match_rows(compact, form.height);
      return form.by_distance ? rim::sort_by_distance(compact, order) : order;
    };
    return order_compactly(matrix, compute, kMostRowsAndColumns);
  }
};

SPMMBENCH_REGISTER_REORDERING(Match);

}  // namespace

std::optional<Form> form_of(std::string_view spec) {
  const Spec parsed = Spec::parse(spec);
  if (parsed.name != "match") return std::nullopt;
  return form_of(parsed.options);
}

const char* unsorted(Height height) {
  return height == Height::by_need ? "match?rows=auto" : "match";
}

}  // namespace spmmbench::match
