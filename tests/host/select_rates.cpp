// The rates of a device that predictions divide by: given, kept or measured.

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "fake_device.hpp"
#include "select/cache.hpp"
#include "select/device_model.hpp"
#include "select/device_rates.hpp"

namespace spmmbench {
namespace {

class Rates : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::string name = ::testing::UnitTest::GetInstance()->current_test_info()->name();
    folder_ = std::filesystem::temp_directory_path() /
              ("spmmbench_rates_" + std::to_string(getpid()) + "_" + name);
    device_.device_info.kind = DeviceKind::cuda;
    device_.device_info.name = name;
    device_.device_info.sm_count = 66;
    device_.device_info.driver_version = "1";
  }
  void TearDown() override {
    set_cache_folder("");
    std::filesystem::remove_all(folder_);
  }

  DeviceRates rates() {
    return rates_of(
        device_, [this](Device&) { return ++measured_, 3e12; },
        [this](Device&) { return ++measured_, 5e14; });
  }
  // As in another process.
  void forget() { set_rates(device_.device_info, {}); }
  std::filesystem::path only_file() const {
    std::vector<std::filesystem::path> found;
    for (const auto& entry : std::filesystem::directory_iterator(folder_))
      found.push_back(entry.path());
    EXPECT_EQ(found.size(), 1U);
    return found.at(0);
  }

  FakeDevice device_;
  std::filesystem::path folder_;
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
  set_cache_folder(folder_);
  int gathers = 0;
  const auto none = [](Device&) { return 0.0; };
  for (int i = 0; i < 2; ++i) {
    const DeviceRates known = rates_of(
        device_, [&](Device&) { return ++gathers, 3e12; }, none);
    EXPECT_EQ(known.gather_bytes_per_second, 3e12);
    EXPECT_EQ(known.dense_flops_per_second, 0);
  }
  EXPECT_EQ(gathers, 1);
  EXPECT_FALSE(std::filesystem::exists(folder_)) << "half of an entry is not kept";
}

TEST_F(Rates, OfTheHostAreItsCopyAlone) {
  device_.device_info.kind = DeviceKind::host;
  EXPECT_EQ(rates().copy_bytes_per_second, device_.copy_bytes_per_second());
  EXPECT_EQ(rates().gather_bytes_per_second, 0);
  EXPECT_EQ(measured_, 0);
}

TEST_F(Rates, AreReadFromTheCacheInAnotherProcess) {
  set_cache_folder(folder_);
  rates();
  forget();
  EXPECT_EQ(rates().gather_bytes_per_second, 3e12);
  EXPECT_EQ(rates().dense_flops_per_second, 5e14);
  EXPECT_EQ(measured_, 2);
  device_.device_info.driver_version = "2";
  rates();
  EXPECT_EQ(measured_, 4) << "another driver";
}

TEST_F(Rates, AFileThatCannotBeUsedCostsOneWarningAndIsReplaced) {
  set_cache_folder(folder_);
  rates();
  const std::filesystem::path name = only_file().filename();
  std::string good;
  std::getline(std::ifstream(folder_ / name), good, '\0');
  const auto with = [&](const std::string& old, const std::string& fresh) {
    std::string text = good;
    const std::size_t at = text.find(old);
    EXPECT_NE(at, std::string::npos) << old;
    return text.replace(at, old.size(), fresh);
  };
  const std::vector<std::string> bad = {
      "",
      "{",
      good.substr(0, good.size() / 2),
      with("\"sms\": \"66\"", "\"sms\": \"67\""),  // of another device
      with("gather_bytes_per_second", "gather"),
      with("3000000000000", "-3"),
      with("3000000000000", "nan"),
      with("3000000000000", "3e12 "),
  };
  for (const std::string& text : bad) {
    const auto place = folder_ / std::to_string(&text - bad.data());
    std::filesystem::create_directories(place);
    std::ofstream(place / name) << text;
    set_cache_folder(place);
    measured_ = 0;
    ::testing::internal::CaptureStderr();
    forget();
    EXPECT_EQ(rates().gather_bytes_per_second, 3e12);
    EXPECT_EQ(measured_, 2) << text;
    const std::string said = ::testing::internal::GetCapturedStderr();
    EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1) << text << said;
    EXPECT_NE(said.find(name.string()), std::string::npos) << said;
    forget();
    rates();
    EXPECT_EQ(measured_, 2) << "the file was replaced";
  }
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
