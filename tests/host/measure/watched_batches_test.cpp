// What is concluded from the values of C that were found while a batch ran.

#include "measure/watched_batches.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include "measure/operands.hpp"
#include "multiply.hpp"

namespace spmmbench {
namespace {

constexpr int kLaunchesOfBatch = 12;

// Looks at C after each launch, where it does not miss it.
class FakeWatcher final : public Watcher {
 public:
  bool begin(ElementType, std::span<const void* const> places) override {
    places_.assign(places.begin(), places.end());
    values_.assign(places.size(), {});
    ++begun;
    return starts;
  }
  void look() {
    for (std::size_t i = 0; i < places_.size(); ++i)
      if (!misses(draw_)) values_[i].insert(*static_cast<const float*>(places_[i]));
  }
  void end() override { ended = true; }
  std::vector<bool> found(std::span<const ValueRange> ranges) override {
    if (!looks_until_the_end || unfinished-- > 0) return {};
    std::vector<bool> answers;
    for (std::size_t i = 0; i < ranges.size(); ++i)
      answers.push_back(std::ranges::any_of(values_[i % places_.size()], [&](float value) {
        return ranges[i].low <= value && value <= ranges[i].high;
      }));
    return answers;
  }

  bool starts = true, looks_until_the_end = true, ended = false;
  int begun = 0;
  int unfinished = 0;  // so many times it does not look until the end
  std::bernoulli_distribution misses{0};

 private:
  std::mt19937 draw_{1};
  std::vector<const void*> places_;
  std::vector<std::set<float>> values_;
};

class WatchedBatch : public ::testing::Test {
 protected:
  static CsrMatrix half_of_identity() {
    CsrMatrix a{40, 40, {0}, {}, {}};
    for (std::int64_t row = 0; row < a.rows; ++row) {
      a.col_idx.push_back(static_cast<std::int32_t>(row));
      a.values.push_back(0.5F);
      a.row_ptr.push_back(row + 1);
    }
    return a;
  }

  // Launches of which `works` says whether they do their work.
  template <class Works>
  bool launch(const Works& works) {
    const Batch batch = {kLaunchesOfBatch, [&](int launches, const Batch::Meanwhile& meanwhile) {
                           for (int at = 0; at < launches; ++at) {
                             if (works(at)) multiply(a_, checks_.b(at), operands_.c);
                             watcher_.look();
                           }
                           std::this_thread::sleep_for(held_up_);
                           meanwhile();
                           return 1.0;
                         }};
    return batches_.launch(batch);
  }

  std::chrono::milliseconds held_up_{0};  // in each batch
  std::unique_ptr<Device> device_ = open_host_device();
  CsrMatrix a_ = half_of_identity();
  Operands operands_ = make_operands(a_, 8, Precision::fp16, ElementType::f32, Layout::row_major,
                                     nullptr, 1, *device_);
  SpotChecks checks_{a_, {}, operands_, {.unit = 0x1p-24}, Precision::fp16, false, *device_};
  std::unique_ptr<FakeWatcher> given_ = std::make_unique<FakeWatcher>();
  FakeWatcher& watcher_ = *given_;  // which batches_ has once it has launched one
  WatchedBatches batches_ = {checks_, ElementType::f32, [this] { return std::move(given_); }};
};

TEST_F(WatchedBatch, IsLaunchedOnceWhereEachLaunchIsFound) {
  EXPECT_TRUE(launch([](int) { return true; }));
  EXPECT_EQ(watcher_.begun, 1);
  EXPECT_TRUE(watcher_.ended);
}

TEST_F(WatchedBatch, IsLaunchedAgainWhereSomeAreMissed) {
  watcher_.misses = std::bernoulli_distribution(0.1);
  EXPECT_TRUE(launch([](int) { return true; }));
  EXPECT_GT(watcher_.begun, 1);
}

TEST_F(WatchedBatch, IsWrongWhereALaunchLeavesItsWorkToTheNext) {
  EXPECT_THROW(launch([](int at) { return at != 5; }), WrongLaunch);
}

TEST_F(WatchedBatch, IsWrongWhereOnlyTheLastOneWorks) {
  EXPECT_THROW(launch([](int at) { return at + 1 == kLaunchesOfBatch; }), WrongLaunch);
  EXPECT_EQ(watcher_.begun, 3) << "so many are missing each time that three times suffice";
}

TEST_F(WatchedBatch, IsWrongWhereLaunchesWorkByChance) {
  std::mt19937 draw(7);
  EXPECT_THROW(launch([&](int at) { return at + 1 == kLaunchesOfBatch || draw() % 2 == 0; }),
               WrongLaunch);
}

TEST_F(WatchedBatch, ProvesNothingWhereNobodyCanLook) {
  watcher_.looks_until_the_end = false;
  EXPECT_FALSE(launch([](int) { return true; }));
  EXPECT_EQ(watcher_.begun, 3);
}

TEST_F(WatchedBatch, IsWatchedAgainWhereTheHostWasHeldUp) {
  held_up_ = std::chrono::milliseconds{12};
  watcher_.unfinished = 6;
  watcher_.misses = std::bernoulli_distribution(0.1);
  EXPECT_TRUE(launch([](int) { return true; }));
  EXPECT_GT(watcher_.begun, 6);
}

TEST_F(WatchedBatch, IsWrongAlsoWhereTheHostWasHeldUp) {
  held_up_ = std::chrono::milliseconds{12};
  watcher_.unfinished = 6;
  EXPECT_THROW(launch([](int at) { return at + 1 == kLaunchesOfBatch; }), WrongLaunch);
  EXPECT_EQ(watcher_.begun, 6 + 3);
}

TEST_F(WatchedBatch, ProvesNothingWhereEachLaunchWaitsForTheWatcher) {
  held_up_ = std::chrono::milliseconds{12};
  watcher_.looks_until_the_end = false;
  EXPECT_FALSE(launch([](int) { return true; }));
  EXPECT_EQ(watcher_.begun, 16);
}

TEST_F(WatchedBatch, ProvesNothingWhereTheWatcherDoesNotBegin) {
  watcher_.starts = false;
  EXPECT_FALSE(launch([](int) { return true; }));
}

TEST_F(WatchedBatch, ProvesNothingWithoutAWatcher) {
  given_ = nullptr;
  WatchedBatches batches(checks_, ElementType::f32, [] { return nullptr; });
  EXPECT_FALSE(batches.launch({kLaunchesOfBatch, {}}));
}

}  // namespace
}  // namespace spmmbench
