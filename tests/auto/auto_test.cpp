// `auto` on a device in host memory, beside kernels that take its candidates' names.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "../../kernels/auto/device_features.hpp"
#include "../../kernels/row_order/shared_orders.hpp"
#include "../host/cache_fixture.hpp"
#include "../host/fake_device.hpp"
#include "../host/matrices.hpp"
#include "gpu/backend.hpp"
#include "gpu/rates.hpp"
#include "gpu/scaled_launches.hpp"
#include "gpu/vendor_libraries.hpp"
#include "select/device_rates.hpp"
#include "select/rank.hpp"
#include "spmmbench/registry.hpp"

namespace spmmbench {

std::optional<WcsrEstimate> known_windows;  // in an order that a planted kernel has made
std::optional<MatrixFeatures> glanced;      // what a glance finds

#ifdef SPMMBENCH_TEST_RATES  // defined by files for CUDA, which this program does without
double measure_gather(Device&) { throw DeviceError("no gather rate", false); }
double measure_dense(Device&) { throw DeviceError("no dense rate", false); }
void name_libraries(DeviceInfo&) {}
std::shared_ptr<Replay> cuda_record(const std::function<void()>&, int, GraphKind, Device&) {
  return nullptr;
}
double cuda_time_beside_us(const std::function<void()>&, int, const std::function<void()>&,
                           Device&) {
  throw DeviceError("no GPU", false);
}
MatrixFeatures features_on_device(const DeviceCsr&, Device&) { throw DeviceError("no GPU", false); }
MatrixFeatures features_at_a_glance(const DeviceCsr&, Device&) { return glanced.value(); }
std::optional<WcsrEstimate> windows_in_known_order(const SparseOperand&, Device&, StageTimer&) {
  return known_windows;
}
void cuda_scale_add(const DenseView&, const DenseView&, const Scalars&, Stream) {}
#endif

namespace {

constexpr std::size_t kKernelBytes = std::size_t{1} << 20;

// What the planted kernels do, by their label.
struct Script {
  std::map<std::string, double> us;  // of a launch
  double us_of_others = 10;
  std::set<std::string> out_of_memory;
  bool asks_for_order = false, orders_on_device = false;
  int made_orders = 0, given_on_host = 0;
  double us_now = 10;  // of the launch that is being timed
  std::set<const void*> prepared;
};
Script script;

class TimedDevice : public FakeDevice {
 public:
  std::size_t largest = std::size_t{1} << 40;  // bytes of an allocation
  bool capturing = false;
  std::set<int> batches;  // launches of those that were timed

  bool is_capturing(Stream) const override { return capturing; }

  Buffer allocate(std::size_t bytes) override {
    if (bytes > largest) throw OutOfMemory("planted");
    return FakeDevice::allocate(bytes);
  }
  void fill_uniform(const DenseView&, std::uint64_t, Precision) override {}
  double time_us(const std::function<void()>& launch, int count) override {
    batches.insert(count);
    double total = 0;
    for (int i = 0; i < count; ++i) {
      launch();
      total += script.us_now;
    }
    return total;
  }
};

class PlantedPrepared : public Prepared {
 public:
  explicit PlantedPrepared(std::string label) : label_(std::move(label)) {
    script.prepared.insert(this);
  }
  ~PlantedPrepared() override { script.prepared.erase(this); }
  std::unique_ptr<Plan> bind(const Shape&, StageTimer&) override {
    return std::make_unique<PlantedPlan>(*this);
  }

