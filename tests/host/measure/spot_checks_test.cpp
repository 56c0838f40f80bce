// Views of B, and what is found by changing B between launches.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <numeric>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "gpu/backend.hpp"
#include "measure/spot_checks.hpp"
#include "multiply.hpp"
#include "verify/reference.hpp"

namespace spmmbench {
namespace {

class SpotChecked : public ::testing::Test {
 protected:
  void make(std::int64_t n, Layout layout, const DenseMatrix* given = nullptr) {
    operands_ = make_operands(a_, n, Precision::fp16, ElementType::f32, layout, given, 1, *device_);
  }
  SpotChecks checks(bool constant_b = false) {
    return {a_, {}, operands_, {.unit = 0x1p-24}, Precision::fp16, constant_b, *device_};
  }
  static CsrMatrix band(std::int64_t size) {
    CsrMatrix a{size, size, {0}, {}, {}};
    for (std::int64_t row = 0; row < size; ++row) {
      for (std::int64_t col = std::max<std::int64_t>(row - 1, 0); col < std::min(row + 2, size);
           ++col) {
        a.col_idx.push_back(static_cast<std::int32_t>(col));
        a.values.push_back(0.5F + static_cast<float>(col));
      }
      a.row_ptr.push_back(static_cast<std::int64_t>(a.values.size()));
    }
    return a;
  }

