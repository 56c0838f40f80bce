#pragma once
// A plan of `auto` that launches at once, and prepares what is faster while it is launched.

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "auto/chooser.hpp"
#include "auto/early.hpp"
#include "select/settling.hpp"
#include "spmmbench/kernel.hpp"

namespace spmmbench {

// How long products take at least before `auto` looks at A, in microseconds. A look takes 50 to 100
// of them, on samples on the host or on the device (docs/decisions/selection-trials.md).
inline constexpr double kLooksAfterUs = 600;

class StartingPlan final : public Plan {
 public:
  // `chooser`, whose A lies on the device, outlives this. `copied_bytes`: of A, for it.
  StartingPlan(Chooser& chooser, Start start, const Shape& shape, std::size_t copied_bytes,
               StageTimer& stages);

  void launch(const DenseView& b, const DenseView& c, Stream stream) override;
  bool prepares_next() const override { return !settled_ && launches_ == due_; }
  void settle(StageTimer& stages) override;
  PlanReport report() const override;

 private:
  void prepare_more();
  void rank_by_sizes();
  void look();
  void take(const Settling::Step& step);
  void estimate_in_order(const WcsrEstimate& windows);
  void run_from_now_on(BoundPlan bound);

  Chooser& chooser_;
  Start start_;
  Shape shape_;
  std::size_t copied_bytes_;
  BoundPlan bound_;
  Pick pick_;
  std::optional<Why> why_;            // once A was looked at
  std::optional<Settling> settling_;  // once something may pay
  std::optional<TrialTimes> times_;   // while a launch prepares
  double about_us_ = 0;               // TrialTimes::of, for all trials; 0: none was begun
  std::int64_t launches_ = 0, due_ = 1;
  bool knows_order_ = false;  // in which candidates are estimated
  bool settled_ = false;
  bool captured_ = false;                  // bound_ was launched in a capture
  std::vector<BoundPlan> captured_plans_;  // graphs may launch them until the end
};

}  // namespace spmmbench