 private:
  struct PlantedPlan : Plan {
    explicit PlantedPlan(PlantedPrepared& own) : owner(&own), label(own.label_) {}
    void launch(const DenseView&, const DenseView&, Stream) override {
      EXPECT_TRUE(script.prepared.contains(owner)) << label << " was freed";
      const auto found = script.us.find(label);
      script.us_now = found == script.us.end() ? script.us_of_others : found->second;
    }
    PlanReport report() const override { return {}; }
    const void* owner;
    std::string label;
  };
  std::string label_;
};

const auto kOrder = text_option("order", "natural",
                                {"any", [](const std::string&) { return true; }, {"natural"}}, "");

class Planted : public Kernel {
 public:
  explicit Planted(const std::string& name) {
    info_.name = name;
    info_.precisions = {Precision::fp16, Precision::fp8_e4m3};
    info_.layouts = {Layout::row_major, Layout::col_major};
    info_.options = {kOrder};
    info_.reads_plain_csr = name == "csr_merge";
  }
  const KernelInfo& info() const override { return info_; }
  Support supports(const Problem&, const DeviceInfo&) const override {
    return Support::yes(kKernelBytes);
  }
  std::unique_ptr<Prepared> prepare(const SparseOperand& a, const Options& options, Device&,
                                    StageTimer& stages) const override {
    const std::string label = Spec{info_.name, options}.to_string();
    if (!a.a.is_lazy()) ++script.given_on_host;
    if (script.asks_for_order) a.orders->get("rcm", stages);
    if (script.orders_on_device)
      dynamic_cast<SharedOrders&>(*a.orders).on_device().get("match", [](StageTimer&) {
        ++script.made_orders;
        return Buffer();
      });
    const auto timed = stages.scope("build");
    if (script.out_of_memory.contains(label)) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      throw OutOfMemory("planted");
    }
    return std::make_unique<PlantedPrepared>(label);
  }

 private:
  KernelInfo info_;
};

// An order that others have computed already.
class KnownOrders : public RowOrders {
 public:
  static constexpr double kMs = 1000;
  const Permutation& get(const std::string& name, StageTimer& stages) override {
    stages.add_once(name, "reorder", kMs);
    return natural_;
  }

 private:
  Permutation natural_;
};

// Enough for all that pays at any number of launches, on a host that is slow.
constexpr int kMany = 1 << 20;

void launch(Plan& plan, int times) {
  for (int i = 0; i < times; ++i) plan.launch({}, {}, {});
}

class AutoKernel : public test::CacheTest {
 protected:
  static void SetUpTestSuite() {
    for (const char* name :
         {"csr_merge", "csr_row_split", "async_wcsr", "jagged_slices", "rsh", "cusparse_csr_alg2",
          "cusparse_csr_default", "gap_slices", "dense_cluster"})
      if (Registry<Kernel>::instance().find(name) == nullptr)
        Registry<Kernel>::instance().add(std::make_unique<Planted>(name));
  }
  void SetUp() override {
    script = {};
    known_windows = {};
    glanced = {};
    DeviceInfo& info = device_.device_info;
    info.kind = DeviceKind::cuda;
    info.name = "planted";
    info.compute_capability = 90;
    info.sm_count = 132;
    info.l2_bytes = std::size_t{50} << 20;
    set_rates(info, {4e12, 9e12, 7e14});
    operand_.a = &matrix_;
    operand_.precision = Precision::fp16;
    operand_.orders = &orders_;
  }

  std::unique_ptr<Prepared> prepare(const std::string& options) {
    StageTimer stages;
    const Spec spec = Spec::parse(options.empty() ? "auto" : "auto?" + options);
    return kernel_.prepare(operand_, spec.options, device_, stages);
  }
  // A copy of A that took so long and that nobody reads.
  DeviceCsr copy_that_took(double ms) const {
    return {.rows = matrix_.rows, .cols = matrix_.cols, .nnz = matrix_.nnz(), .upload_ms = ms};
  }
  static Pick pick(const Plan& plan) { return plan.report().pick.value(); }
  static std::vector<std::string> tried(const Plan& plan) {
    std::vector<std::string> names;
    for (const auto& [kernel, us] : pick(plan).measured_us) names.push_back(kernel);
    return names;
  }

