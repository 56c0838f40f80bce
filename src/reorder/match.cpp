// Matches rows into clusters of 2, 4, 8, 16 and 32 that share columns. At each level every cluster
// ranks the others by the share of columns that both have, and two that rank each other first,
// among those without a partner, are joined. Clusters that find none are joined in their order. All
// of a level can be done at once, and the result does not depend on who is faster: the device
// computes the same order (kernels/row_order/match_order.hpp).

#include "reorder/match.hpp"

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

// Clusters of equally many rows, in the order of their first rows.
struct Clusters {
  std::vector<std::int32_t> ptr = {0};  // into columns
  std::vector<std::int32_t> columns;    // of each cluster, ascending
  std::vector<std::int32_t> rows;       // all rows of the first cluster, then of the second, ...

  std::int32_t count() const { return static_cast<std::int32_t>(ptr.size()) - 1; }
  std::int32_t length(std::int32_t i) const { return ptr[i + 1] - ptr[i]; }
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

  Lists(const Clusters& all, const std::vector<char>& is_hub) : ptr(is_hub.size() + 1) {
    for (const std::int32_t column : all.columns) ptr[column + 1] += is_hub[column] ? 0 : 1;
    std::partial_sum(ptr.begin(), ptr.end(), ptr.begin());
    clusters.resize(ptr.back());
    std::vector<std::int32_t> next(ptr.begin(), ptr.end() - 1);
    for (std::int32_t i = 0; i < all.count(); ++i)
      for (std::int32_t at = all.ptr[i]; at < all.ptr[i + 1]; ++at)
        if (const std::int32_t column = all.columns[at]; !is_hub[column])
          clusters[next[column]++] = i;
  }
  Lists() = default;

  // Those of clusters without a partner.
  Lists of_free(const std::vector<std::int32_t>& mate) const {
    Lists out;
    out.ptr.reserve(ptr.size());
    out.ptr.push_back(0);
    for (std::size_t column = 0; column + 1 < ptr.size(); ++column) {
      std::copy_if(clusters.begin() + ptr[column], clusters.begin() + ptr[column + 1],
                   std::back_inserter(out.clusters),
                   [&](std::int32_t cluster) { return mate[cluster] == kNone; });
      out.ptr.push_back(static_cast<std::int32_t>(out.clusters.size()));
    }
    return out;
  }
};

// How the best partners of one cluster among those without one rank, best first. `weight` is all
// zero, before and after.
std::vector<std::uint64_t> partners_of(std::int32_t own, const Clusters& all, const Lists& lists,
                                       int pass, std::vector<std::int32_t>& weight) {
  const std::int32_t columns = all.length(own), places = match::places_in(pass);
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
  const auto kept = out.begin() + std::min<std::ptrdiff_t>(match::kPartners, std::ssize(out));
  std::partial_sort(out.begin(), kept, out.end(), std::greater<>());
  out.erase(kept, out.end());
  return out;
}

// The best partners of every cluster, best first. Clusters that follow one another share an array.
class Partners {
 public:
  explicit Partners(std::int32_t count) : end_(count), of_part_((count + kPart - 1) / kPart) {}

  std::int64_t parts() const { return std::ssize(of_part_); }
  // Fills the clusters of one part. find(i) returns the partners of cluster i.
  template <class Find>
  void fill(std::int64_t part, Find&& find) {
    std::vector<std::int32_t> all;
    const std::int64_t last = std::min((part + 1) * kPart, std::ssize(end_));
    for (std::int64_t i = part * kPart; i < last; ++i) {
      const auto own = static_cast<std::int32_t>(i);
      for (const std::uint64_t rank : find(own)) all.push_back(match::ranked_partner(own, rank));
      end_[i] = static_cast<std::int32_t>(all.size());
    }
    of_part_[part].assign(all.begin(), all.end());
  }
  std::span<const std::int32_t> operator[](std::int32_t i) const {
    const std::int32_t begin = i % kPart == 0 ? 0 : end_[i - 1];
    return std::span(of_part_[i / kPart]).subspan(begin, end_[i] - begin);
  }

 private:
  static constexpr std::int64_t kPart = 1024;

  std::vector<std::int32_t> end_;  // of each cluster's partners in the array of its part
  std::vector<std::vector<std::int32_t>> of_part_;
};

