#pragma once
// Shows that each launch of a batch does its work although others follow it (gpu/watcher.hpp).

#include <functional>
#include <memory>
#include <utility>

#include "gpu/watcher.hpp"
#include "measure/spot_checks.hpp"
#include "timing/sampler.hpp"

namespace spmmbench {

class WatchedBatches {
 public:
  using MakeWatcher = std::function<std::unique_ptr<Watcher>()>;  // null where there is none

  // What is passed outlives this object.
  WatchedBatches(SpotChecks& checks, ElementType c_type, MakeWatcher make_watcher)
      : checks_(checks), c_type_(c_type), make_watcher_(std::move(make_watcher)) {}

  // Launches all of the batch, a few times where that leaves a doubt, and gives no time. Throws
  // WrongLaunch where an element of C never was what a launch makes of it. False where C cannot be
  // looked at while launches run. `meanwhile` is called once, while they do.
  bool launch(
      const Batch& batch, const Batch::Meanwhile& meanwhile = [] {});

 private:
  SpotChecks& checks_;
  ElementType c_type_;
  MakeWatcher make_watcher_;
  std::unique_ptr<Watcher> watcher_;
};

}  // namespace spmmbench
