#pragma once
// What `auto` knows of one A on one device, and how it chooses.

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "auto/candidates.hpp"
#include "auto/early.hpp"
#include "auto/trials.hpp"
#include "gpu/rates.hpp"
#include "row_order/shared_orders.hpp"
#include "spmmbench/device.hpp"
#include "spmmbench/kernel.hpp"
#include "spmmbench/matrix.hpp"
#include "spmmbench/pick.hpp"
#include "spmmbench/shared_parts.hpp"

namespace spmmbench {

struct Chosen {
  BoundPlan bound;
  Pick pick;
  std::optional<Why> why;  // none where nothing was compared
};

// What a plan says that runs `plan`; `why` is null where nothing was compared.
PlanReport report_of(const Plan& plan, const Pick& pick, const Why* why);

class Chooser {
 public:
  // What `a` refers to and the device outlive this.
  Chooser(const SparseOperand& a, Device& device, TrialLimits limits)
      : orders_(a.orders), a_(a), device_(device), limits_(limits) {
    a_.orders = &orders_;
  }
  Chooser(const Chooser&) = delete;  // its parts refer to it
  Chooser& operator=(const Chooser&) = delete;

  // The candidates by their estimates with such rates of the device.
  Why ranked(const Shape& shape, const DeviceRates& rates, StageTimer& stages);
  // The best for limits.calls by the sizes of A alone or, where A lies on the device alone, by a
  // glance at it; none where a look at A would take a small part of the time of this many calls.
  std::optional<Chosen> choose_for_few_calls(const Start& start, const Shape& shape,
                                             StageTimer& stages);
  // The best of them, measured where that is asked for. `start`: what needs no preparation, if
  // anything.
  Chosen choose(const Shape& shape, const std::optional<Start>& start, StageTimer& stages);

  // Of a B that the cache does not hold rows return from memory, the fewer the better their order.
  // Whether finding out can gain with this B, and whether products that take so long pay for it.
  bool order_may_gain(const Shape& shape) const;
  bool thorough_pays(double products_us) const;
  // SparseOperand::thorough for kernels that are prepared from now on.
  void be_thorough(bool thorough);

  const SparseOperand& a() const { return a_; }
  Device& device() { return device_; }
  PreparedKernels& prepared() { return prepared_; }

 private:
  std::pair<Choice, std::vector<Candidate>> worth_running(Why& why, const Shape& shape,
                                                          StageTimer& stages);

  DeviceRates rates_worth_measuring(const std::optional<Start>& start);
  const MatrixFeatures& glance(StageTimer& stages);
  Chosen run(const Choice& choice, const Shape& shape, StageTimer& stages);
  Choice first_supported(const std::vector<Candidate>& candidates, const Start& start,
                         const Shape& shape) const;

  BoundPlan fastest(const Ranking& ranking, const std::vector<Candidate>& candidates,
                    const Choice& best, StageTimer& stages, Pick& pick);

  SharedOrders orders_;  // of all candidates
  SparseOperand a_;
  Device& device_;
  TrialLimits limits_;
  SharedPart<MatrixFeatures> features_;
  SharedPart<double> row_overlap_;
  SharedPart<MatrixFeatures> glance_;
  PreparedKernels prepared_{a_, device_};
  Trials trials_{a_, device_, prepared_, limits_};
};

}  // namespace spmmbench
