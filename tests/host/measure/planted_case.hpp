#pragma once
// A kernel on a FakeDevice for the tests of a case, which fails in one way.

#include <chrono>
#include <cmath>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "fake_device.hpp"
#include "spmmbench/error.hpp"
#include "spmmbench/kernel.hpp"
#include "spmmbench/picking.hpp"

namespace spmmbench {
namespace {

// What a planted kernel does wrong.
enum class Fault {
  none,
  off_by_a_little,
  adds_to_c,
  leaves_a_row,
  throws,
  loses_the_device,
  wrong_when_timed,
  leaves_a_column_when_timed,
  drops_a_nonzero,
  writes_before_c,
  leaves_an_empty_row,
  off_at_first,
  wrong_the_second_time,
  wrong_when_hot,
  wrong_when_cold,
  leaves_a_column_when_cold,
  fails_on_the_device,
  every_fourth_works,
  works_where_c_is_nan,
  wrong_where_a_cold_launch_finds_an_old_c,
  picks,
  picks_what_it_kept  // from the second preparation on
};

class PlantedKernel final : public Kernel {
 public:
  explicit PlantedKernel(Fault fault, std::chrono::milliseconds first_preparation = {},
                         std::chrono::milliseconds first_plan_of_7 = {})
      : fault_(fault), first_takes_(first_preparation), first_of_7_takes_(first_plan_of_7) {
    info_.name = "planted";
    info_.device = DeviceKind::host;
    info_.precisions = {Precision::fp32};
  }
  const KernelInfo& info() const override { return info_; }
  Support supports(const Problem& problem, const DeviceInfo&) const override {
    return problem.n > 100 ? Support::no("N is too large")
                           : Support::yes(problem.n == 99 ? SIZE_MAX : 0);
  }
  std::unique_ptr<Prepared> prepare(const SparseOperand& a, const Options&, Device& device,
                                    StageTimer& stages) const override {
    auto timed = stages.scope("build");
    ++prepared_;
    device_ = dynamic_cast<const FakeDevice*>(&device);
    if (prepared_ == 1) std::this_thread::sleep_for(first_takes_);
    if (fault_ == Fault::throws) throw Error("cannot build");
    if (fault_ == Fault::picks) return std::make_unique<PickingPrepared>(*this, *a.a);
    return std::make_unique<PlantedPrepared>(*this, *a.a);
  }
  int prepared() const { return prepared_; }         // calls of prepare
  const std::string& told() const { return told_; }  // what it was told to pick

 private:
  class PlantedPlan final : public Plan {
   public:
    PlantedPlan(Fault fault, const CsrMatrix& a, const FakeDevice& device, int preparations)
        : fault_(fault), a_(a), device_(device), preparations_(preparations) {}
    void launch(const DenseView& b, const DenseView& c, Stream) override {
      if (fault_ == Fault::loses_the_device) throw DeviceError("illegal address", true);
      if (fault_ == Fault::fails_on_the_device) throw DeviceError("too large", false);
      ++launches_;
      const bool timed = launches_ > 2, cold = timed && device_.cold.back();
      if (fault_ == Fault::every_fourth_works && timed && launches_ % 4 != 0) return;
      const float was = *static_cast<const float*>(c.data);
      if (fault_ == Fault::works_where_c_is_nan && !std::isnan(was)) return;
      for (std::int64_t i = 0; i < a_.rows; ++i) {
        if (fault_ == Fault::leaves_a_row && i == 1) continue;
        if (fault_ == Fault::leaves_an_empty_row && a_.row_length(i) == 0) continue;
        const bool stale = (fault_ == Fault::leaves_a_column_when_timed && timed) ||
                           (fault_ == Fault::leaves_a_column_when_cold && cold);
        for (std::int64_t j = 0; j < c.cols - (stale ? 1 : 0); ++j) {
          float sum = 0;
          const std::int64_t dropped = fault_ == Fault::drops_a_nonzero && i == 0 ? 1 : 0;
          for (std::int64_t e = a_.row_ptr[i] + dropped; e < a_.row_ptr[i + 1]; ++e)
            sum += a_.values[e] * static_cast<const float*>(b.data)[a_.col_idx[e] * b.ld + j];
          if (fault_ == Fault::off_by_a_little) sum *= 1 + 0x1p-18F;
          if (fault_ == Fault::off_at_first && launches_ == 1 && i == 0) sum *= 1 + 0x1p-23F;
          if ((fault_ == Fault::wrong_when_timed && timed) ||
              (fault_ == Fault::wrong_when_hot && timed && !cold) ||
              (fault_ == Fault::wrong_when_cold && cold) ||
              (fault_ == Fault::wrong_where_a_cold_launch_finds_an_old_c && cold &&
               std::abs(was) < 1e30F) ||
              (fault_ == Fault::wrong_the_second_time && launches_ == 2))
            sum += 1;
          float& out = static_cast<float*>(c.data)[i * c.ld + j];
          out = fault_ == Fault::adds_to_c ? out + sum : sum;
        }
      }
      if (fault_ == Fault::writes_before_c) static_cast<float*>(c.data)[-1] = 1;
    }
    PlanReport report() const override {
      PlanReport report;
      report.metrics = {{"planted", 1}};
      const bool keeps = fault_ == Fault::picks_what_it_kept;
      if (fault_ == Fault::picks || keeps)
        report.pick = Pick{.kernel = "cpu_csr",
                           .measured_us = {{"cpu_csr", 1}},
                           .remembered = keeps && preparations_ > 1,
                           .why = {}};
      return report;
    }

   private:
    Fault fault_;
    const CsrMatrix& a_;
    const FakeDevice& device_;
    int preparations_;
    int launches_ = 0;
  };

  class PlantedPrepared : public Prepared {
   public:
    PlantedPrepared(const PlantedKernel& kernel, const CsrMatrix& a) : kernel_(kernel), a_(a) {}
    std::unique_ptr<Plan> bind(const Shape& shape, StageTimer& stages) override {
      auto timed = stages.scope("tune");
      if (shape.n == 7) std::this_thread::sleep_for(std::exchange(kernel_.first_of_7_takes_, {}));
      return std::make_unique<PlantedPlan>(kernel_.fault_, a_, *kernel_.device_, kernel_.prepared_);
    }

   protected:
    const PlantedKernel& kernel_;
    const CsrMatrix& a_;
  };

  class PickingPrepared final : public PlantedPrepared, public BindsPick {
   public:
    using PlantedPrepared::PlantedPrepared;
    std::unique_ptr<Plan> bind_pick(const std::string& kernel, const Shape& shape,
                                    StageTimer& stages) override {
      kernel_.told_ = kernel;
      return bind(shape, stages);
    }
  };

  Fault fault_;
  std::chrono::milliseconds first_takes_;
  mutable std::chrono::milliseconds first_of_7_takes_;
  KernelInfo info_;
  mutable int prepared_ = 0;
  mutable std::string told_;
  mutable const FakeDevice* device_ = nullptr;
};

}  // namespace
}  // namespace spmmbench
