#pragma once
// Prepares candidates of `auto` for one A on one device, and measures them.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "auto/candidates.hpp"
#include "select/cache.hpp"
#include "spmmbench/device.hpp"
#include "spmmbench/kernel.hpp"
#include "spmmbench/pick.hpp"
#include "spmmbench/shared_parts.hpp"

namespace spmmbench {

// A plan with what it was bound to.
struct BoundPlan {
  std::shared_ptr<Prepared> a;  // before the plan, which it outlives
  std::unique_ptr<Plan> plan;
};

// A as the kernels prepared it, by kernel and options. Each is made once, and each bind counts what
// making it took, as if nothing had been prepared before.
class PreparedKernels {
 public:
  PreparedKernels(const SparseOperand& a, Device& device) : a_(a), device_(device) {}

  BoundPlan bind(const Choice& choice, const Shape& shape, StageTimer& stages);
  // Keeps it until the end, for other shapes.
  void keep(const std::string& name) { kept_.insert(name); }
  // Frees what no plan uses, but for what is kept.
  void free_unused();
  // Makes all anew from now on.
  void forget() { entries_.clear(); }

 private:
  struct Entry {
    std::shared_ptr<Prepared> a;
    StageTimer cost;
  };
  const SparseOperand& a_;
  Device& device_;
  std::map<std::string, Entry> entries_;
  std::set<std::string> kept_;
};

class TrialTimes {
 public:
  // Times plans with a B and a C of its own. Throws OutOfMemory where they find no memory.
  TrialTimes(const SparseOperand& a, const Shape& shape, Device& device);
  // With those of a caller, whose product is written to C.
  TrialTimes(const DenseView& b, const DenseView& c, Device& device)
      : device_(device), b_(b), c_(c) {}

  // The microseconds of a launch. `about_us`: an estimate, the same for all that are compared.
  double of(Plan& plan, double about_us);

 private:
  Device& device_;
  DenseView b_, c_;
  Buffer b_memory_, c_memory_;
};

struct TrialLimits {
  std::int64_t most = 0;       // kernels that are measured
  std::int64_t budget_ms = 0;  // for all of them; the first always runs
  std::int64_t calls = 0;      // over which preparation is spread; 0: it does not count
};

class Trials {
 public:
  // `a`, `device` and `prepared` must outlive this object.
  Trials(const SparseOperand& a, Device& device, PreparedKernels& prepared, TrialLimits limits)
      : a_(a), device_(device), prepared_(prepared), limits_(limits) {}

  // Measures candidates, the best prediction first, and returns the plan of the fastest, or of
  // `best` where no trial has the memory for its B and C. `stages` gets, as "tune", what the trials
  // take, as if nothing had been prepared before; a winner that the cache folder remembers is only
  // prepared. `pick` has the name of `best`, and gets the winner's and the times. Throws what
  // preparing `best` throws. By `ranking` others are estimated anew once a trial has made an order.
  BoundPlan fastest(const Ranking& ranking, const std::vector<Candidate>& candidates,
                    const Choice& best, StageTimer& stages, Pick& pick);

 private:
  BoundPlan measured(const Ranking& ranking, std::vector<Candidate> candidates,
                     const CacheEntry& key, StageTimer& stages, StageTimer& spent, Pick& pick);
  CacheEntry cache_key(const Shape& shape, StageTimer& stages);

  const SparseOperand& a_;
  Device& device_;
  PreparedKernels& prepared_;
  TrialLimits limits_;
  SharedPart<std::string> structure_;  // hash
};

}  // namespace spmmbench
