#pragma once
// What threads work that somebody has begun.

#include <set>
#include <string>

namespace spmmbench {

// The threads of this process that begin after its construction.
class NewThreads {
 public:
  NewThreads();
  // How long those have worked that are still there. 0 where the system does not count it
  // (/proc/*/schedstat).
  double seconds() const;

 private:
  std::set<std::string> before_;
};

}  // namespace spmmbench