// What a window of these rows gathers, as a sampled row of so many columns adds it to Sample.
std::uint64_t gathered_by_window(const Clusters& all, std::span<const std::int32_t> rows,
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
bool gains(const Clusters& rows, const Lists& lists) {
  std::vector<std::int32_t> weight(rows.count());
  match::Sample sample;
  for (std::int32_t row = 0; row < rows.count(); row += match::sample_step(rows.count())) {
    const std::vector<std::uint64_t> ranks = partners_of(row, rows, lists, 0, weight);
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

// The partner of every cluster, or kNone. `threads`: so many may have a table of all clusters.
std::vector<std::int32_t> match_clusters(const Clusters& all, const Lists& lists, int threads) {
  const std::int32_t count = all.count();
  std::vector<std::int32_t> mate(count, kNone), first(count);
  for (int pass = 0; pass < match::kPasses; ++pass) {
    const Lists of_free = pass == 0 ? Lists() : lists.of_free(mate);
    Partners partners(count);
    for_each_with_table(
        partners.parts(), 1, threads, [&] { return std::vector<std::int32_t>(count); },
        [&](std::vector<std::int32_t>& weight, std::int64_t part) {
          partners.fill(part, [&](std::int32_t own) {
            return mate[own] == kNone
                       ? partners_of(own, all, pass == 0 ? lists : of_free, pass, weight)
                       : std::vector<std::uint64_t>();
          });
        });
    for (int round = 0; round < match::kRounds; ++round) {
      for (std::int32_t i = 0; i < count; ++i) {
        first[i] = kNone;
        if (mate[i] != kNone) continue;
        const auto free = std::ranges::find_if(
            partners[i], [&](std::int32_t other) { return mate[other] == kNone; });
        if (free != partners[i].end()) first[i] = *free;
      }
      for (std::int32_t i = 0; i < count; ++i)
        if (first[i] != kNone && first[first[i]] == i) mate[i] = first[i];
    }
  }
  return mate;
}

// Joins partners, and those without one two by two in their order. The last of an odd number of
// these is left out: its rows are added to `left`.
Clusters join(const Clusters& all, std::vector<std::int32_t> mate,
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
  out.columns.reserve(all.columns.size());
  out.rows.reserve(all.rows.size());
  for (std::int32_t i = 0; i < all.count(); ++i) {
    const std::int32_t other = mate[i];
    if (other == kNone || other < i) continue;
    out.rows.insert(out.rows.end(), rows(i), rows(i) + rows_of_one);
    out.rows.insert(out.rows.end(), rows(other), rows(other) + rows_of_one);
    const auto columns = [&](std::int32_t one) {
      return std::span(all.columns).subspan(all.ptr[one], all.length(one));
    };
    std::ranges::set_union(columns(i), columns(other), std::back_inserter(out.columns));
    out.ptr.push_back(static_cast<std::int32_t>(out.columns.size()));
  }
  return out;
}

Permutation natural_order(std::int64_t rows) {
  Permutation order(rows);
  std::iota(order.begin(), order.end(), 0);
  return order;
}

Permutation match_rows(const CsrMatrix& matrix, Height height) {
  Clusters clusters;
  clusters.columns = matrix.col_idx;
  for (std::int32_t row = 0; row < matrix.rows; ++row) {
    if (matrix.row_length(row) == 0) continue;
    clusters.rows.push_back(row);
    clusters.ptr.push_back(static_cast<std::int32_t>(matrix.row_ptr[row + 1]));
  }
  const auto table_bytes = static_cast<std::int64_t>(clusters.rows.size() * sizeof(std::int32_t));
  const int threads = threads_for_tables(matrix, table_bytes);
  const std::vector<char> is_hub = find_hubs(matrix);
  std::vector<std::vector<std::int32_t>> left;  // smaller clusters, ascending in size
  std::int64_t columns_of_pairs = 0, columns_of_fours = 0;
  for (int level = 0; level < kLevels && clusters.count() > 1; ++level) {
    const std::int64_t columns = std::ssize(clusters.columns);
    if (level == 1) columns_of_pairs = columns;
    if (level == 2) columns_of_fours = columns;
    if (level == kLowLevels && height == Height::by_need &&
        !grows_on(columns_of_pairs, columns_of_fours))
      break;
    const Lists lists(clusters, is_hub);
    if (level == 0 && height == Height::by_need && asks_sample(clusters.count(), columns) &&
        !gains(clusters, lists))
      return natural_order(matrix.rows);
    clusters = join(clusters, match_clusters(clusters, lists, threads), left);
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
