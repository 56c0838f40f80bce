// The row order `match` on the device against the host's.

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "../../kernels/row_order/match_order.hpp"
#include "../../kernels/row_order/resident_orders.hpp"
#include "devices.hpp"
#include "gpu/csr_on_device.hpp"
#include "reorder/rim_distance.hpp"
#include "spmmbench/random.hpp"
#include "spmmbench/registry.hpp"
#include "spmmbench/reordering.hpp"

namespace spmmbench::test {
namespace {

Permutation host_order(const CsrMatrix& matrix, const std::string& spec) {
  return Registry<Reordering>::instance().at("match").compute(matrix, Spec::parse(spec).options);
}

Permutation device_order(const CsrMatrix& matrix, const std::string& spec, Device& device) {
  const CsrOnDevice a(matrix, Precision::fp32, device);
  EXPECT_TRUE(can_match(matrix.rows, matrix.cols, matrix.nnz()));
  ResidentOrders orders(nullptr, device);
  StageTimer stages;
  const Buffer& order = orders.get(a.view(), spec, stages);
  Permutation out(matrix.rows);
  std::iota(out.begin(), out.end(), 0);
  if (order.data() != nullptr)
    device.download(out.data(), order.data(), out.size() * sizeof(out[0]));
  return out;
}

// Rows of `length(row)` different columns, `step(row)` apart from a random one on.
template <class Length, class Step>
CsrMatrix make(std::int64_t rows, std::int64_t cols, Length length, Step step) {
  CsrMatrix m{rows, cols, {0}, {}, {}};
  for (std::int64_t row = 0; row < rows; ++row) {
    std::vector<std::int32_t> columns;
    const auto first = static_cast<std::int64_t>(hash_position(7, row % (rows / 3 + 1), 0) % cols);
    for (std::int64_t i = 0; i < length(row); ++i)
      columns.push_back(static_cast<std::int32_t>((first + i * step(row)) % cols));
    std::ranges::sort(columns);
    columns.erase(std::ranges::unique(columns).begin(), columns.end());
    m.col_idx.insert(m.col_idx.end(), columns.begin(), columns.end());
    m.row_ptr.push_back(static_cast<std::int64_t>(m.col_idx.size()));
  }
  m.values.assign(m.col_idx.size(), 1.0F);
  return m;
}

void expect_same_order(const CsrMatrix& matrix, Device& device,
                       const std::vector<std::string>& specs = {"match", "match?rows=auto"}) {
  for (const std::string& spec : specs) {
    const Permutation order = device_order(matrix, spec, device);
    validate_permutation(order, matrix.rows);
    EXPECT_EQ(order, host_order(matrix, spec)) << spec;
  }
}

TEST(MatchOnDevice, GivesTheOrderOfTheHostForShortRows) {
  SPMMBENCH_TEST_DEVICE(device, DeviceKind::cuda);
  expect_same_order(
      make(
          5003, 3000, [](auto row) { return row % 9; }, [](auto row) { return 1 + row % 3; }),
      device);
}

TEST(MatchOnDevice, GivesTheOrderOfTheHostForListsThatAreNotReadToTheirEnd) {
  SPMMBENCH_TEST_DEVICE(device, DeviceKind::cuda);
  expect_same_order(
      make(
          4000, 70, [](auto row) { return 5 + row % 20; }, [](auto row) { return 1 + row % 2; }),
      device);
}

TEST(MatchOnDevice, GivesTheOrderOfTheHostForRowsThatReadAsManyPlacesAsAnyMay) {
  SPMMBENCH_TEST_DEVICE(device, DeviceKind::cuda);
  expect_same_order(make(
                        20'000, 9000, [](auto row) { return row % 1000 == 5 ? 3000 : 6; },
                        [](auto row) { return row % 1000 == 5 ? 3 : 1 + row % 5; }),
                    device);
}

TEST(MatchOnDevice, GivesTheOrderOfTheHostForMoreClustersThanAWordNumbers) {
  SPMMBENCH_TEST_DEVICE(device, DeviceKind::cuda);
  constexpr std::int64_t kRows = 1'049'000;
  static_assert(kRows > std::int64_t{1} << 20, "a word has 20 bits for the cluster");
  // Lists are so long that a CTA counts what the rows of 3000 columns meet.
  expect_same_order(
      make(
          kRows, 50'000, [](auto row) { return row % 100'000 == 5 ? 3000 : 1 + row % 2; },
          [](auto row) { return row % 100'000 == 5 ? 3 : 1 + row % 1009; }),
      device);
}

TEST(MatchOnDevice, GivesTheOrderOfTheHostForClustersOfMoreColumnsThanAWarpSorts) {
  SPMMBENCH_TEST_DEVICE(device, DeviceKind::cuda);
  expect_same_order(make(
                        2500, 300'000, [](auto row) { return 100 + row % 50; },
                        [](auto row) { return 1000 + row % 3; }),
                    device);
}

TEST(MatchOnDevice, GivesTheOrderOfTheHostForListsOfMoreClustersThanAWarpSorts) {
  SPMMBENCH_TEST_DEVICE(device, DeviceKind::cuda);
  expect_same_order(
      make(
          140'000, 700, [](auto row) { return 1 + row % 3; }, [](auto row) { return 1 + row % 2; }),
      device);
}

TEST(MatchOnDevice, GivesTheOrderOfTheHostForColumnsThatAreNotLookedAt) {
  SPMMBENCH_TEST_DEVICE(device, DeviceKind::cuda);
  constexpr std::int32_t kHubs = 5;
  const CsrMatrix others = make(
      9000, 4000, [](auto row) { return row % 9; }, [](auto row) { return 1 + row % 3; });
  CsrMatrix matrix{others.rows, others.cols + kHubs, {0}, {}, {}};
  for (std::int32_t row = 0; row < others.rows; ++row) {
    matrix.col_idx.push_back(row % kHubs);
    for (std::int64_t i = others.row_ptr[row]; i < others.row_ptr[row + 1]; ++i)
      matrix.col_idx.push_back(others.col_idx[i] + kHubs);
    matrix.row_ptr.push_back(static_cast<std::int64_t>(matrix.col_idx.size()));
  }
  ASSERT_GT(others.rows / kHubs, match::kMostOfColumn);
  matrix.values.assign(matrix.col_idx.size(), 1.0F);
  expect_same_order(matrix, device);
}

TEST(MatchOnDevice, GivesTheOrderOfTheHostForRowsThatAreAlikeFarApart) {
  SPMMBENCH_TEST_DEVICE(device, DeviceKind::cuda);
  constexpr std::int64_t kKinds = 500;
  for (const std::int64_t length : {1, 3}) {
    const auto first = [](std::int64_t row) { return row % kKinds; };
    CsrMatrix m{150'000, kKinds + 2, {0}, {}, {}};
    ASSERT_TRUE(match::sorts_rows(m.rows, 0));
    for (std::int64_t row = 0; row < m.rows; ++row) {
      for (std::int64_t i = 0; i < length && row % 7 != 0; ++i)
        m.col_idx.push_back(static_cast<std::int32_t>(first(row) + i));
      m.row_ptr.push_back(static_cast<std::int64_t>(m.col_idx.size()));
    }
    m.values.assign(m.col_idx.size(), 1.0F);
    expect_same_order(m, device);
    const Permutation order = device_order(m, "match", device);
    int changes = 0;
    for (std::int64_t i = 1; i < m.rows && m.row_length(order[i]) > 0; ++i)
      changes += first(order[i]) != first(order[i - 1]) ? 1 : 0;
    EXPECT_LT(changes, 2 * kKinds) << "alike rows follow one another";
  }
}

TEST(MatchOnDevice, LeavesTheNaturalOrderWhereManyRowsShareAlmostNothing) {
  SPMMBENCH_TEST_DEVICE(device, DeviceKind::cuda);
  const CsrMatrix apart = make(
      150'000, 4'000'000, [](auto row) { return 20 + row % 3; },
      [](auto row) { return 101 + row % 1009; });
  EXPECT_TRUE(std::ranges::is_sorted(device_order(apart, "match?rows=auto", device)));
  EXPECT_FALSE(std::ranges::is_sorted(device_order(apart, "match", device)));
  expect_same_order(apart, device);
}

TEST(MatchOnDevice, LeavesTheNaturalOrderWhereItsWindowsGatherAsLittle) {
  SPMMBENCH_TEST_DEVICE(device, DeviceKind::cuda);
  // Eight rows that follow one another share their columns, in natural order or in any other.
  CsrMatrix alike{8192, 40'960, {0}, {}, {}};
  for (std::int32_t row = 0; row < alike.rows; ++row) {
    for (std::int32_t i = 0; i < 40; ++i) alike.col_idx.push_back(row / 8 * 40 + i);
    alike.row_ptr.push_back(static_cast<std::int64_t>(alike.col_idx.size()));
  }
  alike.values.assign(alike.col_idx.size(), 1.0F);
  ASSERT_GE(alike.nnz(), match::kAskedEntries);
  EXPECT_TRUE(std::ranges::is_sorted(device_order(alike, "match?rows=auto", device)));
  expect_same_order(alike, device);
  // The same rows, dealt out.
  CsrMatrix dealt = alike;
  for (std::int32_t row = 0; row < dealt.rows; ++row)
    for (std::int32_t i = 0; i < 40; ++i)
      dealt.col_idx[row * 40 + i] = row % (alike.rows / 8) * 40 + i;
  EXPECT_FALSE(std::ranges::is_sorted(device_order(dealt, "match?rows=auto", device)));
  expect_same_order(dealt, device);
}

TEST(MatchOnDevice, GivesTheOrderOfTheHostWhereFewRowsAreLeft) {
  SPMMBENCH_TEST_DEVICE(device, DeviceKind::cuda);
  for (const std::int64_t rows : {1, 2, 3, 31, 33, 63})
    expect_same_order(
        make(
            rows, 40, [](auto row) { return row % 4 == 2 ? 0 : 30; }, [](auto) { return 1; }),
        device);
}

// Pairs alike and rows that share nothing take turns, more of each than a CTA numbers at a time;
// every 97th row is empty.
TEST(MatchOnDevice, GivesTheOrderOfTheHostWhereManyThatFollowOneAnotherAreLeft) {
  SPMMBENCH_TEST_DEVICE(device, DeviceKind::cuda);
  constexpr std::int32_t kLength = 3, kInTurn = 701;
  CsrMatrix m{300'001, std::int64_t{300'001} * kLength, {0}, {}, {}};
  for (std::int32_t row = 0; row < m.rows; ++row) {
    const std::int32_t first = row / kInTurn % 2 == 0 ? row : row / 2 * 2;
    for (std::int32_t i = 0; i < kLength && row % 97 != 0; ++i)
      m.col_idx.push_back(first * kLength + i);
    m.row_ptr.push_back(static_cast<std::int64_t>(m.col_idx.size()));
  }
  m.values.assign(m.col_idx.size(), 1.0F);
  expect_same_order(m, device);
}

// Each row shares more with the next one than with the one before: who asks loses its place to
// others over and over.
TEST(MatchOnDevice, GivesTheOrderOfTheHostWhereEachRowPrefersTheNext) {
  SPMMBENCH_TEST_DEVICE(device, DeviceKind::cuda);
  CsrMatrix m{6000, 30000, {0}, {}, {}};
  for (std::int32_t row = 0; row < m.rows; ++row) {
    const std::int32_t length = 8 + row / 100;
    for (std::int32_t i = 0; i < length; ++i) m.col_idx.push_back(4 * row + i);
    m.row_ptr.push_back(static_cast<std::int64_t>(m.col_idx.size()));
  }
  m.values.assign(m.col_idx.size(), 1.0F);
  expect_same_order(m, device);
}

TEST(MatchOnDevice, GivesTheOrderOfTheHostWhereNoRowsShareAColumn) {
  SPMMBENCH_TEST_DEVICE(device, DeviceKind::cuda);
  CsrMatrix diagonal{777, 777, {0}, {}, {}};
  for (std::int32_t row = 0; row < 777; ++row) {
    diagonal.col_idx.push_back(row);
    diagonal.values.push_back(1);
    diagonal.row_ptr.push_back(row + 1);
  }
  expect_same_order(diagonal, device);
}

// Rows of `length` neighbouring columns, each one further than the last, in random order. Every
// 7th is empty.
CsrMatrix shuffled_band(std::int64_t rows, std::int32_t length) {
  std::vector<std::int32_t> first(rows);
  std::iota(first.begin(), first.end(), 0);
  std::ranges::sort(first, {}, [](auto row) { return std::pair(hash_position(3, row, 0), row); });
  CsrMatrix m{rows, rows + length, {0}, {}, {}};
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int32_t i = 0; i < length && row % 7 != 3; ++i) m.col_idx.push_back(first[row] + i);
    m.row_ptr.push_back(static_cast<std::int64_t>(m.col_idx.size()));
  }
  m.values.assign(m.col_idx.size(), 1.0F);
  return m;
}

// Rows are at most length - 1 apart at each distance, so the largest of these matrices have more
// distances than are searched, and in some the search ends between half of the rows and all.
TEST(MatchOnDevice, SortsClustersByDistanceAsTheHost) {
  SPMMBENCH_TEST_DEVICE(device, DeviceKind::cuda);
  for (const std::int32_t length : {8, 20})
    for (const std::int64_t rows : {3'001, 9'001, 30'000, 100'003}) {
      SCOPED_TRACE(rows);
      const CsrMatrix band = shuffled_band(rows, length);
      expect_same_order(band, device, {"match?sort=distance"});
      EXPECT_EQ(std::ranges::is_sorted(device_order(band, "match?sort=distance", device)),
                rows > 2 * rim::kMostDistances * (length - 1));
    }
}

TEST(MatchOnDevice, SortsClustersByDistanceWhereAColumnHasManyRows) {
  SPMMBENCH_TEST_DEVICE(device, DeviceKind::cuda);
  constexpr std::int64_t kRows = 9'001;
  for (const std::int32_t length : {8, 20}) {
    const CsrMatrix band = shuffled_band(kRows, length);
    CsrMatrix m{kRows, band.cols + 1, {0}, {}, {}};
    for (std::int64_t row = 0; row < kRows; ++row) {
      const auto begin = band.col_idx.begin() + band.row_ptr[row];
      m.col_idx.insert(m.col_idx.end(), begin, begin + band.row_length(row));
      if (band.row_length(row) > 0 && *begin < kRows / 4)
        m.col_idx.push_back(static_cast<std::int32_t>(band.cols));
      m.row_ptr.push_back(static_cast<std::int64_t>(m.col_idx.size()));
    }
    m.values.assign(m.col_idx.size(), 1.0F);
    expect_same_order(m, device, {"match?sort=distance"});
    EXPECT_FALSE(std::ranges::is_sorted(device_order(m, "match?sort=distance", device)));
  }
}

}  // namespace
}  // namespace spmmbench::test