  std::unique_ptr<Device> device_ = open_host_device();
  CsrMatrix a_ = band(40);
  Operands operands_;
};

TEST_F(SpotChecked, NoElementOfAViewIsTheSameOfAnother) {
  for (const Layout layout : {Layout::row_major, Layout::col_major})
    for (const std::int64_t n : {1, 7, 20, 64, 200}) {
      SCOPED_TRACE(n);
      make(n, layout);
      EXPECT_GE(operands_.views, 2);
      for (std::int64_t k = 0; k < a_.cols; ++k)
        for (std::int64_t j = 0; j < n; ++j) {
          std::set<const void*> places;
          for (int i = 0; i < operands_.views; ++i) {
            const DenseView b = operands_.b_view(i);
            EXPECT_EQ(reinterpret_cast<std::uintptr_t>(b.data) % 256, 0U);
            const std::int64_t at = layout == Layout::row_major ? k * b.ld + j : j * b.ld + k;
            const char* const place = static_cast<const char*>(b.data) + at * bytes_of(b.type);
            places.insert(place);
            EXPECT_LT(place, operands_.b_memory.as<char>() + operands_.b_memory.bytes());
            EXPECT_NE(element_at(b, k, j), 0) << "a number, and drawn";
          }
          EXPECT_EQ(places.size(), static_cast<std::size_t>(operands_.views));
        }
    }
}

TEST_F(SpotChecked, ARightLaunchPassesAndBIsAsItWasAfterwards) {
  const DenseMatrix given{40, 20, std::vector<float>(800, 0.25F)};
  for (const Layout layout : {Layout::row_major, Layout::col_major})
    for (const DenseMatrix* const b : {static_cast<const DenseMatrix*>(nullptr), &given}) {
      make(20, layout, b);
      SpotChecks spot = checks();
      for (int launches = 1; launches < 30; ++launches) {
        spot.before(launches);
        EXPECT_EQ(spot.b(launches - 1).data, operands_.b_view((launches - 1) % spot.views()).data);
        multiply(a_, spot.b(launches - 1), operands_.c);
        EXPECT_NO_THROW(spot.after());
      }
      spot.restore();
      EXPECT_FALSE(wrote_to_b(operands_, *device_));
    }
}

TEST_F(SpotChecked, ABatchThatWasMadeReadyIsCheckedAsAnyOther) {
  make(20, Layout::row_major);
  SpotChecks spot = checks();
  std::memset(operands_.c.data, 0, operands_.c.bytes());
  spot.before(1);
  for (const int launches : {1, 2, 2, 5})
    for (const int ready_for : {launches, launches + 1}) {  // the latter does not come
      spot.make_ready(ready_for);
      EXPECT_THROW(spot.after(), WrongLaunch) << "the batch before, whose C is gone";
      spot.before(launches);
      multiply(a_, spot.b(launches - 1), operands_.c);
      spot.make_ready(launches, false);
      EXPECT_NO_THROW(spot.after());
      spot.before(launches, false);
      multiply(a_, spot.b(launches - 1), operands_.c);
      EXPECT_THROW(spot.after(), WrongLaunch) << "B has not changed yet";
      spot.write_changes();
      multiply(a_, spot.b(launches - 1), operands_.c);
      EXPECT_NO_THROW(spot.after());
      std::memset(operands_.c.data, 0, operands_.c.bytes());
    }
  spot.restore();
  EXPECT_FALSE(wrote_to_b(operands_, *device_));
}

TEST_F(SpotChecked, ALaunchThatDoesNothingIsFoundOut) {
  for (const Layout layout : {Layout::row_major, Layout::col_major})
    for (const std::int64_t n : {1, 20}) {
      make(n, layout);
      SpotChecks spot = checks();
      spot.before(1);
      multiply(a_, spot.b(0), operands_.c);
      spot.after();
      spot.before(1);
      EXPECT_THROW(spot.after(), WrongLaunch) << "B has changed";
      EXPECT_TRUE(wrote_to_b(operands_, *device_));
    }
}

TEST_F(SpotChecked, ProductsWithAnEarlierBAreFoundOutWhereTheBoundHidesThem) {
  make(20, Layout::row_major);
  SpotChecks spot(a_, {}, operands_, {.unit = 0.5}, Precision::fp16, false, *device_);
  const auto launch_often = [&](bool stale) {
    for (int i = 0; i < 20; ++i) {
      if (stale) multiply(a_, spot.b(0), operands_.c);
      spot.before(1);
      if (!stale) multiply(a_, spot.b(0), operands_.c);
      spot.after();
    }
  };
  EXPECT_NO_THROW(launch_often(false));
  EXPECT_THROW(launch_often(true), WrongLaunch);
}

TEST_F(SpotChecked, AConstantBStaysAndIsCheckedToo) {
  make(20, Layout::row_major);
  SpotChecks spot = checks(true);
  EXPECT_EQ(spot.views(), 1);
  spot.before(5);
  EXPECT_FALSE(wrote_to_b(operands_, *device_));
  multiply(a_, spot.b(4), operands_.c);
  EXPECT_NO_THROW(spot.after());
  spot.before(1);
  EXPECT_THROW(spot.after(), WrongLaunch) << "C has what the launch before left, but for some";
  spot.before(2, false);
  multiply(a_, spot.b(0), operands_.c);
  spot.write_changes();
  EXPECT_THROW(spot.after(), WrongLaunch) << "the first launch of two";
}

TEST_F(SpotChecked, ARowIsLookedAtAsOftenAsItHasWork) {
  a_ = band(1000);  // and one row that has half of all nonzeros
  for (std::int64_t e = a_.row_ptr.back(); e < 2 * a_.row_ptr[999]; ++e) {
    a_.col_idx.push_back(static_cast<std::int32_t>(e % 1000));
    a_.values.push_back(1);
  }
  a_.row_ptr.back() = static_cast<std::int64_t>(a_.values.size());
  make(4, Layout::row_major);
  SpotChecks spot = checks();
  const CsrMatrix without_it = [&] {
    CsrMatrix a = a_;
    std::fill(a.values.begin() + a.row_ptr[999], a.values.end(), 0.0F);
    return a;
  }();
  const auto launch_often = [&] {
    for (int i = 0; i < 40; ++i) {  // two rows each by their work: 2^-80
      spot.before(1);
      multiply(without_it, spot.b(0), operands_.c);
      spot.after();
    }
  };
  EXPECT_THROW(launch_often(), WrongLaunch);
}

TEST_F(SpotChecked, ARowOfAnyLengthIsLookedAt) {
  constexpr std::int64_t kLong = 200'000;
  constexpr int kTries = 200, kFewest = 20;  // of 2 * 200 / 8 on the average
  a_ = CsrMatrix{2, kLong, {0, 1, kLong + 1}, {0}, {1}};
  for (std::int64_t k = 0; k < kLong; ++k) {
    a_.col_idx.push_back(static_cast<std::int32_t>(k));
    a_.values.push_back(1);
  }
  CsrMatrix without_it = a_;
  std::fill(without_it.values.begin() + 1, without_it.values.end(), 0.0F);
  make(1, Layout::row_major);
  SpotChecks spot = checks();
  int found = 0;
  for (int i = 0; i < kTries; ++i) {
    spot.before(1);
    multiply(without_it, spot.b(0), operands_.c);
    try {
      spot.after();
    } catch (const WrongLaunch&) {
      ++found;
    }
  }
  EXPECT_GE(found, kFewest);
}

// As where a CUDA graph that was begun cannot be made.
TEST_F(SpotChecked, WhatALateChangeWroteMayBeLostAndWrittenOnceMore) {
  make(4, Layout::row_major);
  SpotChecks spot = checks();
  const std::span<unsigned char> b(operands_.b_memory.as<unsigned char>(),
                                   operands_.b_memory.bytes());
  for (const int launches : {1, 1, 3, 1, 1, 2, 1}) {
    spot.before(launches, false);
    const std::vector<unsigned char> before(b.begin(), b.end());
    spot.write_changes();
    std::ranges::copy(before, b.begin());
    spot.write_changes();
    multiply(a_, spot.b(launches - 1), operands_.c);
    EXPECT_NO_THROW(spot.after());
  }
  spot.restore();
  EXPECT_FALSE(wrote_to_b(operands_, *device_));
}

TEST_F(SpotChecked, SingleLateLaunchesHaveDifferentViews) {
  make(4, Layout::row_major);
  SpotChecks spot = checks();
  ASSERT_GT(spot.views(), 1);
  std::set<const void*> views;
  for (int i = 0; i < 64; ++i) {
    spot.before(1, false);
    views.insert(spot.b(0).data);
    spot.write_changes();
    multiply(a_, spot.b(0), operands_.c);
    EXPECT_NO_THROW(spot.after());
  }
  EXPECT_GT(views.size(), 1U);
  spot.restore();
  EXPECT_EQ(spot.b(0).data, operands_.b.data);
  EXPECT_FALSE(wrote_to_b(operands_, *device_));
}

TEST_F(SpotChecked, EachLaunchThatIsWatchedLeavesItsOwnC) {
  constexpr int kLaunches = 12;
  for (const Layout layout : {Layout::row_major, Layout::col_major}) {
    make(20, layout);
    ASSERT_GE(operands_.views, kLaunches);
    SpotChecks spot = checks();
    ASSERT_TRUE(spot.can_be_watched());
    EXPECT_FALSE(checks(true).can_be_watched());
    for (int i = 0; i < 8; ++i) {
      spot.before_watched(kLaunches);
      const std::vector<const void*> places = spot.watched_places();
      const std::vector<ValueRange> ranges = spot.watched_ranges(kLaunches);
      ASSERT_FALSE(places.empty());
      ASSERT_EQ(ranges.size(), kLaunches * places.size()) << "rows are short: all are asked for";
      std::vector<int> found(ranges.size(), 0);
      for (int at = 0; at < kLaunches; ++at) {
        multiply(a_, spot.b(at), operands_.c);
        for (std::size_t range = 0; range < ranges.size(); ++range) {
          const float value = *static_cast<const float*>(places[range % places.size()]);
          if (ranges[range].low <= value && value <= ranges[range].high) ++found[range];
        }
      }
      EXPECT_EQ(std::ranges::count(found, 0), 0);
      EXPECT_LT(std::accumulate(found.begin(), found.end(), 0), 2 * std::ssize(found))
          << "hardly any by the C of another launch";
    }
    EXPECT_NE(std::string(spot.not_found(0).what()).find("not its product"), std::string::npos);
    spot.restore();
    EXPECT_FALSE(wrote_to_b(operands_, *device_));
  }
}

TEST_F(SpotChecked, OfLongRowsSomeLaunchesAreAskedFor) {
  constexpr std::int64_t kLong = 5'000;
  constexpr int kLaunches = 16;
  a_ = CsrMatrix{1, kLong, {0, kLong}, {}, std::vector<float>(kLong, 1)};
  for (std::int64_t k = 0; k < kLong; ++k) a_.col_idx.push_back(static_cast<std::int32_t>(k));
  make(4, Layout::row_major);
  SpotChecks spot = checks();
  spot.before_watched(kLaunches);
  const std::size_t places = spot.watched_places().size();
  ASSERT_GT(places, 0U);
  EXPECT_EQ(spot.watched_ranges(kLaunches).size(), 8 * places);
}

TEST_F(SpotChecked, ASmallProductThatIsLeftOutIsFoundOut) {
  for (std::size_t e = 0; e < a_.values.size(); e += 2) a_.values[e] *= 0x1p-12F;
  make(4, Layout::row_major);
  const ErrorBound wide = {.unit = 0x1p-10};
  CsrMatrix without_them = a_;
  for (std::size_t e = 0; e < a_.values.size(); e += 2) without_them.values[e] = 0;
  const auto launch_often = [&](const CsrMatrix& a) {
    SpotChecks spot(a_, {}, operands_, wide, Precision::fp16, false, *device_);
    for (int i = 0; i < 40; ++i) {
      spot.before(1);
      multiply(a, spot.b(0), operands_.c);
      spot.after();
    }
    spot.restore();
  };
  EXPECT_NO_THROW(launch_often(a_));
  EXPECT_THROW(launch_often(without_them), WrongLaunch);
}

TEST_F(SpotChecked, ErrorsThatTheBoundsOfElementsHideAreAddedUp) {
  constexpr std::int64_t kLong = 900;
  a_ = {8, kLong, {0}, {}, {}};
  for (std::int64_t row = 0; row < a_.rows; ++row) {
    for (std::int64_t col = 0; col < kLong; ++col) {
      a_.col_idx.push_back(static_cast<std::int32_t>(col));
      a_.values.push_back(1 + 0x1p-9F);
    }
    a_.row_ptr.push_back(static_cast<std::int64_t>(a_.values.size()));
  }
  make(4, Layout::row_major);
  CsrMatrix rounded = a_;
  std::ranges::fill(rounded.values, 1.0F);
  const auto launch_often = [&](const CsrMatrix& a, bool drawn) {
    const ErrorBound bound = {.unit = 0x1p-18, .to_nearest = true};
    SpotChecks spot(a_, {}, operands_, bound, Precision::fp16, false, *device_, {}, drawn);
    for (int i = 0; i < 40; ++i) {
      spot.before(1);
      multiply(a, spot.b(0), operands_.c);
      spot.after();
    }
    spot.restore();
  };
  EXPECT_NO_THROW(launch_often(a_, true));
  EXPECT_NO_THROW(launch_often(rounded, false)) << "each is within its bound";
  EXPECT_THROW(launch_often(rounded, true), WrongLaunch);
}

TEST_F(SpotChecked, AnAWithoutNonzerosHasNothingToLookAt) {
  a_ = {3, 3, {0, 0, 0, 0}, {}, {}};
  make(4, Layout::row_major);
  SpotChecks spot = checks();
  spot.before(1);
  EXPECT_NO_THROW(spot.after());
}

TEST(ChecksumOfA, TellsEveryArrayAndItsLastElement) {
  const auto device = open_host_device();
  CsrMatrix a{1, 9, {0, 3}, {0, 4, 7}, {1, 2, 3}};
  SparseOperand operand;
  operand.a = &a;
  const std::uint64_t was = checksum_of_a(operand, *device);
  EXPECT_EQ(checksum_of_a(operand, *device), was);
  a.values[2] = 4;
  EXPECT_NE(checksum_of_a(operand, *device), was);
  a.values[2] = 3;
  a.col_idx[2] = 8;
  EXPECT_NE(checksum_of_a(operand, *device), was);
}

}  // namespace
}  // namespace spmmbench
