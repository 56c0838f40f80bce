// Bitmap queues built on the device against the host build, byte for byte.

#include <gtest/gtest.h>

#include "../../kernels/bitmap_dense/device_build.hpp"
#include "common/panel_schedule.hpp"
#include "devices.hpp"
#include "downloaded.hpp"
#include "gpu/csr_on_device.hpp"
#include "shapes.hpp"
#include "spmmbench/random.hpp"

namespace spmmbench::test {
namespace {

using bitmap_dense::BitmapPanels;
using bitmap_dense::PairQueues;
using bitmap_dense::ValueQueues;
using Ranges = std::vector<BitmapPanels::Range>;

// As a kernel cuts panels for N columns: whole ones, and parts that begin at any group of steps.
Ranges ranges_for(const CsrMatrix& matrix, ElementType type, int warps, std::int64_t n,
                  std::int64_t blocks) {
  const PanelTiling tiling{
      .warps = warps, .tile_columns = 64, .unit_steps = BitmapPanels::kGroupSteps};
  Ranges out;
  for (const auto& range :
       make_panel_schedule(tiling, BitmapPanels::panels(matrix.rows),
                           BitmapPanels::panel_steps(matrix.cols, type), n, blocks)
           .ranges)
    out.push_back({range.panel, range.first_step, range.steps});
  return out;
}

template <class Queues>
void expect_host_bytes(Device& device, const CsrMatrix& matrix, Precision precision,
                       const Ranges& ranges) {
  const ElementType type = storage_type(precision);
  const Queues host = Queues::build(matrix, type, ranges);
  const CsrOnDevice a(matrix, precision, device);
  const auto got = bitmap_dense::build_queues<Queues>(a.view(), ranges, device);
  ASSERT_EQ(got.segment_count, std::ssize(host.segments));
  ASSERT_EQ(got.block_count, std::ssize(host.blocks));
  ASSERT_EQ(got.levels * BitmapPanels::kLanes, std::ssize(host.words));
  EXPECT_EQ(downloaded<BitmapPanels::Segment>(device, got.segments.data(), host.segments.size()),
            host.segments);
  EXPECT_TRUE((downloaded<typename Queues::Block>(device, got.blocks.data(), host.blocks.size()) ==
               host.blocks))
      << "bits";
  EXPECT_TRUE(
      (downloaded<std::uint32_t>(device, got.words.data(), host.words.size()) == host.words))
      << "words";
}

TEST(BitmapDeviceBuild, GivesTheBytesOfTheHostBuild) {
  SPMMBENCH_TEST_DEVICE(device, DeviceKind::cuda);
  for (const auto& [name, given] : all_shapes()) {
    if (given.rows * given.cols > 10'000'000) continue;  // mostly bits of empty positions
    for (const Precision precision : {Precision::fp16, Precision::bf16, Precision::fp8_e4m3}) {
      const ElementType type = storage_type(precision);
      CsrMatrix matrix = given;
      for (float& value : matrix.values) value = round_to(precision, value);
      if (matrix.nnz() > 0) matrix.values[matrix.nnz() / 2] = 0;  // a stored zero
      for (const Ranges& ranges :
           {BitmapPanels::whole_panels(matrix.rows, matrix.cols, type),
            ranges_for(matrix, type, 12, 8, 132), ranges_for(matrix, type, 8, 500, 7)}) {
        SCOPED_TRACE(name + ", " + std::to_string(ranges.size()) + " ranges");
        expect_host_bytes<PairQueues>(device, matrix, precision, ranges);
        expect_host_bytes<ValueQueues>(device, matrix, precision, ranges);
      }
    }
  }
}

}  // namespace
}  // namespace spmmbench::test
