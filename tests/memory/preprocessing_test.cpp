#include <gtest/gtest.h>
#include <omp.h>

#include <algorithm>
#include <cmath>

#include "../host/matrices.hpp"
#include "heap.hpp"
#include "rsh/format.hpp"
#include "rsh/image.hpp"
#include "spmmbench/registry.hpp"

namespace spmmbench {
namespace {

using Matrices = std::vector<std::pair<std::string, CsrMatrix>>;

// Row r has the columns that column(r, i), i < length(r), draws; repeated ones count once.
template <class Length, class Column>
CsrMatrix draw(std::int64_t rows, std::int64_t cols, Length length, Column column) {
  std::vector<std::vector<std::int32_t>> lists(rows);
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t i = 0; i < length(r); ++i)
      lists[r].push_back(static_cast<std::int32_t>(column(r, i)));
    std::sort(lists[r].begin(), lists[r].end());
    lists[r].erase(std::unique(lists[r].begin(), lists[r].end()), lists[r].end());
  }
  return testing::from_rows(cols, lists);
}

// Any of `cols` columns; low ones more often for a greater `skew`.
auto random_column(std::int64_t cols, double skew = 1) {
  return [=](std::int64_t r, std::int64_t i) {
    const double u = (static_cast<double>(uniform_at(5, r, i)) + 1) / 2;
    return static_cast<std::int64_t>(std::pow(u, skew) * static_cast<double>(cols));
  };
}
auto always(std::int64_t length) {
  return [=](std::int64_t) { return length; };
}

// What is hardest on memory: little more than a nonzero per row and column, or far less.
Matrices matrices() {
  Matrices out;
  out.emplace_back("diagonal", draw(100000, 100000, always(1), [](auto r, auto) { return r; }));
  out.emplace_back("one per row", draw(100000, 100000, always(1), random_column(100000)));
  out.emplace_back("one per row, popular columns",
                   draw(100000, 100000, always(1), random_column(100000, 4)));
  out.emplace_back("two per row", draw(32000, 32000, always(2), random_column(32000)));
  out.emplace_back("two per row, popular columns",
                   draw(32000, 32000, always(2), random_column(32000, 4)));
  out.emplace_back("road", draw(
                               28000, 28000, [](auto r) { return 1 + r % 3; },
                               [](auto r, auto i) {
                                 return std::min<std::int64_t>(r + (i == 2 ? 250 : 2 * i), 27999);
                               }));
  out.emplace_back("four per row, popular columns",
                   draw(20000, 20000, always(4), random_column(20000, 4)));
  out.emplace_back("five per row", draw(16000, 16000, always(5), random_column(16000)));
  out.emplace_back("power law", draw(
                                    12000, 12000, [](auto r) { return 120000 / (r + 100) + 1; },
                                    random_column(12000, 3)));
  out.emplace_back("wide incidence", draw(16000, 32000, always(4), random_column(32000)));
  out.emplace_back("tall incidence", draw(32000, 16000, always(3), random_column(16000)));
  out.emplace_back("short and wide", draw(100, 20000, always(1000), random_column(20000)));
  out.emplace_back("most rows empty", draw(
                                          24000, 24000, [](auto r) { return r % 4 == 0 ? 9 : 0; },
                                          random_column(24000, 3)));
  out.emplace_back("hypersparse", draw(
                                      160000, 160000, [](auto r) { return r % 50 == 7 ? 2 : 0; },
                                      random_column(160000)));
  out.emplace_back("far more columns than nonzeros",
                   draw(1000, 30000000, always(60), random_column(30000000)));
  out.emplace_back("long rows", draw(1000, 1000, always(150), random_column(1000)));
  return out;
}

class Preprocessing : public ::testing::TestWithParam<int> {
 protected:
  void SetUp() override { omp_set_num_threads(GetParam()); }
  void TearDown() override { omp_set_num_threads(threads_); }

  // `run` takes a matrix and returns what it built.
  template <class Run>
  void expect_below_four_times(const std::string& what, Run&& run) {
    for (const auto& [name, matrix] : matrices_) {
      const std::int64_t csr = 8 * (matrix.rows + 1) + 8 * matrix.nnz();
      const std::int64_t peak = testing::peak_bytes_of([&] { return run(matrix); });
      const double ratio = static_cast<double>(peak) / static_cast<double>(csr);
      EXPECT_LT(ratio, 4) << what << " on " << name << " of " << csr << " bytes";
    }
  }

 private:
  const int threads_ = omp_get_max_threads();
  inline static const Matrices matrices_ = matrices();
};

INSTANTIATE_TEST_SUITE_P(Threads, Preprocessing, ::testing::Values(1, 16),
                         [](const auto& info) { return std::to_string(info.param); });

TEST_P(Preprocessing, EveryOrderingNeedsLessThanFourTimesTheMatrix) {
  for (const Reordering* reordering : Registry<Reordering>::instance().sorted())
    expect_below_four_times(reordering->name(), [&](const CsrMatrix& matrix) {
      return reordering->compute(matrix, {});
    });
}

TEST_P(Preprocessing, RsTileNeedsLessThanFourTimesTheMatrix) {
  for (const char* text : {"rs_tile?window=8", "rs_tile?window=32", "rs_tile?tau_nnz=32"})
    expect_below_four_times(text, [&](const CsrMatrix& matrix) {
      return rsh::RsTile::build(matrix, Spec::parse(text).options);
    });
}

TEST_P(Preprocessing, TheImageThatTheKernelReadsNeedsLessThanFourTimesTheMatrix) {
  for (const char* text : {"rs_tile?window=8", "rs_tile?window=32"})
    expect_below_four_times(std::string("image of ") + text, [&](const CsrMatrix& matrix) {
      return rsh::RsImage::build(rsh::RsTile::build(matrix, Spec::parse(text).options),
                                 ElementType::f32);
    });
}

}  // namespace
}  // namespace spmmbench
