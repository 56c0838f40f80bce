#pragma once
// `auto` on a device in host memory, beside kernels that take its candidates' names.

#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "../../kernels/auto/device_features.hpp"
#include "../../kernels/row_order/shared_orders.hpp"
#include "../host/cache_fixture.hpp"
#include "../host/fake_device.hpp"
#include "../host/matrices.hpp"
#include "gpu/rates.hpp"
#include "select/device_rates.hpp"
#include "spmmbench/registry.hpp"

namespace spmmbench {

inline std::optional<WcsrEstimate> known_windows;  // in an order that a planted kernel has made
inline std::optional<MatrixFeatures> glanced;      // what a glance finds

inline constexpr std::size_t kPlantedBytes = std::size_t{1} << 20;

// What the planted kernels do, by their label.
struct Script {
  std::map<std::string, double> us;  // of a launch
  double us_of_others = 10;
  std::set<std::string> out_of_memory;
  bool asks_for_order = false, orders_on_device = false;
  int made_orders = 0, thorough = 0;
  double us_now = 10;  // of the launch that is being timed
  std::set<const void*> prepared;
};
inline Script script;

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

inline const auto kPlantedOrder = text_option(
    "order", "natural", {"any", [](const std::string&) { return true; }, {"natural"}}, "");

class Planted : public Kernel {
 public:
  explicit Planted(const std::string& name) {
    info_.name = name;
    info_.precisions = {Precision::fp16, Precision::fp8_e4m3};
    info_.layouts = {Layout::row_major, Layout::col_major};
    info_.options = {kPlantedOrder};
    info_.reads_plain_csr = name == "csr_merge";
  }
  const KernelInfo& info() const override { return info_; }
  Support supports(const Problem&, const DeviceInfo&) const override {
    return Support::yes(kPlantedBytes);
  }
  std::unique_ptr<Prepared> prepare(const SparseOperand& a, const Options& options, Device&,
                                    StageTimer& stages) const override {
    const std::string label = Spec{info_.name, options}.to_string();
    if (a.thorough) ++script.thorough;
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
inline constexpr int kMany = 1 << 20;

inline void launch(Plan& plan, int times) {
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

}  // namespace spmmbench
