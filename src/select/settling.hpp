#pragma once
// What `auto` prepares while its product is launched, by a caller who has not said how often.
//
// After c launches, c more are expected, and the launch that is due. What should pay within them is
// prepared. So the time of preparation stays in proportion to that of the products (the ski-rental
// problem). The copy of A to the device counts as launches that were.
//
//     launches    1   2   4   8   16   32   64   128   256
//     kernel      the first ───┬──────┬──────┬───────────────
//                              │ built: its estimate by the sizes of A pays for its preparation
//                                     │ A is looked at: estimates by its features
//                                            │ measured beside others that are close to it
//
// Estimates decide first, by the sizes of A, then by its features; later, trials that stay within a
// share of the products' time.
//
// If preparation has taken longer than estimated, the next one is expected to take longer too:
//   on the host as many times as long, and it has to pay twice, since others may hold the host up;
//   on the device at most as much longer as on average, since loading code and finding memory
//   happen once.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "select/rank.hpp"

namespace spmmbench {

class Settling {
 public:
  struct Step {
    std::size_t candidate;
    // Launches of a trial decide whether it is kept; else it is prepared and kept.
    bool measure;
  };

  // `candidates`: by rank for any number of calls (Ranking::calls = 0). `current` of them is
  // launched, and A is on the device for it. `before_us`: what was spent before the first launch,
  // whatever is launched.
  Settling(std::vector<Candidate> candidates, std::size_t current, double before_us = 0);

  // Better estimates of all candidates, by rank. What is launched stays, and has to be among them;
  // so do measured times.
  void estimate_anew(std::vector<Candidate> candidates);

  // What to do after this many launches, until nothing is left to do; each step is answered by
  // took() or failed().
  std::optional<Step> next(std::int64_t launches);
  // The same without trials.
  std::optional<Step> next_build(std::int64_t launches);
  // A step has taken `spent_us` with all preparation. `us`: the time of a launch, where it was
  // measured. Whether the candidate is the current one from now on.
  bool took(const Step& step, double spent_us, std::optional<double> us);
  void failed(const Step& step, double spent_us);

  std::size_t current() const { return current_; }
  // What was spent before the first launch, and what this many have taken, by the estimates or,
  // where there is one, the measurement.
  double products_us(std::int64_t launches) const {
    return products_us_ + static_cast<double>(launches - launches_) * states_[current_].us;
  }
  const Candidate& candidate(std::size_t i) const { return candidates_[i]; }
  // No number of launches leads to another step.
  bool settled() const;

 private:
  struct State {
    double us;        // of a launch: measured, else estimated
    double extra_us;  // of preparation by its estimate, beyond the copy of A that is there
    bool measured = false, failed = false;
  };

  double as_launches(std::int64_t launches) const;
  std::optional<std::size_t> worth_building(double launches) const;
  std::optional<Step> worth_measuring(double launches) const;
  bool may_be_faster(std::size_t candidate) const;
  bool may_try(std::size_t candidate) const;
  double preparation_us(std::size_t candidate) const;
  void count(const Step& step, double spent_us);
  State state_of(const Candidate& candidate) const;

  double there_ms_;  // of preparation by estimate: the copy of A that is there
  std::vector<Candidate> candidates_;
  std::vector<State> states_;
  std::size_t current_;
  int measured_ = 0, steps_ = 0;
  std::int64_t launches_ = 0;  // that products_us_ has
  double products_us_;         // with what was spent before the first launch
  double before_us_, spent_us_ = 0;
  double expected_us_ = 0;  // what was spent, by estimates
};

}  // namespace spmmbench
