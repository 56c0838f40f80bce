#pragma once
// Memory that a prepared A keeps between calls of Prepared::take_values. A Prepared that keeps some
// has this as a second base class.

namespace spmmbench {

class KeepsForNewValues {
 public:
  virtual ~KeepsForNewValues() = default;
  // Frees it; the next call makes it anew.
  virtual void free_kept_for_new_values() = 0;
};

}  // namespace spmmbench
