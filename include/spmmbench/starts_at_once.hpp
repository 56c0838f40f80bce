#pragma once
// A kernel whose first launches may read A as it was given. It has this as a second base.

#include "spmmbench/spec.hpp"

namespace spmmbench {

class StartsAtOnce {
 public:
  virtual ~StartsAtOnce() = default;
  // Whether, with such options and an A on the device, preparation, `bind` and the first launch of
  // a plan run nothing but a kernel for plain CSR, and none of them looks at A.
  virtual bool starts_at_once(const Options& options) const = 0;
};

}  // namespace spmmbench
