#include <gtest/gtest.h>
#include <omp.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <numeric>

#include "matrices.hpp"
#include "reorder/graph.hpp"
#include "reorder/match.hpp"
#include "reorder/rim_distance.hpp"
#include "reorder/rsh_path.hpp"
#include "reorder/similarity.hpp"
#include "spmmbench/random.hpp"
#include "spmmbench/registry.hpp"
#include "spmmbench/reordering.hpp"

namespace spmmbench {
namespace {

Permutation compute(const char* spec, const CsrMatrix& matrix) {
  const Spec parsed = Spec::parse(spec);
  return Registry<Reordering>::instance().at(parsed.name).compute(matrix, parsed.options);
}

CsrMatrix shuffled(const CsrMatrix& matrix) {
  return permute_rows(matrix, compute("random?seed=3", matrix));
}

// `blocks` groups of `size` rows; the rows of a group share its `size` columns.
CsrMatrix block_diagonal(std::int32_t blocks, std::int32_t size) {
  std::vector<std::vector<std::int32_t>> rows;
  for (std::int32_t b = 0; b < blocks; ++b) {
    std::vector<std::int32_t> columns(size);
    std::iota(columns.begin(), columns.end(), b * size);
    rows.insert(rows.end(), size, columns);
  }
  return testing::from_rows(blocks * size, rows);
}

TEST(Reordering, EveryOneGivesAPermutationOfEveryShape) {
  for (const Reordering* reordering : Registry<Reordering>::instance().sorted())
    for (const auto& [name, matrix] : testing::adversarial_matrices())
      EXPECT_NO_THROW(validate_permutation(reordering->compute(matrix, {}), matrix.rows))
          << reordering->name() << " on " << name;
}

TEST(Reordering, EveryStageOfRshCanBeSwitchedOff) {
  for (const auto& [name, matrix] : testing::adversarial_matrices())
    for (const char* spec : {"rsh?mst=0", "rsh?two_opt=0", "rsh?isolation=0",
                             "rsh?mst=0&two_opt=0&isolation=0", "rsh?k=1&features=1&candidates=4"})
      EXPECT_NO_THROW(validate_permutation(compute(spec, matrix), matrix.rows))
          << spec << " on " << name;
  const CsrMatrix matrix = testing::random_matrix(100, 100, 5, 0, 1);
  EXPECT_EQ(compute("rsh?mst=0&two_opt=0&isolation=0", matrix), compute("none", matrix));
}

TEST(Reordering, TheThreadCountDoesNotChangeAnyOrder) {
  const int threads = omp_get_max_threads();
  for (const CsrMatrix& matrix : {testing::random_matrix(20000, 20000, 12, 2, 21),
                                  testing::random_matrix(9000, 3000, 30, 1, 22)})
    for (const Reordering* reordering : Registry<Reordering>::instance().sorted()) {
      omp_set_num_threads(1);
      const Permutation one = reordering->compute(matrix, {});
      omp_set_num_threads(7);
      const Permutation seven = reordering->compute(matrix, {});
      omp_set_num_threads(threads);
      EXPECT_EQ(one, seven) << reordering->name();
    }
}

TEST(Reordering, SimilarRowsComeTogether) {
  const CsrMatrix matrix = shuffled(block_diagonal(200, 16));
  const WeightedJaccard jaccard(matrix, 0.5);
  EXPECT_GT(mean_adjacent_cost(matrix, jaccard, compute("none", matrix)), 0.95);
  // 199 of the 3199 steps lead from block to block.
  EXPECT_LT(mean_adjacent_cost(matrix, jaccard, compute("rsh", matrix)), 0.0625);
  EXPECT_LT(mean_adjacent_cost(matrix, jaccard, compute("tca", matrix)), 0.1);
}

// Distinct columns per window of `window_rows`, summed: the rows of B that are gathered.
std::int64_t gathers(const CsrMatrix& matrix, const Permutation& order, std::int64_t window_rows) {
  std::vector<std::int64_t> last(matrix.cols, -1);
  std::int64_t sum = 0;
  for (std::int64_t i = 0; i < matrix.rows; ++i)
    for (std::int64_t e = matrix.row_ptr[order[i]]; e < matrix.row_ptr[order[i] + 1]; ++e) {
      std::int64_t& window = last[matrix.col_idx[e]];
      sum += window != i / window_rows;
      window = i / window_rows;
    }
  return sum;
}

TEST(Reordering, MatchStopsAtEightRowsUnlessRowsResembleEachOther) {
  const CsrMatrix grid = testing::shuffled_grid(64);
  const Permutation all = compute("match", grid), by_need = compute("match?rows=auto", grid);
  EXPECT_EQ(gathers(grid, by_need, 8), gathers(grid, all, 8));
  EXPECT_GT(gathers(grid, by_need, 32), gathers(grid, all, 32));
  const CsrMatrix alike = shuffled(block_diagonal(20, 64));
  EXPECT_EQ(compute("match?rows=auto", alike), compute("match", alike));
}

TEST(Reordering, MatchLeavesTheNaturalOrderWhereASampleOfItsWindowsGathersAsLittle) {
  const CsrMatrix blocks = block_diagonal(100, 64), dealt = shuffled(blocks);
  EXPECT_EQ(compute("match?rows=auto", blocks), compute("none", blocks));
  EXPECT_LT(gathers(dealt, compute("match?rows=auto", dealt), 8),
            gathers(dealt, compute("none", dealt), 8) / 4);
}

// Processor time of a row order.
double seconds_of(const char* spec, const CsrMatrix& matrix) {
  const std::clock_t begin = std::clock();
  compute(spec, matrix);
  return static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
}

TEST(Reordering, MatchTakesAboutAsLongIfAllRowsMeetOneLongRow) {
  constexpr std::int32_t kRows = 50'000;
  std::vector<std::vector<std::int32_t>> rows(kRows);
  for (std::int32_t i = 0; i < kRows; ++i) rows[i] = {i - i % 2};
  const double without = seconds_of("match", testing::from_rows(kRows, rows));
  for (std::int32_t i = 0; i < kRows; ++i) rows[i] = {i};
  rows[0].resize(kRows);
  std::iota(rows[0].begin(), rows[0].end(), 0);
  const CsrMatrix matrix = testing::from_rows(kRows, rows);
  EXPECT_LT(seconds_of("match", matrix), 20 * without);
}

TEST(Reordering, MatchScalesWeightsOfColumnsThatAreLookedAtToAllColumns) {
  for (const std::int32_t length : {1, 300, (1 << 22) - 1, 1 << 22, 1 << 28})
    for (const std::int32_t used : {1, 128, match::kMostColumns})
      for (const std::int32_t weight : {1, 127, match::kWhole * match::kMostColumns})
        EXPECT_EQ(match::scaled_weight(weight, length, used),
                  static_cast<std::int32_t>(std::int64_t{weight} * length / used))
            << length << " " << used << " " << weight;
}

// Of `count` columns, those that are `begin`th and further in a random order.
std::vector<bool> sketch(std::int32_t begin, std::int32_t count) {
  std::vector<bool> out(match::kSketchBits);
  for (std::int32_t i = begin; i < begin + count; ++i)
    out[match::sketch_bit(static_cast<std::int32_t>(hash_position(7, i, 0) % 1'000'000))] = true;
  return out;
}

TEST(Reordering, MatchCountsCommonColumnsOfSetsOfBits) {
  for (const std::int32_t length : {10, 100, 400})
    for (const std::int32_t common : {0, length / 2, length}) {
      const std::vector<bool> own = sketch(0, length), other = sketch(length - common, length);
      match::SketchBits bits{0, 0, 0};
      for (int i = 0; i < match::kSketchBits; ++i) {
        bits.own += own[i] ? 1 : 0;
        bits.other += other[i] ? 1 : 0;
        bits.both += own[i] && other[i] ? 1 : 0;
      }
      const double slack = 0.1 * length;
      EXPECT_NEAR(bits.common(), common * bits.own / length, slack) << length;
      EXPECT_NEAR(match::united_length(length, length, bits), 2 * length - common, slack) << length;
    }
  const match::SketchBits full{match::kSketchBits, match::kSketchBits, match::kSketchBits};
  EXPECT_EQ(full.common(), match::kSketchBits);
  EXPECT_EQ(match::united_length(5000, 3000, full), 5000);
}

// Who is taken by whom, and the other way round.
struct Taken {
  std::vector<std::int32_t> by, suitor;

