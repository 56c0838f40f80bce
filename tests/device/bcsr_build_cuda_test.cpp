// BCSR and its groups built on the device against the host build, byte for byte.

#include <gtest/gtest.h>

#include "../../kernels/async_bcsr/device_build.hpp"
#include "async_bcsr/work.hpp"
#include "devices.hpp"
#include "downloaded.hpp"
#include "gpu/csr_on_device.hpp"
#include "shapes.hpp"
#include "spmmbench/random.hpp"

namespace spmmbench {

namespace async_bcsr {
bool operator==(const BcsrStep& a, const BcsrStep& b) {
  return a.k == b.k && a.a_row[0] == b.a_row[0] && a.a_row[1] == b.a_row[1] &&
         a.a_column == b.a_column;
}
}  // namespace async_bcsr

namespace test {
namespace {

using async_bcsr::BcsrGrouping;
using async_bcsr::BcsrGroups;
using async_bcsr::BcsrStep;

struct Blocks {
  int bm, bk, unit_k;
};

void expect_host_bytes(Device& device, const CsrMatrix& matrix, Precision precision,
                       const Blocks& blocks, BcsrGrouping grouping) {
  const ElementType type = storage_type(precision);
  const BcsrPattern pattern = BcsrPattern::build(matrix, blocks.bm, blocks.bk);
  Bcsr host = Bcsr::build(matrix, pattern);
  if (host.values.empty()) host.values.resize(std::size_t(blocks.bm) * blocks.bk);
  const BcsrGroups groups = BcsrGroups::build(pattern, blocks.unit_k, grouping);
  const CsrOnDevice a(matrix, precision, device);
  const async_bcsr::DeviceBlocks got =
      async_bcsr::build_blocks(a.view(), blocks.bm, blocks.bk, blocks.unit_k, grouping, device);
  EXPECT_EQ(got.totals.blocks, pattern.blocks());
  EXPECT_EQ(async_bcsr::count_blocks(a.view(), blocks.bm, blocks.bk), pattern.blocks());
  const FormatStats stats = got.sizes.stats(got.totals, 2);
  EXPECT_EQ(stats.windows, pattern.stats().windows);
  EXPECT_EQ(stats.index_bytes, pattern.stats().index_bytes);
  EXPECT_EQ(stats.extra, pattern.stats().extra);
  EXPECT_EQ(got.groups.unit_row, groups.unit_row);
  EXPECT_EQ(got.groups.step_ptr, groups.step_ptr);
  EXPECT_EQ(got.groups.block_count, groups.block_count);
  const std::vector<BcsrStep> steps = async_bcsr::both_ways(groups.steps);
  ASSERT_EQ(got.steps.bytes(), steps.size() * sizeof(BcsrStep));
  EXPECT_TRUE((downloaded<BcsrStep>(device, got.steps.data(), steps.size()) == steps)) << "steps";
  ASSERT_EQ(got.values.bytes(), host.values.size() * bytes_of(type));
  visit_element(type, [&](auto element) {
    const auto bits = encode_values(host.values, element);
    using Bits = typename decltype(element)::Bits;
    EXPECT_TRUE((downloaded<Bits>(device, got.values.data(), bits.size()) == bits)) << "values";
  });
}

// Blocked-ELL as cuSPARSE has it, from BCSR.
struct Ell {
  std::vector<std::int32_t> block_col;
  std::vector<float> values;
};
Ell ell_of(const Bcsr& bcsr) {
  const BcsrPattern& pattern = bcsr.pattern;
  const std::int64_t width = std::max<std::int64_t>(1, pattern.totals().longest), b = pattern.bm;
  Ell out{std::vector<std::int32_t>(pattern.block_rows() * width, -1),
          std::vector<float>(pattern.block_rows() * b * width * b)};
  for (std::int64_t i = 0; i < pattern.block_rows(); ++i)
    for (std::int64_t at = pattern.block_row_ptr[i]; at < pattern.block_row_ptr[i + 1]; ++at) {
      const std::int64_t slot = at - pattern.block_row_ptr[i];
      out.block_col[i * width + slot] = pattern.block_col[at];
      for (std::int64_t e = 0; e < b * b; ++e)
        out.values[((i * b + e / b) * width + slot) * b + e % b] = bcsr.values[at * b * b + e];
    }
  return out;
}

void expect_blocks_of_the_host(Device& device, const CsrMatrix& matrix, int block) {
  const Bcsr host = Bcsr::build(matrix, BcsrPattern::build(matrix, block, block));
  const BcsrPattern& pattern = host.pattern;
  const CsrOnDevice a(matrix, Precision::tf32, device);
  const async_bcsr::DeviceBcsr bcsr = async_bcsr::build_bcsr(a.view(), block, device);
  const std::vector<std::int32_t> row_ptr(pattern.block_row_ptr.begin(),
                                          pattern.block_row_ptr.end());
  EXPECT_EQ(downloaded<std::int32_t>(device, bcsr.block_row_ptr.data(), row_ptr.size()), row_ptr);
  EXPECT_EQ(downloaded<std::int32_t>(device, bcsr.block_col.data(), pattern.block_col.size()),
            pattern.block_col);
  EXPECT_TRUE((downloaded<float>(device, bcsr.values.data(), host.values.size()) == host.values));
  const Ell expected = ell_of(host);
  const async_bcsr::DeviceBcsr ell = async_bcsr::build_blocked_ell(a.view(), block, device);
  EXPECT_EQ(async_bcsr::widest_block_row(a.view(), block, block), pattern.totals().longest);
  EXPECT_EQ(downloaded<std::int32_t>(device, ell.block_col.data(), expected.block_col.size()),
            expected.block_col);
  EXPECT_TRUE(
      (downloaded<float>(device, ell.values.data(), expected.values.size()) == expected.values));
}

CsrMatrix few_blocks(std::int64_t rows, std::int64_t cols, std::int64_t apart) {
  CsrMatrix m{rows, cols, {0}, {}, {}};
  for (std::int64_t row = 0; row < m.rows; ++row) {
    if (row % 61 == 0)
      for (std::int64_t i = 0; i < 1 + row % 3; ++i) {
        m.col_idx.push_back(static_cast<std::int32_t>(row % 7 * apart / 9 + i * apart));
        m.values.push_back(uniform_at(5, row, i));
      }
    m.row_ptr.push_back(static_cast<std::int64_t>(m.col_idx.size()));
  }
  return m;
}

TEST(BcsrDeviceBuild, GivesTheBytesOfTheHostBuild) {
  SPMMBENCH_TEST_DEVICE(device, DeviceKind::cuda);
  for (const auto& [name, given] : all_shapes())
    for (const Precision precision : {Precision::fp16, Precision::tf32}) {
      CsrMatrix matrix = given;
      for (float& value : matrix.values) value = round_to(precision, value);
      const int unit_k = precision == Precision::fp16 ? 64 : 32;
      for (const Blocks& blocks : {Blocks{64, 64, unit_k}, Blocks{128, 64, unit_k},
                                   Blocks{64, 128, unit_k}, Blocks{1024, 1024, unit_k}}) {
        if (BcsrPattern::build(matrix, blocks.bm, blocks.bk).stored() > 100'000'000) continue;
        SCOPED_TRACE(name + ", " + std::to_string(blocks.bm) + " x " + std::to_string(blocks.bk));
        expect_host_bytes(device, matrix, precision, blocks, BcsrGrouping::overlap);
        expect_host_bytes(device, matrix, precision, blocks, BcsrGrouping::consecutive);
      }
    }
}

TEST(BcsrDeviceBuild, GivesTheBytesOfTheHostBuildForManyBlockRowsAndColumns) {
  SPMMBENCH_TEST_DEVICE(device, DeviceKind::cuda);
  // So many column blocks that their bits take several turns in shared memory; so many unit rows
  // that each is compared with some others alone.
  for (CsrMatrix matrix :
       {few_blocks(3000, 25'000'000, 9'000'001), few_blocks(150'000, 1000, 300)}) {
    for (float& value : matrix.values) value = round_to(Precision::fp16, value);
    SCOPED_TRACE(matrix.rows);
    for (const BcsrGrouping grouping : {BcsrGrouping::overlap, BcsrGrouping::consecutive})
      expect_host_bytes(device, matrix, Precision::fp16, {64, 64, 64}, grouping);
  }
}

TEST(BcsrDeviceBuild, GivesTheBlocksOfTheHostAsCusparseHasThem) {
  SPMMBENCH_TEST_DEVICE(device, DeviceKind::cuda);
  for (const auto& [name, given] : all_shapes())
    for (const int block : {4, 64}) {
      CsrMatrix matrix = given;
      for (float& value : matrix.values) value = round_to(Precision::tf32, value);
      if (BcsrPattern::build(matrix, block, block).stored() > 10'000'000) continue;
      SCOPED_TRACE(name + ", " + std::to_string(block));
      expect_blocks_of_the_host(device, matrix, block);
    }
}

}  // namespace
}  // namespace test
}  // namespace spmmbench
