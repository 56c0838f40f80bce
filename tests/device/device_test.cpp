// The contract of Device, on the GPU and on the host alike.

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <string>
#include <vector>

#include "devices.hpp"
#include "measure/rows_of_b.hpp"
#include "select/device_rates.hpp"
#include "spmmbench/random.hpp"

namespace spmmbench::test {
namespace {

class DeviceTest : public testing::TestWithParam<DeviceKind> {};

double stored_value(const DenseView& shape, const std::vector<unsigned char>& memory,
                    std::int64_t at) {
  return load_element(shape.type, memory.data(), at);
}

TEST_P(DeviceTest, FillUniformGivesTheCounterBasedValuesAndNanPadding) {
  SPMMBENCH_TEST_DEVICE(device, GetParam());
  for (const Precision precision : kPrecisions)
    for (const Layout layout : {Layout::row_major, Layout::col_major}) {
      DenseView view = make_dense_view(301, 37, layout, storage_type(precision));
      const Buffer memory = device.allocate(view.bytes());
      view.data = memory.data();
      device.fill_uniform(view, 99, precision);
      std::vector<unsigned char> host(view.bytes());
      device.download(host.data(), memory.data(), host.size());
      for (std::int64_t line = 0; line < view.lines(); ++line)
        for (std::int64_t position = 0; position < view.ld; ++position) {
          const double value = stored_value(view, host, line * view.ld + position);
          if (position >= view.line_length()) {
            ASSERT_TRUE(std::isnan(value)) << "padding of line " << line;
            continue;
          }
          const bool row_major = layout == Layout::row_major;
          const double expected =
              uniform_in(precision, 99, row_major ? line : position, row_major ? position : line);
          ASSERT_EQ(std::bit_cast<std::uint64_t>(value), std::bit_cast<std::uint64_t>(expected))
              << to_string(precision) << ", line " << line << ", position " << position;
        }
    }
}

TEST_P(DeviceTest, FillRowsGivesTheRowsOfALargerBZerosAndNanPadding) {
  SPMMBENCH_TEST_DEVICE(device, GetParam());
  const std::vector<std::int32_t> rows = {70, -1, 3, 1'000'000, 3};
  const Buffer on_device = device.upload(rows);
  for (const Precision precision : kPrecisions)
    for (const bool of_lattice : {false, true}) {
      const ValuesOfB values = {
          .seed = 99, .precision = precision, .of_lattice = of_lattice, .lattice = {.seed = 5}};
      DenseView view = make_b_view(static_cast<std::int64_t>(rows.size()), 37, Layout::row_major,
                                   storage_type(precision));
      const Buffer memory = device.allocate(view.bytes());
      view.data = memory.data();
      fill_rows(view, on_device.as<std::int32_t>(), values, device);
      std::vector<unsigned char> host(view.bytes());
      device.download(host.data(), memory.data(), host.size());
      for (std::int64_t at = 0; at < view.rows * view.ld; ++at) {
        const std::int64_t row = at / view.ld, column = at % view.ld;
        const double value = stored_value(view, host, at);
        if (column >= view.cols) ASSERT_TRUE(std::isnan(value)) << "padding of row " << row;
        else
          ASSERT_EQ(value, rows[row] < 0 ? 0 : values(rows[row], column)) << row << ' ' << column;
      }
    }
}

TEST_P(DeviceTest, WhatIsUploadedComesBack) {
  SPMMBENCH_TEST_DEVICE(device, GetParam());
  std::vector<std::int64_t> values(100'003);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<std::int64_t>(mix64(i));
  const Buffer buffer = device.upload(values);
  std::vector<std::int64_t> back(values.size());
  device.download(back.data(), buffer.data(), buffer.bytes());
  EXPECT_EQ(back, values);
}

TEST_P(DeviceTest, BuffersAreAlignedAndAnEmptyOneIsNull) {
  SPMMBENCH_TEST_DEVICE(device, GetParam());
  EXPECT_EQ(device.allocate(0).data(), nullptr);
  EXPECT_EQ(device.upload(std::vector<int>{}).data(), nullptr);
  for (const std::size_t bytes : {1, 100, 4097}) {
    const Buffer buffer = device.allocate(bytes);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer.data()) % 256, 0U);
    EXPECT_EQ(buffer.bytes(), bytes);
  }
}

TEST_P(DeviceTest, RunningOutOfMemoryIsAnErrorThatTheDeviceSurvives) {
  SPMMBENCH_TEST_DEVICE(device, GetParam());
  try {
    (void)device.allocate(std::size_t{1} << 50);
    FAIL() << "a petabyte was allocated";
  } catch (const OutOfMemory& error) {
    EXPECT_FALSE(error.device_lost());
    EXPECT_NE(std::string(error.what()).find("1125899906842624"), std::string::npos)
        << error.what();
  }
  device.synchronize();
  EXPECT_NE(device.allocate(1024).data(), nullptr);
}

TEST_P(DeviceTest, TimeGrowsWithTheNumberOfLaunches) {
  SPMMBENCH_TEST_DEVICE(device, GetParam());
  constexpr std::size_t kBytes = std::size_t{64} << 20;
  constexpr double kImpossibleBytesPerUs = 50e6;
  const Buffer buffer = device.allocate(kBytes);
  const auto fill = [&] { device.fill_bytes(buffer.data(), 1, kBytes); };
  // The shortest of several, taken in turns: other work on the machine only adds time, and it may
  // last for as long as one number of launches is timed.
  constexpr int kTurns = 50;
  double few = device.time_us(fill, 2);
  double many = device.time_us(fill, 20);
  for (int turn = 0; turn < kTurns && many <= 3 * few; ++turn) {
    few = std::min(few, device.time_us(fill, 2));
    many = std::min(many, device.time_us(fill, 20));
  }
  EXPECT_GT(few, 2 * kBytes / kImpossibleBytesPerUs);
  EXPECT_GT(many, 3 * few);
}

TEST_P(DeviceTest, AFlushMovesTheWholeCache) {
  SPMMBENCH_TEST_DEVICE(device, GetParam());
  constexpr double kImpossibleBytesPerUs = 50e6;
  device.flush_cache();
  const double us = device.time_us([&] { device.flush_cache(); }, 1);
  EXPECT_GT(us, static_cast<double>(device.info().l2_bytes) / kImpossibleBytesPerUs);
}

TEST_P(DeviceTest, CopyBandwidthIsPlausibleAndMeasuredOnce) {
  SPMMBENCH_TEST_DEVICE(device, GetParam());
  const double rate = device.copy_bytes_per_second();
  EXPECT_GT(rate, 1e8);
  EXPECT_LT(rate, 5e13);
  EXPECT_EQ(device.copy_bytes_per_second(), rate);
}

TEST(DeviceRates, ArePlausibleQuickAndMeasuredOnce) {
  SPMMBENCH_TEST_DEVICE(device, DeviceKind::cuda);
  (void)device.copy_bytes_per_second();
  set_rates(device.info(), {});  // nothing is known yet
  const auto seconds = [&](DeviceRates& rates) {
    const auto start = std::chrono::steady_clock::now();
    rates = rates_of(device);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    return took.count();
  };
  DeviceRates first, again;
  const double measuring_s = seconds(first), asking_s = seconds(again);
  RecordProperty("gather_gb_per_s", std::to_string(first.gather_bytes_per_second / 1e9));
  RecordProperty("dense_tflops", std::to_string(first.dense_flops_per_second / 1e12));
  RecordProperty("measuring_s", std::to_string(measuring_s));
  EXPECT_GT(first.gather_bytes_per_second, 1e11);
  EXPECT_GT(first.dense_flops_per_second, 1e12);
  if (device.info().compute_capability == 90) {
    EXPECT_GT(first.gather_bytes_per_second, 2e12);
    EXPECT_LT(first.gather_bytes_per_second, 2e13);
  }
  EXPECT_LT(measuring_s, 0.5);
  EXPECT_LT(asking_s, 1e-3);
  EXPECT_EQ(again.gather_bytes_per_second, first.gather_bytes_per_second);
  EXPECT_EQ(again.dense_flops_per_second, first.dense_flops_per_second);
}

TEST_P(DeviceTest, InfoSaysWhatAResultNeeds) {
  SPMMBENCH_TEST_DEVICE(device, GetParam());
  const DeviceInfo& info = device.info();
  EXPECT_EQ(info.kind, GetParam());
  EXPECT_FALSE(info.name.empty());
  EXPECT_GT(info.sm_count, 0);
  EXPECT_GT(info.l2_bytes, 0U);
  EXPECT_GT(info.memory_bytes, 0U);
  EXPECT_GT(device.free_bytes(), 0U);
  EXPECT_EQ(info.uuid.empty(), info.kind == DeviceKind::host);
  (void)device.clocks();
}

INSTANTIATE_TEST_SUITE_P(devices, DeviceTest, testing::Values(DeviceKind::host, DeviceKind::cuda),
                         [](const auto& info) {
                           return info.param == DeviceKind::host ? "host" : "cuda";
                         });

TEST(CudaProbe, SaysWhyThereIsNoDevice) {
  const CudaProbe probe = probe_cuda();
  EXPECT_EQ(probe.devices.empty(), !probe.reason.empty()) << probe.reason;
  if (!probe.devices.empty()) return;
  EXPECT_THROW((void)open_cuda_device(0), DeviceError);
}

}  // namespace
}  // namespace spmmbench::test
