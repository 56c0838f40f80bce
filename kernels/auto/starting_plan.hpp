#pragma once
// A plan of `auto` that launches at once, and prepares what is faster while it is launched.

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "auto/chooser.hpp"
#include "auto/early.hpp"
#include "common/resident_csr.hpp"
#include "select/settling.hpp"
#include "spmmbench/kernel.hpp"

namespace spmmbench {

// How long the copy of A and products take at least before `auto` looks at A, in microseconds. A
// look takes 50 to 100 of them, on samples on the host or on the device
// (docs/decisions/selection-trials.md).
inline constexpr double kLooksAfterUs = 600;

class StartingPlan final : public Plan {
 public:
  // `chooser`, whose A is `a`, outlives this.
  StartingPlan(Chooser& chooser, Start start, const Shape& shape, const ResidentCsr& a,
               StageTimer& stages);

  void launch(const DenseView& b, const DenseView& c, Stream stream) override;
  bool prepares_next() const override { return !settled_ && launches_ == due_; }
  void settle(StageTimer& stages) override;
  PlanReport report() const override;

 private:
  void prepare_more(const DenseView& b, const DenseView& c);
  double spent_us() const;
  void rank_by_sizes();
  void look();
  void take(const Settling::Step& step, TrialTimes& times);
  void estimate_in_order(const WcsrEstimate& windows);
  void run_from_now_on(BoundPlan bound);
  void settle_if_it_can();

  Chooser& chooser_;
  Start start_;
  Shape shape_;
  std::size_t copied_bytes_;
  double upload_us_;  // of A: counts as products
  BoundPlan bound_;
  Pick pick_;
  std::optional<Why> why_;            // once A was looked at
  std::optional<Settling> settling_;  // once something may pay
  double about_us_ = 0;               // TrialTimes::of, for all trials; 0: none was begun
  std::int64_t launches_ = 0, due_ = 1;
  bool knows_order_ = false;  // in which candidates are estimated
  bool settled_ = false;
  bool captured_ = false;                  // bound_ was launched in a capture
  std::vector<BoundPlan> captured_plans_;  // graphs may launch them until the end
};

}  // namespace spmmbench
