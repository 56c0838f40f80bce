#pragma once
// How long threads of this process could have run and did not, since other work had the processors.

#include <algorithm>

#include "core/steady_seconds.hpp"

namespace spmmbench {

enum class Threads { caller, all };

// So far, of all of them together. 0 where the system does not count it (/proc/*/schedstat).
double waited_seconds(Threads whose);

// The time since its construction, less that which these threads waited.
class OwnSeconds {
 public:
  explicit OwnSeconds(Threads whose) : whose_(whose) {}
  double waited() const { return std::max(waited_seconds(whose_) - waited_before_, 0.0); }
  double passed() const {
    const double seconds = steady_seconds() - start_;
    return std::max(seconds - waited(), 0.0);
  }

 private:
  Threads whose_;
  double waited_before_ = waited_seconds(whose_), start_ = steady_seconds();
};

}  // namespace spmmbench
