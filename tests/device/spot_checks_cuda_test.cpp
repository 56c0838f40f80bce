// Views of B on a GPU, and what is found by changing B between launches.

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <stdexcept>
#include <vector>

#include "devices.hpp"
#include "gpu/backend.hpp"
#include "measure/spot_checks.hpp"
#include "spmmbench/registry.hpp"
#include "spmmbench/stage_timer.hpp"
#include "timing/sampler.hpp"
#include "verify/bound.hpp"

namespace spmmbench::test {
namespace {

CsrMatrix band(std::int64_t size) {
  CsrMatrix a{size, size, {0}, {}, {}};
  for (std::int64_t row = 0; row < size; ++row) {
    for (std::int64_t col = std::max<std::int64_t>(row - 1, 0); col < std::min(row + 2, size);
         ++col) {
      a.col_idx.push_back(static_cast<std::int32_t>(col));
      a.values.push_back(0.5F);
    }
    a.row_ptr.push_back(static_cast<std::int64_t>(a.values.size()));
  }
  return a;
}

TEST(SpotChecksOnDevice, PiecesAreWrittenInTheirOrder) {
  SPMMBENCH_TEST_DEVICE(device, DeviceKind::cuda);
  constexpr std::size_t kBytes = 1000, kPieces = 40;
  const Buffer memory = device.allocate(kBytes);
  device.fill_bytes(memory.data(), 0, kBytes);
  std::vector<unsigned char> expected(kBytes, 0);
  std::vector<std::vector<unsigned char>> bytes;
  for (std::size_t i = 0; i < kPieces; ++i)
    bytes.emplace_back(1 + i * 3 % 128, static_cast<unsigned char>(i + 1));
  std::vector<Piece> pieces;
  for (std::size_t i = 0; i < kPieces; ++i) {
    const std::size_t at = i * 53 % (kBytes - 128);
    pieces.push_back({memory.as<unsigned char>() + at, bytes[i]});
    std::ranges::copy(bytes[i], expected.begin() + static_cast<std::ptrdiff_t>(at));
  }
  cuda_write(pieces, device);
  std::vector<unsigned char> found(kBytes);
  device.download(found.data(), memory.data(), kBytes);
  EXPECT_EQ(found, expected);
}

TEST(SpotChecksOnDevice, WhatIsReadIsWhatLiesAtEachPlace) {
  SPMMBENCH_TEST_DEVICE(device, DeviceKind::cuda);
  std::vector<unsigned char> bytes(1000);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<unsigned char>(i * 37);
  const Buffer memory = device.upload(bytes);
  const std::vector<std::size_t> places = {0, 3, 500, 871};
  std::vector<const unsigned char*> at;
  for (const std::size_t place : places) at.push_back(memory.as<unsigned char>() + place);
  const unsigned char* const read = cuda_read(at, device);
  device.synchronize();
  for (std::size_t i = 0; i < places.size(); ++i)
    for (std::size_t j = 0; j < kPieceBytes; ++j)
      ASSERT_EQ(read[i * kPieceBytes + j], bytes[places[i] + j]) << i << ", " << j;
}

TEST(SpotChecksOnDevice, AThousandPlacesAreReadAndTheReadBeforeIsStillThere) {
  SPMMBENCH_TEST_DEVICE(device, DeviceKind::cuda);
  std::vector<unsigned char> bytes(3000);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<unsigned char>(i * 37 / 3);
  const Buffer memory = device.upload(bytes);
  for (const std::size_t count : {1, 16, 17, 256, 257, 1024}) {
    std::vector<const unsigned char*> at;
    for (std::size_t i = 0; i < count; ++i)
      at.push_back(memory.as<unsigned char>() + i * 41 % (bytes.size() - kPieceBytes));
    const unsigned char* const read = cuda_read(at, device);
    const std::vector<const unsigned char*> first = {memory.as<unsigned char>()};
    const unsigned char* const other = cuda_read(first, device);
    device.synchronize();
    for (std::size_t i = 0; i < count; ++i)
      ASSERT_TRUE(std::equal(read + i * kPieceBytes, read + (i + 1) * kPieceBytes,
                             bytes.begin() + (at[i] - memory.as<unsigned char>())))
          << i << " of " << count;
    ASSERT_TRUE(std::equal(other, other + kPieceBytes, bytes.begin()));
  }
}

TEST(SpotChecksOnDevice, AGraphLaunchesAsManyAsItIsTold) {
  SPMMBENCH_TEST_DEVICE(device, DeviceKind::cuda);
  constexpr int kLaunches = 6;
  const Buffer memory = device.allocate(kLaunches);
  int at = 0;
  const auto launch = [&] {  // writes a byte of its own
    device.fill_bytes(memory.as<unsigned char>() + at, static_cast<unsigned char>(at + 1), 1);
    ++at;
  };
  const std::shared_ptr<Replay> replay =
      cuda_record(launch, kLaunches, GraphKind::in_order, device);
  ASSERT_TRUE(replay);
  EXPECT_EQ(at, kLaunches);
  for (const int count : {kLaunches, 2, 5, 1, kLaunches, 3}) {
    device.fill_bytes(memory.data(), 0, kLaunches);
    bool beside = false;
    EXPECT_GT(replay->first(count,
                            [&] {
                              replay->make_ready(3);  // what runs stays
                              beside = true;
                            }),
              0);
    EXPECT_TRUE(beside);
    std::vector<unsigned char> found(kLaunches), expected(kLaunches);
    device.download(found.data(), memory.data(), kLaunches);
    for (int i = 0; i < count; ++i) expected[i] = static_cast<unsigned char>(i + 1);
    EXPECT_EQ(found, expected) << count;
  }
  EXPECT_EQ(at, kLaunches) << "nothing is recorded a second time";
}

// It refuses to be captured, as a library that waits for the device does.
TEST(SpotChecksOnDevice, LaunchesThatCannotBeCapturedFollowOneAnotherUnlessTheyAreSetApart) {
  SPMMBENCH_TEST_DEVICE(device, DeviceKind::cuda);
  const Buffer memory = device.allocate(1);
  const auto launch = [&](int) {
    if (device.is_capturing(device.stream())) throw std::runtime_error("no capture");
    device.fill_bytes(memory.data(), 1, 1);
  };
  const SampleLimits limits{.min_samples = 3, .max_samples = 3};
  const Timing alone = sample_hot(device, launch, limits, {.apart = true}, {});
  EXPECT_EQ(alone.launches_per_sample, 1);
  EXPECT_EQ(alone.n(), 3);
  EXPECT_GT(sample_hot(device, launch, limits, {}, {}).launches_per_sample, 1);
}

TEST(SpotChecksOnDevice, ALateBatchOfOneLaunchThatCannotBeCapturedIsRight) {
  SPMMBENCH_TEST_DEVICE(device, DeviceKind::cuda);
  const CsrMatrix a = band(300);
  const Kernel& kernel = *Registry<Kernel>::instance().find("csr_naive");
  Problem problem;
  problem.a = &a;
  problem.n = 20;
  const Operands operands = make_operands(a, problem.n, problem.precision, problem.c_type,
                                          problem.layout, nullptr, 1, device);
  StageTimer stages;
  const auto prepared = kernel.prepare(problem.operand(), {}, device, stages);
  const auto plan = prepared->bind(problem.shape(), stages);
  SpotChecks checks(a, {}, operands, error_bound(kernel.info(), problem.precision, problem.c_type),
                    problem.precision, false, device);
  for (const int launches : {1, 1, 2, 1, 1}) {
    checks.before(launches, false);
    const auto launch = [&](int at) {
      if (at == launches - 1) checks.write_changes(20);
      if (device.is_capturing(device.stream())) throw std::runtime_error("no capture");
      plan->launch(checks.b(at), operands.c, device.stream());
    };
    launch_batch(device, launch, launches, {});
    EXPECT_NO_THROW(checks.after()) << launches;
  }
  checks.restore();
  EXPECT_FALSE(wrote_to_b(operands, device));
}

TEST(SpotChecksOnDevice, EveryViewHasTheValuesThatItsMemoryWasMadeWith) {
  SPMMBENCH_TEST_DEVICE(device, DeviceKind::cuda);
  const CsrMatrix a = band(300);
  DenseMatrix some{300, 20, std::vector<float>(6000)};
  for (std::size_t i = 0; i < some.values.size(); ++i)
    some.values[i] = static_cast<float>(i % 1021) / 1024;
  for (const Layout layout : {Layout::row_major, Layout::col_major})
    for (const std::int64_t n : {1, 20, 64})
      for (const DenseMatrix* const host_b : {static_cast<DenseMatrix*>(nullptr), &some}) {
        if (host_b != nullptr && n != host_b->cols) continue;
        const Operands operands =
            make_operands(a, n, Precision::fp16, ElementType::f32, layout, host_b, 1, device);
        std::vector<unsigned char> bytes(operands.b_memory.bytes());
        device.download(bytes.data(), operands.b_memory.data(), bytes.size());
        for (const int i : {0, 1, operands.views - 1}) {
          DenseView b = operands.b_view(i);
          const std::int64_t first = i * static_cast<std::int64_t>(operands.view_step) / 2;
          for (std::int64_t k = 0; k < a.cols; k += 7)
            for (std::int64_t j = 0; j < n; ++j) {
              const std::int64_t at =
                  first + (layout == Layout::row_major ? k * b.ld + j : j * b.ld + k);
              ASSERT_EQ(load_element(b.type, bytes.data(), at), operands.value_of_b(at))
                  << "view " << i << ", B(" << k << ", " << j << ")";
            }
        }
      }
}

class LaunchesOnDevice : public testing::TestWithParam<Precision> {};

TEST_P(LaunchesOnDevice, ARightLaunchPassesAndOneThatDoesNothingIsFoundOut) {
  SPMMBENCH_TEST_DEVICE(device, DeviceKind::cuda);
  CsrMatrix a = band(300);
  if (GetParam() == Precision::fp64) a.values64.assign(a.values.begin(), a.values.end());
  const Kernel& kernel = *Registry<Kernel>::instance().find("cusparse_csr_default");
  Problem problem;
  problem.a = &a;
  problem.precision = GetParam();
  for (const std::int64_t n : {1, 20}) {
    problem.n = n;
    problem.c_type = GetParam() == Precision::fp64 ? ElementType::f64 : ElementType::f32;
    const Operands operands =
        make_operands(a, n, problem.precision, problem.c_type, problem.layout, nullptr, 1, device);
    StageTimer stages;
    const auto prepared = kernel.prepare(problem.operand(), {}, device, stages);
    const auto plan = prepared->bind(problem.shape(), stages);
    SpotChecks checks(a, {}, operands,
                      error_bound(kernel.info(), problem.precision, problem.c_type),
                      problem.precision, false, device);
    EXPECT_GE(checks.views(), 2);
    for (int launches = 1; launches < 30; ++launches) {
      checks.before(launches);
      for (int at = 0; at < launches; ++at) plan->launch(checks.b(at), operands.c, device.stream());
      EXPECT_NO_THROW(checks.after());
    }
    // The next batch begins before the one that runs is judged.
    checks.before(2);
    const auto launch_and_begin = [&](bool works) {
      for (int at = 0; works && at < 2; ++at)
        plan->launch(checks.b(at), operands.c, device.stream());
      checks.read_soon();
      checks.make_ready(2);
      checks.begin_early(2);
      EXPECT_TRUE(checks.has_begun_early());
      device.synchronize();
      checks.before(2);
    };
    for (int i = 0; i < 5; ++i) {
      launch_and_begin(true);
      EXPECT_NO_THROW(checks.judge_earlier());
    }
    EXPECT_NO_THROW(checks.settle());
    launch_and_begin(false);
    EXPECT_NO_THROW(checks.judge_earlier()) << "the last is judged behind the next one";
    launch_and_begin(true);
    EXPECT_THROW(checks.judge_earlier(), WrongLaunch) << "B has changed";
    checks.restore();
    EXPECT_FALSE(wrote_to_b(operands, device));
    checks.before(1);
    EXPECT_THROW(checks.after(), WrongLaunch) << "B has changed";
    EXPECT_TRUE(wrote_to_b(operands, device)) << "the changes are in B";
    checks.before(1);
    plan->launch(checks.b(1), operands.c, device.stream());
    EXPECT_THROW(checks.after(), WrongLaunch) << "another view";
    checks.restore();
    EXPECT_FALSE(wrote_to_b(operands, device));
  }
}

INSTANTIATE_TEST_SUITE_P(precisions, LaunchesOnDevice,
                         testing::Values(Precision::fp32, Precision::fp16, Precision::fp64),
                         [](const auto& info) { return std::string(to_string(info.param)); });

}  // namespace
}  // namespace spmmbench::test
