#pragma once
// A prepared A whose kernel picks another one for each shape, and can be told which. It has this as
// a second base.

#include <memory>
#include <string>

#include "spmmbench/kernel.hpp"
#include "spmmbench/stage_timer.hpp"

namespace spmmbench {

class BindsPick {
 public:
  virtual ~BindsPick() = default;
  // As Prepared::bind, but runs `kernel`, which a PlanReport::pick has named. The exact test needs
  // it: it prepares A with other values, of which `bind` could pick another kernel.
  virtual std::unique_ptr<Plan> bind_pick(const std::string& kernel, const Shape& shape,
                                          StageTimer& stages) = 0;
};

}  // namespace spmmbench
