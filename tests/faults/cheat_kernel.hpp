#pragma once
// A kernel on the host whose plans are of one class, for kernels that fit themselves to the test.

#include <chrono>
#include <memory>
#include <utility>
#include <vector>

#include "cheat_product.hpp"
#include "cheats.hpp"
#include "planted.hpp"
#include "spmmbench/registry.hpp"

namespace spmmbench {

using Time = std::chrono::steady_clock;

class Cheat : public Plan {
 public:
  static constexpr bool kInspectsB = false, kTakesValues = false;  // as KernelInfo has them
  explicit Cheat(const CsrMatrix& a) : a_(a) {}
  PlanReport report() const override { return {}; }

 protected:
  const CsrMatrix& a_;
};

// Multiplies by other values of A.
class OtherValues : public Cheat {
 public:
  OtherValues(const CsrMatrix& a, std::vector<float> values) : Cheat(a), other_(a) {
    other_.values = std::move(values);
  }
  void launch(const DenseView& b, const DenseView& c, Stream) override { multiply({other_, b, c}); }

 protected:
  CsrMatrix other_;
};

// A plan whose kernel works in other calls too.
template <class Plan>
class PlanAndMore final : public Plan {
 public:
  PlanAndMore(const CsrMatrix& a, const WorkElsewhere& elsewhere) : Plan(a), elsewhere_(elsewhere) {
    elsewhere.bind(a);
  }
  ~PlanAndMore() override { elsewhere_.destroy(); }
  PlanAndMore(const PlanAndMore&) = delete;
  PlanReport report() const override {
    elsewhere_.report();
    return Plan::report();
  }

 private:
  const WorkElsewhere& elsewhere_;
};

template <class Plan>
class PreparedCheat final : public Prepared {
 public:
  PreparedCheat(const CsrMatrix& a, const WorkElsewhere& elsewhere)
      : a_(a), elsewhere_(elsewhere) {}
  std::unique_ptr<spmmbench::Plan> bind(const Shape&, StageTimer& stages) override {
    elsewhere_.bind(stages);
    return std::make_unique<PlanAndMore<Plan>>(a_, elsewhere_);
  }

 private:
  const CsrMatrix& a_;
  const WorkElsewhere& elsewhere_;
};

template <class Plan>
class CheatKernel final : public Kernel {
 public:
  explicit CheatKernel(const char* name, Elsewhere works = Elsewhere::nowhere,
                       Accumulation sums = Accumulation::fp32_fma)
      : info_(planted_info(name, DeviceKind::host)), elsewhere_(works) {
    info_.accumulation = sums;
    info_.inspects_b = Plan::kInspectsB;
    info_.takes_values = Plan::kTakesValues;  // which lie where a plan reads them
  }
  const KernelInfo& info() const override { return info_; }
  Support supports(const Problem&, const DeviceInfo&) const override {
    elsewhere_.supports();
    return Support::yes(0);
  }
  std::unique_ptr<Prepared> prepare(const SparseOperand& a, const Options&, Device&,
                                    StageTimer& stages) const override {
    const auto timed = stages.scope("build");
    elsewhere_.prepare();
    return std::make_unique<PreparedCheat<Plan>>(*a.a, elsewhere_);
  }

 private:
  KernelInfo info_;
  WorkElsewhere elsewhere_;
};

template <class Plan>
void add(const char* name, Elsewhere works = Elsewhere::nowhere,
         Accumulation sums = Accumulation::fp32_fma) {
  Registry<Kernel>::instance().add(std::make_unique<CheatKernel<Plan>>(name, works, sums));
}

}  // namespace spmmbench
