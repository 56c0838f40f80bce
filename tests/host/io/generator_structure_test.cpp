// What each generator promises of its structure: density, symmetry, degrees, bandwidth, blocks.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "io/delaunay.hpp"
#include "io/generator_util.hpp"
#include "spmmbench/registry.hpp"

namespace spmmbench {
namespace {

Generated generate(const std::string& text) {
  const Spec spec = Spec::parse(text);
  return Registry<Generator>::instance().at(spec.name).generate(spec.options);
}

bool has_entry(const CsrMatrix& m, std::int64_t row, std::int64_t col) {
  return std::binary_search(m.col_idx.begin() + m.row_ptr[row],
                            m.col_idx.begin() + m.row_ptr[row + 1], col);
}

template <class Visit>
void for_each_entry(const CsrMatrix& m, Visit visit) {
  for (std::int64_t r = 0; r < m.rows; ++r)
    for (std::int64_t e = m.row_ptr[r]; e < m.row_ptr[r + 1]; ++e) visit(r, m.col_idx[e]);
}

bool symmetric(const CsrMatrix& m) {
  bool ok = m.rows == m.cols;
  for_each_entry(m, [&](std::int64_t r, std::int64_t c) { ok = ok && has_entry(m, c, r); });
  return ok;
}

bool full_diagonal(const CsrMatrix& m) {
  for (std::int64_t r = 0; r < m.rows; ++r)
    if (!has_entry(m, r, r)) return false;
  return true;
}

double mean_row(const CsrMatrix& m) {
  return static_cast<double>(m.nnz()) / static_cast<double>(m.rows);
}

std::vector<std::int64_t> lengths_descending(const CsrMatrix& m) {
  std::vector<std::int64_t> lengths(m.rows);
  for (std::int64_t r = 0; r < m.rows; ++r) lengths[r] = m.row_length(r);
  std::sort(lengths.rbegin(), lengths.rend());
  return lengths;
}

// Hill's estimate of the exponent of a power-law density from its `count` largest values.
double tail_exponent(const std::vector<std::int64_t>& descending, int count) {
  double sum = 0;
  for (int i = 0; i < count; ++i)
    sum += std::log(static_cast<double>(descending[i]) / static_cast<double>(descending[count]));
  return 1 + count / sum;
}

double mean_distance(const CsrMatrix& m) {
  double sum = 0;
  for_each_entry(m, [&](std::int64_t r, std::int64_t c) { sum += std::abs(r - c); });
  return sum / static_cast<double>(m.nnz());
}

TEST(GeneratorHelpers, SampleDistinctIsUniform) {
  std::vector<int> hits(20);
  for (int trial = 0; trial < 4000; ++trial) {
    RandomStream random(7, trial);
    const Columns chosen = sample_distinct(random, 20, trial % 2 == 0 ? 5 : 15);
    ASSERT_EQ(chosen.size(), trial % 2 == 0 ? 5U : 15U);
    for (const std::int32_t c : chosen) ++hits[c];
  }
  for (const int h : hits) EXPECT_NEAR(h, 2000, 200);
}

TEST(GeneratorHelpers, PowerLawHasItsMean) {
  for (const double exponent : {1.5, 2.0, 2.5, 3.5}) {
    const PowerLaw law(12, exponent, 4000);
    double sum = 0;
    constexpr int kSteps = 2'000'000;
    for (int i = 0; i < kSteps; ++i) sum += law.at((i + 0.5) / kSteps);
    EXPECT_NEAR(sum / kSteps, 12, 0.05) << exponent;
  }
}

TEST(Uniform, DensityIsMet) {
  const CsrMatrix m = generate("uniform?rows=2000&cols=3000&density=0.01").csr;
  EXPECT_NEAR(mean_row(m), 30, 0.6);
  const CsrMatrix exact = generate("uniform?rows=500&cols=64&nnz_per_row=40").csr;
  for (std::int64_t r = 0; r < exact.rows; ++r) EXPECT_EQ(exact.row_length(r), 40);
}

TEST(Rmat, IsSkewedAndSymmetricWhenAsked) {
  const CsrMatrix m = generate("rmat?scale=12&symmetric=1").csr;
  EXPECT_TRUE(symmetric(m));
  EXPECT_GT(lengths_descending(m).front(), 20 * mean_row(m));
}

TEST(Banded, StaysInItsBandWithTheDeclaredFill) {
  const CsrMatrix m = generate("banded?rows=5000&bandwidth=20&fill=0.3").csr;
  EXPECT_TRUE(full_diagonal(m));
  for_each_entry(m, [](std::int64_t r, std::int64_t c) { EXPECT_LE(std::abs(r - c), 20); });
  EXPECT_NEAR(mean_row(m), 13, 0.2);
}

TEST(Blocks, KeepExactlyTheDeclaredFractionSpreadOverTheRows) {
  const CsrMatrix m =
      generate("blocks?rows=1600&cols=1600&block_rows=16&block_cols=16&density=0.073").csr;
  EXPECT_EQ(m.nnz(), 730 * 16 * 16);
  for (std::int64_t r = 0; r < m.rows; ++r) {
    EXPECT_GE(m.row_length(r), 7 * 16);
    EXPECT_LE(m.row_length(r), 8 * 16);
  }
}

TEST(LayerWeights, UnstructuredZerosAreTheFractionAskedFor) {
  for (const char* const zeros : {"random", "magnitude"})
    for (const double sparsity : {0.0, 0.5, 0.9, 1.0}) {
      const Generated made = generate("qwen2.5-7b/attn_k?zeros=" + std::string(zeros) +
                                      "&sparsity=" + std::to_string(sparsity));
      const double density = static_cast<double>(made.csr.nnz()) / (512.0 * 3584);
      EXPECT_NEAR(density, 1 - sparsity, sparsity == 0 || sparsity == 1 ? 0 : 0.003)
          << zeros << " " << sparsity;
    }
}

TEST(LayerWeights, TwoOfEveryFourNeighboursStay) {
  const CsrMatrix matrix = generate("qwen2.5-7b/attn_k?zeros=2:4").csr;
  for (std::int64_t row = 0; row < matrix.rows; ++row) {
    ASSERT_EQ(matrix.row_length(row), matrix.cols / 2);
    for (std::int64_t i = 0; i < matrix.row_length(row); ++i)
      ASSERT_EQ(matrix.col_idx[matrix.row_ptr[row] + i] / 4, i / 2);
  }
}

// A row's length varies by sqrt(cols * p * (1 - p)) when positions are drawn alike.
TEST(LayerWeights, RowsPrunedByMagnitudeDifferMoreThanByChance) {
  const auto spread = [](const char* zeros) {
    const CsrMatrix m = generate(std::string("qwen2.5-7b/attn_q?sparsity=0.8&zeros=") + zeros).csr;
    double sum = 0;
    for (std::int64_t row = 0; row < m.rows; ++row) {
      const double off = static_cast<double>(m.row_length(row)) / (0.2 * 3584) - 1;
      sum += off * off;
    }
    return std::sqrt(sum / static_cast<double>(m.rows));
  };
  EXPECT_NEAR(spread("random"), std::sqrt(0.8 / 0.2 / 3584), 0.002);
  const double magnitude = spread("magnitude");
  EXPECT_GT(magnitude, 0.15);
  EXPECT_LT(magnitude, 0.35);
}

TEST(BlockWeights, HaveValuesAndExactSparsity) {
  const Generated made = generate("qwen2.5-7b/attn_q?block=64&sparsity=0.9");
  EXPECT_FALSE(made.pattern);
  EXPECT_EQ(made.csr.nnz(), std::int64_t{314} * 64 * 64);  // 0.1 of 56 * 56 blocks
  EXPECT_TRUE(std::all_of(made.csr.values.begin(), made.csr.values.end(),
                          [](float v) { return v != 0 && std::abs(v) < 1; }));
}

TEST(PowerLawRows, HaveTheDeclaredMeanAndTail) {
  const CsrMatrix m = generate("powerlaw?rows=50000&mean=12&exponent=2.3&max_row=20000").csr;
  EXPECT_NEAR(mean_row(m), 12, 1);
  EXPECT_NEAR(tail_exponent(lengths_descending(m), 2000), 2.3, 0.15);
}

TEST(Esmm, TilesKeepWholeColumnsOfAAndWholeRowsOfB) {
  const Generated made = generate("esmm?m=256&k=512&n=128&pattern_a=11000000&pattern_b=10101010");
  const CsrMatrix& a = made.csr;
  for_each_entry(a, [&](std::int64_t r, std::int64_t c) {
    EXPECT_TRUE(has_entry(a, r / 32 * 32, c));
    EXPECT_TRUE(has_entry(a, r / 32 * 32 + 31, c));
  });
  EXPECT_NEAR(static_cast<double>(a.nnz()) / (256 * 512), 0.25, 0.03);
  std::int64_t kept = 0;
  for (std::int64_t k = 0; k < 512; ++k)
    for (std::int64_t j = 0; j < 128; ++j) {
      const bool here = made.b.values[k * 128 + j] != 0;
      EXPECT_EQ(here, made.b.values[k * 128 + j / 32 * 32] != 0);
      kept += here ? 1 : 0;
    }
  EXPECT_NEAR(static_cast<double>(kept) / (512 * 128), 0.5, 0.05);
  EXPECT_EQ(generate("esmm?size=64&pattern=11111111").csr.nnz(), 64 * 64);
  EXPECT_EQ(generate("esmm?size=64&pattern=00000000").csr.nnz(), 0);
}

TEST(Stencil, InnerPointsHaveAllNeighbours) {
  for (const int points : {5, 9, 7, 27}) {
    const CsrMatrix m = generate("stencil?nx=8&points=" + std::to_string(points)).csr;
    EXPECT_TRUE(symmetric(m));
    EXPECT_EQ(lengths_descending(m).front(), points);
  }
}

TEST(CommunityGraph, HasAPowerLawTailAndLocalEdges) {
  const std::string spec =
      "community?vertices=40000&mean=20&exponent=2.4&max_degree=8000&mixing=0.1&seed=3";
  const CsrMatrix m = generate(spec).csr;
  EXPECT_TRUE(symmetric(m));
  EXPECT_NEAR(mean_row(m), 20, 4);
  EXPECT_NEAR(tail_exponent(lengths_descending(m), 1500), 2.4, 0.25);
  // Communities are consecutive rows; a shuffled graph has a third of the rows between its ends.
  EXPECT_LT(mean_distance(m), 0.5 * mean_distance(generate(spec + "&shuffle=1").csr));
}

TEST(Circuit, HasADiagonalShortWiresAndDenseRails) {
  const CsrMatrix m = generate("circuit?nodes=20000&rails=3&rail_fraction=0.2").csr;
  EXPECT_TRUE(full_diagonal(m));
  EXPECT_FALSE(symmetric(m));
  EXPECT_TRUE(symmetric(generate("circuit?nodes=5000&unsymmetric=0").csr));
  const std::vector<std::int64_t> lengths = lengths_descending(m);
  EXPECT_NEAR(lengths[0], 4000, 300);
  EXPECT_NEAR(lengths[1], 2000, 250);
  EXPECT_NEAR(lengths[2], 1000, 200);
  EXPECT_LT(lengths[3], 400);
  std::int64_t near = 0;
  for_each_entry(m, [&](std::int64_t r, std::int64_t c) { near += std::abs(r - c) <= 50; });
  EXPECT_GT(static_cast<double>(near), 0.7 * static_cast<double>(m.nnz()));
}

TEST(FiniteElements, LookLikeMeshes) {
  const CsrMatrix plane = generate("fem2d?vertices=20000").csr;
  EXPECT_TRUE(symmetric(plane));
  EXPECT_TRUE(full_diagonal(plane));
  EXPECT_NEAR(mean_row(plane), 7, 0.2);  // Euler: 6 neighbours on average, fewer at borders
  EXPECT_GE(lengths_descending(plane).back(), 3);
  EXPECT_LT(lengths_descending(plane).front(), 30);
  const CsrMatrix space = generate("fem3d?vertices=8000").csr;
  EXPECT_TRUE(symmetric(space));
  EXPECT_NEAR(mean_row(space), 15.5, 1.5);
  EXPECT_GE(lengths_descending(space).back(), 4);
}

TEST(FiniteElements, NumberingChangesOnlyTheBandwidth) {
  const CsrMatrix bfs = generate("fem2d?vertices=10000&numbering=bfs").csr;
  const CsrMatrix random = generate("fem2d?vertices=10000&numbering=random").csr;
  EXPECT_EQ(bfs.nnz(), random.nnz());
  EXPECT_EQ(lengths_descending(bfs), lengths_descending(random));
  std::int64_t bandwidth = 0;
  for_each_entry(bfs, [&](std::int64_t r, std::int64_t c) {
    bandwidth = std::max(bandwidth, std::abs(r - c));
  });
  EXPECT_LT(bandwidth, 1000);
  EXPECT_GT(mean_distance(random), 2500);
  EXPECT_LT(mean_distance(generate("fem2d?vertices=10000&numbering=morton").csr), 1000);
  EXPECT_LT(mean_distance(generate("fem2d?vertices=10000&numbering=sweep").csr), 1000);
}

TEST(FiniteElements, UnknownsOfAVertexFormDenseBlocks) {
  const CsrMatrix scalar = generate("fem3d?vertices=500").csr;
  const CsrMatrix vector = generate("fem3d?vertices=500&dof=3").csr;
  EXPECT_EQ(vector.nnz(), 9 * scalar.nnz());
  for_each_entry(scalar, [&](std::int64_t r, std::int64_t c) {
    EXPECT_TRUE(has_entry(vector, 3 * r, 3 * c));
    EXPECT_TRUE(has_entry(vector, 3 * r + 2, 3 * c + 2));
  });
}

TEST(Delaunay, NoPointLiesInsideTheCircleOfATriangle) {
  std::vector<Point<2>> points;
  RandomStream random(5, 0);
  for (int i = 0; i < 300; ++i)
    points.push_back({static_cast<std::int32_t>(random.below(1 << 20)),
                      static_cast<std::int32_t>(random.below(1 << 20))});
  const std::vector<Simplex<2>> triangles = delaunay<2>(points);
  EXPECT_GT(triangles.size(), 500U);  // Euler: 2n - 2 - hull
  for (const Simplex<2>& t : triangles) {
    const auto [a, b, c] = t;
    const double bx = points[b][0] - points[a][0], by = points[b][1] - points[a][1];
    const double cx = points[c][0] - points[a][0], cy = points[c][1] - points[a][1];
    const double d = 2 * (bx * cy - by * cx);
    ASSERT_GT(d, 0);
    const double ux = (cy * (bx * bx + by * by) - by * (cx * cx + cy * cy)) / d;
    const double uy = (bx * (cx * cx + cy * cy) - cx * (bx * bx + by * by)) / d;
    for (const Point<2>& p : points)
      EXPECT_GE(std::hypot(p[0] - points[a][0] - ux, p[1] - points[a][1] - uy),
                std::hypot(ux, uy) * (1 - 1e-9));
  }
}

TEST(Delaunay, TetrahedraFillTheCubeOnce) {
  std::vector<Point<3>> points;
  constexpr std::int32_t kEnd = (1 << 20) - 1;
  for (int corner = 0; corner < 8; ++corner)
    points.push_back({(corner & 1) * kEnd, (corner >> 1 & 1) * kEnd, (corner >> 2) * kEnd});
  RandomStream random(6, 0);
  for (int i = 0; i < 400; ++i) {
    Point<3> p;
    for (std::int32_t& x : p) x = static_cast<std::int32_t>(random.below(kEnd));
    points.push_back(p);
  }
  double volume = 0;
  for (const Simplex<3>& t : delaunay<3>(points)) {
    std::array<std::array<double, 3>, 3> m;
    for (int i = 0; i < 3; ++i)
      for (int k = 0; k < 3; ++k) m[i][k] = points[t[i + 1]][k] - points[t[0]][k];
    const double sixfold = m[0][0] * (m[1][1] * m[2][2] - m[1][2] * m[2][1]) -
                           m[0][1] * (m[1][0] * m[2][2] - m[1][2] * m[2][0]) +
                           m[0][2] * (m[1][0] * m[2][1] - m[1][1] * m[2][0]);
    EXPECT_NE(sixfold, 0);
    volume += std::abs(sixfold) / 6;
  }
  EXPECT_LE(volume, 1.000001 * std::pow(2.0, 60));
  EXPECT_GT(volume, 0.9 * std::pow(2.0, 60));  // slivers at the border may be missing
}

TEST(Delaunay, LatticePointsAreHandledThoughAllLieOnCommonCircles) {
  std::vector<Point<3>> points;
  for (int z = 0; z < 6; ++z)
    for (int y = 0; y < 6; ++y)
      for (int x = 0; x < 6; ++x) points.push_back({x * 1000, y * 1000, z * 1000});
  points.push_back(points.front());
  EXPECT_GT(delaunay<3>(points).size(), 500U);
}

}  // namespace
}  // namespace spmmbench
