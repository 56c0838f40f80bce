// The rates of a device that predictions divide by: given, kept or measured.

#include <gtest/gtest.h>

#include "cache_fixture.hpp"
#include "fake_device.hpp"
#include "select/device_model.hpp"
#include "select/device_rates.hpp"

namespace spmmbench {
namespace {

class Rates : public test::CacheTest {
 protected:
  void SetUp() override {
    device_.device_info.kind = DeviceKind::cuda;
    // A name of its own, since the process keeps the rates of every device.
    device_.device_info.name = ::testing::UnitTest::GetInstance()->current_test_info()->name();
    device_.device_info.sm_count = 66;
    device_.device_info.driver_version = std::string("1");  // GCC 12 warns of a copy of "1"
  }

  DeviceRates rates() {
    return rates_of(
        device_, [this](Device&) { return ++measured_, 3e12; },
        [this](Device&) { return ++measured_, 5e14; });
  }
  // As in another process.
  void forget() { set_rates(device_.device_info, {}); }

  FakeDevice device_;
  int measured_ = 0;
};

TEST_F(Rates, AreMeasuredOnceInAProcess) {
  EXPECT_EQ(known_rates(device_.device_info).gather_bytes_per_second, 0);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(rates().copy_bytes_per_second, device_.copy_bytes_per_second());
    EXPECT_EQ(rates().gather_bytes_per_second, 3e12);
    EXPECT_EQ(rates().dense_flops_per_second, 5e14);
  }
  EXPECT_EQ(measured_, 2);
  EXPECT_EQ(known_rates(device_.device_info).gather_bytes_per_second, 3e12);
}

TEST_F(Rates, OfTheParentProcessAreNotMeasuredAgain) {
  set_rates(device_.device_info, {1e12, 2e12, 4e14});
  EXPECT_EQ(rates().copy_bytes_per_second, 1e12);
  EXPECT_EQ(rates().gather_bytes_per_second, 2e12);
  EXPECT_EQ(rates().dense_flops_per_second, 4e14);
  EXPECT_EQ(measured_, 0);
}

TEST_F(Rates, WithoutCublasAreKnownButForTheDenseOne) {
  set_cache_folder(folder());
  int gathers = 0;
  const auto none = [](Device&) { return 0.0; };
  for (int i = 0; i < 2; ++i) {
    const DeviceRates known = rates_of(
        device_, [&](Device&) { return ++gathers, 3e12; }, none);
    EXPECT_EQ(known.gather_bytes_per_second, 3e12);
    EXPECT_EQ(known.dense_flops_per_second, 0);
  }
  EXPECT_EQ(gathers, 1);
  EXPECT_TRUE(files().empty()) << "half of an entry is not kept";
}

TEST_F(Rates, OfTheHostAreItsCopyAlone) {
  device_.device_info.kind = DeviceKind::host;
  EXPECT_EQ(rates().copy_bytes_per_second, device_.copy_bytes_per_second());
  EXPECT_EQ(rates().gather_bytes_per_second, 0);
  EXPECT_EQ(measured_, 0);
}

TEST_F(Rates, AreReadFromTheCacheInAnotherProcess) {
  set_cache_folder(folder());
  rates();
  forget();
  EXPECT_EQ(rates().gather_bytes_per_second, 3e12);
  EXPECT_EQ(rates().dense_flops_per_second, 5e14);
  EXPECT_EQ(measured_, 2);
  for (std::string DeviceInfo::*other : {&DeviceInfo::driver_version, &DeviceInfo::cublas_version,
                                         &DeviceInfo::uuid, &DeviceInfo::name}) {
    measured_ = 0;
    device_.device_info.*other += " 2";
    forget();
    rates();
    EXPECT_EQ(measured_, 2) << device_.device_info.*other;
  }
}

TEST_F(Rates, AFileThatCannotBeUsedCostsOneWarningAndIsReplaced) {
  set_cache_folder(folder());
  rates();
  const auto measured_by_rates = [this](int expected) {
    measured_ = 0;
    forget();
    EXPECT_EQ(rates().gather_bytes_per_second, 3e12);
    EXPECT_EQ(measured_, expected);
  };
  expect_replaced(
      {{"\"sms\": \"66\"", "\"sms\": \"67\""},  // of another device
       {"gather_bytes_per_second", "gather"},
       {"3000000000000", "-3"},
       {"3000000000000", "nan"},
       {"3000000000000", "3e12 "}},
      [&] { measured_by_rates(2); }, [&] { measured_by_rates(0); });
}

TEST_F(Rates, ModelFollowsWhatWasMeasuredAndElseAnH200) {
  const DeviceModel measured = device_model(device_.device_info, rates());
  EXPECT_DOUBLE_EQ(measured.memory_bytes_per_us, device_.copy_bytes_per_second() * 1e-6);
  EXPECT_DOUBLE_EQ(measured.gather_bytes_per_us, 3e6);
  EXPECT_DOUBLE_EQ(measured.dense_flops_per_us, 5e8);
  const DeviceModel otherwise = device_model(device_.device_info, {});  // half of its 132 SMs
  EXPECT_DOUBLE_EQ(otherwise.memory_bytes_per_us, 4.31e6);
  EXPECT_DOUBLE_EQ(otherwise.gather_bytes_per_us, 4.65e6);
  EXPECT_DOUBLE_EQ(otherwise.dense_flops_per_us, 3.8e8);
}

}  // namespace
}  // namespace spmmbench