  const Kernel& kernel_ = Registry<Kernel>::instance().at("auto");
  CsrMatrix matrix_ = testing::shuffled_grid(128);
  KnownOrders orders_;
  TimedDevice device_;
  SparseOperand operand_;
  StageTimer stages_;
};

TEST_F(AutoKernel, KeepsTheFastestTrialAloneAndCountsAll) {
  const auto first = prepare("tune=3")->bind({.n = 128}, stages_);
  const std::vector<std::string> names = tried(*first);
  ASSERT_EQ(names.size(), 3U);
  script.us = {{names[0], 30}, {names[1], 20}, {names[2], 10}};
  StageTimer stages;
  const auto prepared = prepare("tune=3");
  const auto plan = prepared->bind({.n = 128}, stages);
  EXPECT_EQ(pick(*plan).kernel, names[2]);
  EXPECT_EQ(measured_text(pick(*plan)),
            fmt::format("{} 30.0 us, {} 20.0 us, {} 10.0 us", names[0], names[1], names[2]));
  EXPECT_GT(stages.stages_ms().at("tune"), 0);
  plan->launch({}, {}, {});
}

TEST_F(AutoKernel, EachTrialBeginsWithAFlushedCache) {
  const auto plan = prepare("tune=3")->bind({.n = 128}, stages_);
  EXPECT_EQ(tried(*plan).size(), 3U);
  EXPECT_EQ(device_.flushes, 3U);
}

// What an event takes is then the same share of each.
TEST_F(AutoKernel, AllTrialsAreTimedInBatchesOfAsManyLaunchesHoweverLongTheFirstTakes) {
  const std::string first = pick(*prepare("tune=1")->bind({.n = 128}, stages_)).kernel;
  script.us = {{first, 15}};
  device_.batches.clear();
  const auto plan = prepare("tune=3")->bind({.n = 128}, stages_);
  EXPECT_EQ(tried(*plan).size(), 3U);
  EXPECT_EQ(device_.batches.size(), 1U);
  EXPECT_GT(*device_.batches.begin(), 2);
}

TEST_F(AutoKernel, WhatOneShapeRunsStaysWhileAnotherIsTuned) {
  const auto prepared = prepare("tune=3&calls=5000");
  std::vector<std::unique_ptr<Plan>> plans;
  for (const std::int64_t n : {1, 8, 64, 512, 4096}) {
    plans.push_back(prepared->bind({.n = n}, stages_));
    for (const auto& plan : plans) plan->launch({}, {}, {});
  }
  EXPECT_TRUE(std::any_of(plans.begin(), plans.end(),
                          [](const auto& plan) { return pick(*plan).measured(); }));
  EXPECT_FALSE(pick(*plans[0]).measured()) << "nothing pays for a vector";
}

TEST_F(AutoKernel, ARowOrderThatOthersHaveMadeCountsOnceForAllTrials) {
  script.asks_for_order = true;
  prepare("tune=3")->bind({.n = 128}, stages_);
  EXPECT_GE(stages_.stages_ms().at("tune"), KnownOrders::kMs);
  EXPECT_LT(stages_.stages_ms().at("tune"), 2 * KnownOrders::kMs);
}

TEST_F(AutoKernel, ARowOrderOnTheDeviceIsMadeOnceForAllTrialsAndShapes) {
  script.orders_on_device = true;
  const auto prepared = prepare("tune=3");
  for (const std::int64_t n : {64, 128})
    EXPECT_EQ(tried(*prepared->bind({.n = n}, stages_)).size(), 3U);
  EXPECT_EQ(script.made_orders, 1);
}

TEST_F(AutoKernel, ACopyOfAThatOthersHaveMadeIsNoPartOfTheTrials) {
  constexpr double kMs = 1000;
  const DeviceCsr there = copy_that_took(kMs);
  operand_.on_device = &there;
  prepare("tune=3")->bind({.n = 128}, stages_);
  EXPECT_EQ(stages_.stages_ms().at("upload"), kMs);
  EXPECT_LT(stages_.stages_ms().at("tune"), kMs);
}

TEST_F(AutoKernel, ATrialThatFailsIsLeftOutAndItsTimeCounts) {
  const std::vector<std::string> names = tried(*prepare("tune=3")->bind({.n = 128}, stages_));
  script.out_of_memory = {names[0]};
  StageTimer stages;
  const auto prepared = prepare("tune=3");
  EXPECT_NE(pick(*prepared->bind({.n = 128}, stages)).kernel, names[0]);
  EXPECT_GE(stages.stages_ms().at("tune"), 20);
}

TEST_F(AutoKernel, WithoutMemoryForTheTrialsTheBestPredictionIsTaken) {
  device_.largest = 1000;
  const auto prepared = prepare("tune=3");
  const auto plan = prepared->bind({.n = 128}, stages_);
  EXPECT_FALSE(pick(*plan).measured());
  plan->launch({}, {}, {});
}

TEST_F(AutoKernel, ARememberedWinnerThatNoLongerFitsIsMeasuredAgain) {
  set_cache_folder(folder());
  const std::string winner = pick(*prepare("tune=3")->bind({.n = 128}, stages_)).kernel;
  const auto again = prepare("tune=3")->bind({.n = 128}, stages_);
  EXPECT_TRUE(pick(*again).remembered);
  script.out_of_memory = {winner};
  const auto plan = prepare("tune=3")->bind({.n = 128}, stages_);
  EXPECT_NE(pick(*plan).kernel, winner);
}

TEST_F(AutoKernel, AsksForTheMemoryOfTheBestPredictionAlone) {
  const Options options = Spec::parse("auto?tune=3").options;
  const Problem problem{operand_, Shape{.n = 128}, options};
  EXPECT_EQ(check_support(kernel_, problem, device_.info()).device_bytes, kKernelBytes);
}

TEST_F(AutoKernel, MeasuresClosePredictionsByDefault) {
  const auto measured = [&](const std::string& options) {
    return pick(*prepare(options)->bind({.n = 128}, stages_)).measured();
  };
  EXPECT_TRUE(measured("calls=0"));
  EXPECT_FALSE(measured("tune=1"));
  EXPECT_FALSE(measured("calls=100")) << "no trial pays";
}

TEST_F(AutoKernel, FewCallsRunWhatTheSizesOfATellWithoutALookAtIt) {
  const auto chosen = [&](const std::string& options) {
    const auto plan = prepare(options)->bind({.n = 8}, stages_);
    return std::pair{pick(*plan).kernel, plan->report().metrics.contains("feature_rows")};
  };
  EXPECT_EQ(chosen("calls=1"), std::pair(std::string("csr_merge"), false));
  EXPECT_EQ(chosen("calls=30"), std::pair(std::string("jagged_slices"), false));
  EXPECT_TRUE(chosen("calls=1&tune=2").second) << "it is told to measure";
  EXPECT_TRUE(chosen("calls=100000").second);
}

TEST_F(AutoKernel, WhatTheSizesOfATellIsPreparedBeforeALookAtIt) {
  const DeviceCsr there = copy_that_took(0);
  operand_.on_device = &there;
  const auto prepared = prepare("");
  const auto plan = prepared->bind({.n = 8}, stages_);
  launch(*plan, 4);
  EXPECT_EQ(pick(*plan).kernel, "csr_merge");
  launch(*plan, 9);
  EXPECT_EQ(pick(*plan).kernel, "jagged_slices");
  EXPECT_FALSE(plan->report().metrics.contains("feature_rows"));
  launch(*plan, kMany);
  EXPECT_TRUE(plan->report().metrics.contains("feature_rows"));
}

TEST_F(AutoKernel, WhatTheCopyOfATookCountsAsProducts) {
  for (const auto& [ms, kernel] : {std::pair{0.0, "csr_merge"}, {0.5, "jagged_slices"}}) {
    const DeviceCsr there = copy_that_took(ms);
    operand_.on_device = &there;
    const auto prepared = prepare("");
    const auto plan = prepared->bind({.n = 8}, stages_);
    launch(*plan, 2);
    EXPECT_EQ(pick(*plan).kernel, kernel) << ms << " ms";
  }
}

TEST_F(AutoKernel, WhereTheBestTakesFarLongerThanPredictedMoreAreMeasured) {
  const std::string best = pick(*prepare("tune=1")->bind({.n = 128}, stages_)).kernel;
  script.us = {{best, 1e-3}};
  const std::size_t close = tried(*prepare("tune=8")->bind({.n = 128}, stages_)).size();
  script.us = {};
  script.us_of_others = 1e6;
  EXPECT_GT(tried(*prepare("tune=8")->bind({.n = 128}, stages_)).size(), close);
  EXPECT_EQ(tried(*prepare("tune=2")->bind({.n = 128}, stages_)).size(), 2U);
}

TEST_F(AutoKernel, WhereNoOtherPredictionComesCloseNothingIsMeasured) {
  matrix_ = testing::drawn(512, 512, 50);
  const auto pick_now = [&] { return pick(*prepare("tune=8")->bind({.n = 128}, stages_)); };
  EXPECT_EQ(pick_now().kernel, "dense_cluster");
  EXPECT_FALSE(pick_now().measured());
  script.out_of_memory = {"dense_cluster"};
  EXPECT_TRUE(pick_now().measured()) << "the best prediction cannot be prepared";
}

TEST_F(AutoKernel, AFullMatrixIsMultipliedAsADenseOneInFp8Too) {
  matrix_ = testing::drawn(512, 512, 50);
  operand_.precision = Precision::fp8_e4m3;
  for (const Layout layout : {Layout::row_major, Layout::col_major})
    EXPECT_EQ(pick(*prepare("tune=1")->bind({.n = 128, .layout = layout}, stages_)).kernel,
              "dense_cluster");
}

// Rows of 12 columns at random, which hardly overlap.
TEST_F(AutoKernel, AnOrderThatIsNotExpectedToGainIsMeasuredButNotTakenUnmeasured) {
  std::mt19937 engine(1);
  std::vector<std::vector<std::int32_t>> rows(20'000);
  for (auto& row : rows) {
    std::set<std::int32_t> columns;
    while (columns.size() < 12) columns.insert(static_cast<std::int32_t>(engine() % rows.size()));
    row.assign(columns.begin(), columns.end());
  }
  matrix_ = testing::from_rows(static_cast<std::int64_t>(rows.size()), rows);
  const std::string search = "async_wcsr?order=search";
  script.us = {{search, 1}};
  const auto measured = prepare("tune=8")->bind({.n = 64}, stages_);
  ASSERT_LT(measured->report().metrics.at("feature_row_overlap"), 0.02) << "it was not asked";
  EXPECT_NE(tried(*measured).front(), search);
  EXPECT_EQ(pick(*measured).kernel, search);
  const auto unmeasured = prepare("tune=1")->bind({.n = 64}, stages_);
  EXPECT_NE(pick(*unmeasured).kernel, search);
}

#ifdef SPMMBENCH_TEST_RATES
// An A that lies on the device alone.
struct Unread : LazyCsr {
  const CsrMatrix& get() override { throw Error("A is read on the host"); }
};

TEST_F(AutoKernel, AGlanceAtAPaysSoonerWhereLongRowsMayShareColumns) {
  Unread unread;
  DeviceCsr sizes{};
  operand_.a = HostCsr(&unread);
  operand_.on_device = &sizes;
  const auto glances = [&](std::int64_t of_row, std::int64_t n, const std::string& calls) {
    constexpr std::int64_t kNonzeros = 1'600'000;
    sizes.rows = sizes.cols = kNonzeros / of_row;
    sizes.nnz = sizes.rows * of_row;
    glanced = features_of_sizes(sizes.rows, sizes.cols, sizes.nnz);
    const auto prepared = prepare("calls=" + calls);
    return prepared->bind({.n = n}, stages_)->report().metrics.contains("feature_gathered_8");
  };
  EXPECT_TRUE(glances(40, 32, "30"));
  EXPECT_FALSE(glances(20, 32, "30")) << "its rows are short";
  EXPECT_FALSE(glances(40, 8, "30")) << "rows of B are narrow";
  EXPECT_FALSE(glances(40, 32, "3")) << "so few calls take less than a glance is worth";
  EXPECT_TRUE(glances(20, 32, "60"));
}

TEST_F(AutoKernel, WhatWindowsGatherInAKnownOrderTellsWhetherItIsTried) {
  const std::string search = "async_wcsr?order=search";
  const auto tries_it = [&](const WcsrEstimate& windows) {
    known_windows = windows;
    const auto names = tried(*prepare("tune=8")->bind({.n = 8}, stages_));
    EXPECT_GT(names.size(), 1U);
    return std::ranges::find(names, search) != names.end();
  };
  EXPECT_TRUE(tries_it({{0.01, 0.01, 0.01}, {0.01, 0.01, 0.01}}));
  EXPECT_FALSE(tries_it({{50, 50, 50}, {50, 50, 50}}));
}
#endif

TEST_F(AutoKernel, TheChoiceForAWidthDoesNotDependOnTheWidthsBefore) {
  const auto together = prepare("tune=1");
  for (const std::int64_t n : {1, 8, 16, 32, 64, 128, 256, 512}) {
    const auto alone = prepare("tune=1");
    EXPECT_EQ(pick(*together->bind({.n = n}, stages_)).kernel,
              pick(*alone->bind({.n = n}, stages_)).kernel)
        << n;
  }
}

TEST_F(AutoKernel, WithoutCallsAndTuneItStartsWithPlainCsrAndPreparesNothingElse) {
  const auto prepared = prepare("");
  const auto plan = prepared->bind({.n = 128}, stages_);
  launch(*plan, 1);
  EXPECT_EQ(pick(*plan).kernel, "csr_merge");
  EXPECT_EQ(pick(*plan).first, "csr_merge");
  EXPECT_TRUE(pick(*plan).why.empty()) << "nothing was compared";
  EXPECT_EQ(script.prepared.size(), 1U);
  EXPECT_FALSE(stages_.stages_ms().contains("choose"));
}

TEST_F(AutoKernel, WhileItIsLaunchedItComesToTheFastest) {
  script.us = {{"csr_merge", 50}, {"csr_row_split", 5}};
  const auto prepared = prepare("");
  const auto plan = prepared->bind({.n = 128}, stages_);
  launch(*plan, kMany);
  EXPECT_EQ(pick(*plan).kernel, "csr_row_split");
  EXPECT_TRUE(pick(*plan).measured());
  EXPECT_EQ(script.prepared.size(), 1U) << "the others are freed";
  EXPECT_FALSE(plan->prepares_next());
}

TEST_F(AutoKernel, BetweenGrowingNumbersOfLaunchesNothingIsPrepared) {
  const DeviceCsr there = copy_that_took(0);
  operand_.on_device = &there;
  const auto prepared = prepare("");
  const auto plan = prepared->bind({.n = 128}, stages_);
  std::vector<int> due;
  for (int i = 0; i < 40; ++i) {
    if (plan->prepares_next()) due.push_back(i);
    launch(*plan, 1);
  }
  EXPECT_EQ(due, (std::vector<int>{1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 15, 18, 22, 27, 33}));
}

TEST_F(AutoKernel, AnAInBothMemoriesIsReadOnTheHostOnceProductsPayForThat) {
  constexpr std::int64_t kWide = 1024;  // columns of a B that the cache does not hold
  const DeviceCsr there = copy_that_took(0);
  operand_.on_device = &there;
  const auto prepared = prepare("");
  const auto plan = prepared->bind({.n = kWide}, stages_);
  script.given_on_host = 0;
  launch(*plan, 100);
  EXPECT_GT(script.prepared.size(), 0U);
  EXPECT_EQ(script.given_on_host, 0);
  launch(*plan, kMany);
  EXPECT_GT(script.given_on_host, 0);
  EXPECT_FALSE(plan->prepares_next()) << "it is settled";
  for (const auto& [calls, reads] : {std::pair{"calls=100", false}, {"calls=100000000", true}}) {
    script.given_on_host = 0;
    prepare(calls)->bind({.n = kWide}, stages_);
    EXPECT_EQ(script.given_on_host > 0, reads) << calls;
  }
}

TEST_F(AutoKernel, ACaptureChangesNothingAndWhatItLaunchedStays) {
  const auto prepared = prepare("");
  const auto plan = prepared->bind({.n = 128}, stages_);
  launch(*plan, 1);
  device_.capturing = true;
  launch(*plan, kMany);
  EXPECT_EQ(pick(*plan).kernel, "csr_merge");
  device_.capturing = false;
  script.us = {{"csr_merge", 50}, {"csr_row_split", 5}};
  launch(*plan, kMany);
  EXPECT_EQ(pick(*plan).kernel, "csr_row_split");
  EXPECT_EQ(script.prepared.size(), 2U) << "the graph may launch csr_merge";
}

TEST_F(AutoKernel, WithoutMemoryForMoreItStaysWithThePlanThatItHas) {
  script.us = {{"csr_merge", 50}};
  const auto prepared = prepare("");
  const auto plan = prepared->bind({.n = 128}, stages_);
  for (const char* name :
       {"csr_row_split", "async_wcsr", "async_wcsr?order=search", "jagged_slices", "rsh",
        "cusparse_csr_alg2", "cusparse_csr_default", "gap_slices", "dense_cluster"})
    script.out_of_memory.insert(name);
  device_.largest = 1000;
  launch(*plan, kMany);
  EXPECT_EQ(pick(*plan).kernel, "csr_merge");
}

TEST_F(AutoKernel, SettledItMeasuresAtOnceAndLaunchesPrepareNothing) {
  script.us = {{"csr_merge", 50}, {"csr_row_split", 5}};
  const auto prepared = prepare("");
  const auto plan = prepared->bind({.n = 128}, stages_);
  plan->settle(stages_);
  EXPECT_EQ(pick(*plan).kernel, "csr_row_split");
  EXPECT_EQ(pick(*plan).first, "csr_merge");
  EXPECT_GT(stages_.stages_ms().at("tune"), 0);
  const std::size_t flushes = device_.flushes;
  launch(*plan, kMany);
  EXPECT_EQ(device_.flushes, flushes);
  EXPECT_TRUE(pick(*prepare("tune=8")->bind({.n = 128}, stages_)).first.empty());
}

}  // namespace
}  // namespace spmmbench