  explicit Taken(std::int32_t count) : by(count, -1), suitor(count, -1) {}
  void add(std::int32_t who, std::int32_t taker) {
    by[who] = taker;
    suitor[taker] = who;
  }
  std::vector<std::int32_t> partners() const {
    std::vector<std::int32_t> out(by.size());
    for (std::int32_t i = 0; i < std::ssize(by); ++i)
      out[i] = match::partner_by_suits(
          i, [&](std::int32_t own) { return by[own]; },
          [&](std::int32_t own) { return suitor[own]; });
    return out;
  }
};

void expect_partners_have_each_other(const std::vector<std::int32_t>& partners) {
  for (std::int32_t i = 0; i < std::ssize(partners); ++i)
    if (partners[i] != -1) {
      EXPECT_EQ(partners[partners[i]], i);
    }
}

TEST(Reordering, MatchJoinsThoseThatTakeEachOtherAndPathsFromTheirEnds) {
  std::vector<std::int32_t> uncut;
  for (std::int32_t i = 0; uncut.size() < 7; ++i)
    if (!match::is_cut(i)) uncut.push_back(i);
  Taken all(uncut.back() + 1);
  all.add(uncut[0], uncut[1]);
  all.add(uncut[1], uncut[0]);
  for (int i = 2; i + 1 < 7; ++i) all.add(uncut[i], uncut[i + 1]);
  const std::vector<std::int32_t> partners = all.partners();
  EXPECT_EQ(partners[uncut[0]], uncut[1]);
  EXPECT_EQ(partners[uncut[6]], uncut[5]);
  EXPECT_EQ(partners[uncut[4]], uncut[3]);
  EXPECT_EQ(partners[uncut[2]], -1);
  expect_partners_have_each_other(partners);
}

TEST(Reordering, MatchJoinsMoreThanHalfOfLongPathsAndCycles) {
  constexpr std::int32_t kCount = 5000;
  for (const bool is_cycle : {false, true})
    for (const std::int32_t step : {1, 7, 2 * match::kMostOfPath}) {
      Taken all(kCount * step);
      for (std::int32_t i = 0; i + 1 < kCount; ++i) all.add(i * step, (i + 1) * step);
      if (is_cycle) all.add((kCount - 1) * step, 0);
      const std::vector<std::int32_t> partners = all.partners();
      expect_partners_have_each_other(partners);
      EXPECT_GT(std::ranges::count_if(partners, [](std::int32_t i) { return i != -1; }), kCount / 2)
          << step << " " << is_cycle;
    }
}

TEST(Reordering, PackFillsWindowsWithRowsOfTheSameColumns) {
  const CsrMatrix matrix = shuffled(block_diagonal(200, 16));
  EXPECT_EQ(gathers(matrix, compute("pack", matrix), 8), 200 * 2 * 16);
  EXPECT_EQ(gathers(matrix, compute("pack", matrix), 32), 200 * 16);
  EXPECT_EQ(gathers(matrix, compute("pack?window=16", matrix), 16), 200 * 16);
}

TEST(Reordering, PackFindsCompactWindowsOnAGrid) {
  constexpr std::int32_t kSide = 48;
  std::vector<std::vector<std::int32_t>> rows;
  for (std::int32_t i = 0; i < kSide * kSide; ++i) {
    rows.emplace_back();
    for (const std::int32_t column : {i - kSide, i - 1, i, i + 1, i + kSide})
      if (column >= 0 && column < kSide * kSide) rows.back().push_back(column);
  }
  const CsrMatrix matrix = testing::from_rows(kSide * kSide, rows);
  // A window of 2 x 4 points has 20 neighbours or points of its own, a window of 1 x 8 has 26.
  const std::int64_t natural = gathers(matrix, compute("none", matrix), 8);
  EXPECT_LT(gathers(matrix, compute("pack", matrix), 8) * 26, natural * 22);
  EXPECT_LT(gathers(matrix, compute("pack", matrix), 8),
            gathers(matrix, compute("rsh", matrix), 8));
}

// Blocks one after another, each sharing a column with the next, shuffled: windows of neighbouring
// blocks lie side by side again where chains begin in the order of Reverse Cuthill-McKee, or where
// rows are sorted by their distance from the first or last block.
TEST(Reordering, OrdersThatKeepLocalityPutNeighbouringWindowsSideBySide) {
  constexpr std::int32_t kBlocks = 100, kRows = 64;
  std::vector<std::vector<std::int32_t>> rows;
  for (std::int32_t block = 0; block < kBlocks; ++block)
    for (std::int32_t row = 0; row < kRows; ++row)
      rows.push_back({block * kRows, block * kRows + 1, (block + 1) * kRows});
  const CsrMatrix matrix = shuffled(testing::from_rows((kBlocks + 1) * kRows, rows));
  // Between the middle row of a block and that of the next.
  const auto distance = [&](const Permutation& order) {
    std::vector<std::vector<std::int64_t>> places(kBlocks);
    for (std::int64_t i = 0; i < std::ssize(order); ++i)
      places[matrix.col_idx[matrix.row_ptr[order[i]]] / kRows].push_back(i);
    std::int64_t sum = 0;
    for (std::int32_t block = 0; block + 1 < kBlocks; ++block)
      sum += std::abs(places[block + 1][kRows / 2] - places[block][kRows / 2]);
    return sum / (kBlocks - 1);
  };
  EXPECT_LT(distance(compute("pack?start=rcm", matrix)), 2 * kRows);
  EXPECT_GT(distance(compute("pack", matrix)), 10 * kRows);
  EXPECT_LT(distance(compute("match?sort=distance", matrix)), 2 * kRows);
  EXPECT_GT(distance(compute("match", matrix)), 10 * kRows);
}

// Rows of two columns, each of which it shares with the next row or with the one before.
CsrMatrix shuffled_path(std::int32_t length) {
  std::vector<std::vector<std::int32_t>> rows;
  for (std::int32_t row = 0; row < length; ++row) rows.push_back({row, row + 1});
  return shuffled(testing::from_rows(length + 1, rows));
}

TEST(Reordering, MatchSortsByDistanceOnlyWhereHalfOfTheRowsHaveOne) {
  constexpr std::int32_t kMost = rim::kMostDistances;
  const CsrMatrix path = shuffled_path(kMost * 3 / 2), long_path = shuffled_path(5 * kMost);
  EXPECT_NE(compute("match?sort=distance", path), compute("none", path));
  EXPECT_EQ(compute("match?sort=distance", long_path), compute("none", long_path));
  const CsrMatrix apart = shuffled(block_diagonal(100, 64));
  EXPECT_EQ(compute("match?sort=distance", apart), compute("none", apart));
  for (const auto& [name, matrix] : testing::adversarial_matrices())
    EXPECT_NO_THROW(validate_permutation(compute("match?sort=distance", matrix), matrix.rows))
        << name;
}

TEST(Reordering, PackPutsEmptyRowsLast) {
  const CsrMatrix matrix = testing::from_rows(4, {{}, {0, 1}, {}, {2, 3}, {0, 1}, {}, {2, 3}});
  EXPECT_EQ(compute("pack", matrix), (Permutation{1, 4, 3, 6, 0, 2, 5}));
}

TEST(Reordering, PackPrefersPairsOfRareColumnsToHubs) {
  // Every row has the hub, row i shares its other column with row i + 200 alone.
  std::vector<std::vector<std::int32_t>> rows;
  for (std::int32_t i = 0; i < 400; ++i) rows.push_back({0, 1 + i % 200});
  const CsrMatrix matrix = testing::from_rows(201, rows);
  EXPECT_EQ(gathers(matrix, compute("pack?window=2", matrix), 2), 400);
}

TEST(Reordering, GraphOrdersBringCommunitiesTogether) {
  // The shuffle here must rename columns too: the graph's vertex is row and column alike.
  const CsrMatrix blocks = block_diagonal(100, 16);
  const Permutation names = compute("random?seed=5", blocks);
  std::vector<std::int32_t> new_name(names.size());
  for (std::size_t i = 0; i < names.size(); ++i) new_name[names[i]] = static_cast<std::int32_t>(i);
  CsrMatrix matrix = permute_rows(blocks, names);
  for (std::int64_t row = 0; row < matrix.rows; ++row) {
    const auto begin = matrix.col_idx.begin() + matrix.row_ptr[row],
               end = matrix.col_idx.begin() + matrix.row_ptr[row + 1];
    std::transform(begin, end, begin, [&](std::int32_t column) { return new_name[column]; });
    std::sort(begin, end);
  }
  const WeightedJaccard jaccard(matrix, 0.5);
  for (const char* name : {"rcm", "rabbit"})
    EXPECT_LT(mean_adjacent_cost(matrix, jaccard, compute(name, matrix)), 0.0625) << name;
}

TEST(Reordering, RcmNarrowsABand) {
  std::vector<std::vector<std::int32_t>> rows(500);
  for (std::int32_t r = 0; r < 500; ++r)
    for (std::int32_t c = std::max(0, r - 2); c <= std::min(499, r + 2); ++c)
      rows[r].push_back(c * 7 % 500);
  // Row r is renamed like column r, so the matrix stays symmetric.
  std::vector<std::vector<std::int32_t>> renamed(500);
  for (std::int32_t r = 0; r < 500; ++r) {
    renamed[r * 7 % 500] = rows[r];
    std::sort(renamed[r * 7 % 500].begin(), renamed[r * 7 % 500].end());
  }
  const CsrMatrix matrix = testing::from_rows(500, renamed);
  const Permutation order = compute("rcm", matrix);
  std::vector<std::int64_t> place(500);
  for (std::int64_t i = 0; i < 500; ++i) place[order[i]] = i;
  std::int64_t bandwidth = 0;
  for (std::int64_t row = 0; row < 500; ++row)
    for (std::int64_t e = matrix.row_ptr[row]; e < matrix.row_ptr[row + 1]; ++e)
      bandwidth = std::max(bandwidth, std::abs(place[row] - place[matrix.col_idx[e]]));
  EXPECT_LE(bandwidth, 4);
}

TEST(Reordering, EmptyColumnsDoNotChangeAnOrder) {
  const CsrMatrix matrix = block_diagonal(60, 5);
  CsrMatrix compact = permute_rows(matrix, compute("random?seed=9", matrix)), spread = compact;
  compact.cols = 301;  // not square, so that both are bipartite graphs
  spread.cols = std::int64_t{1} << 30;
  for (std::int32_t& column : spread.col_idx) column *= 1 << 20;
  for (const char* name : {"rsh", "pack", "rcm", "rabbit"})
    EXPECT_EQ(compute(name, spread), compute(name, compact)) << name;
}

TEST(Reordering, EmptyRowsOfAHypersparseMatrixComeLast) {
  std::vector<std::vector<std::int32_t>> rows(5000);
  for (std::int32_t i = 0; i < 100; ++i) rows[i * 37 % 5000] = {i % 10 * 400, i % 7 + 4900};
  const CsrMatrix matrix = testing::from_rows(5000, rows);
  for (const char* name : {"rsh", "pack", "rcm", "rabbit"}) {
    const Permutation order = compute(name, matrix);
    EXPECT_NO_THROW(validate_permutation(order, matrix.rows)) << name;
    // Rabbit and RCM order vertices: of a square matrix, rows that only columns stand for too.
    for (std::size_t i = 200; i < order.size(); ++i)
      EXPECT_EQ(matrix.row_length(order[i]), 0) << name << " at " << i;
  }
}

TEST(Reordering, DegreeIsDescendingAndStable) {
  const CsrMatrix matrix = testing::random_matrix(1000, 300, 20, 0, 8);
  const Permutation order = compute("degree", matrix);
  for (std::size_t i = 1; i < order.size(); ++i) {
    const auto before = matrix.row_length(order[i - 1]), here = matrix.row_length(order[i]);
    EXPECT_TRUE(before > here || (before == here && order[i - 1] < order[i]));
  }
}

TEST(RshPath, TwoOptNeverRaisesTheAdjacentCost) {
  for (const auto& [name, matrix] : testing::adversarial_matrices()) {
    const WeightedJaccard jaccard(matrix, 0.5);
    Permutation order = compute("random", matrix);
    const auto cost = [&] {
      double sum = 0;
      for (std::size_t i = 1; i < order.size(); ++i)
        sum += 1 - jaccard.similarity(order[i - 1], order[i]);
      return sum;
    };
    const double before = cost();
    two_opt(jaccard, 8, order);
    EXPECT_LE(cost(), before + 1e-3) << name;
    EXPECT_NO_THROW(validate_permutation(order, matrix.rows)) << name;
  }
}

TEST(RshPath, AnIsolatedRowMovesToItsMostSimilarRow) {
  // Rows 2 and 3 resemble no neighbour but rows 5 and 0; row 4 resembles nothing.
  const CsrMatrix matrix =
      testing::from_rows(10, {{0, 1}, {0, 1, 2}, {5, 6}, {0, 1}, {9}, {5, 6, 7}, {5, 7}});
  EXPECT_EQ(compute("rsh?mst=0&two_opt=0", matrix), (Permutation{0, 3, 1, 5, 2, 6, 4}));
}

TEST(WeightedJaccard, WeighsColumnsByRarity) {
  const CsrMatrix matrix = testing::from_rows(4, {{0, 1}, {1, 2}, {1, 3}, {0}, {}});
  const WeightedJaccard plain(matrix, 0), weighted(matrix, 1);
  EXPECT_FLOAT_EQ(plain.similarity(0, 1), 1.0F / 3);
  // Weights: column 0 1/2, column 1 1/3, column 2 1.
  EXPECT_FLOAT_EQ(weighted.similarity(0, 1), (1.0F / 3) / (0.5F + 1.0F / 3 + 1));
  EXPECT_FLOAT_EQ(weighted.similarity(0, 3), 0.5F / (0.5F + 1.0F / 3));
  EXPECT_EQ(plain.similarity(0, 4), 0);
  EXPECT_EQ(plain.similarity(4, 4), 0);
}

TEST(RowOrders, AnOrderThatSeveralNeedCountsOnce) {
  const CsrMatrix matrix = testing::shuffled_grid(64);
  const auto orders = make_row_orders(matrix, Spec::parse("none"));
  StageTimer one, other, third;
  orders->get("rcm", one);
  for (int i = 0; i < 2; ++i) orders->get("rcm", other);
  const double ms = one.stages_ms().at("reorder");
  EXPECT_GT(ms, 0);
  EXPECT_DOUBLE_EQ(other.stages_ms().at("reorder"), ms);
  one.add("reorder", 1);
  one.add(other);
  EXPECT_DOUBLE_EQ(one.stages_ms().at("reorder"), ms + 1);
  orders->get("degree", third);
  one.add(third);
  EXPECT_DOUBLE_EQ(one.stages_ms().at("reorder"), ms + 1 + third.stages_ms().at("reorder"));
}

TEST(Graph, IsAPlusItsTransposeOrBipartite) {
  const Graph square = graph_of(testing::from_rows(3, {{0, 1}, {2}, {}}));
  EXPECT_EQ(square.ptr, (std::vector<std::int64_t>{0, 1, 3, 4}));
  EXPECT_EQ(square.adjacent, (std::vector<std::int32_t>{1, 0, 2, 1}));
  const Graph tall = graph_of(testing::from_rows(2, {{0}, {0, 1}, {}}));
  EXPECT_EQ(tall.ptr, (std::vector<std::int64_t>{0, 1, 3, 3, 5, 6}));
  EXPECT_EQ(tall.adjacent, (std::vector<std::int32_t>{3, 3, 4, 0, 1, 1}));
}

}  // namespace
}  // namespace spmmbench
