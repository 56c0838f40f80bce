#pragma once
// Whether a kernel keeps what plugin.h asks of it, tried on small matrices. The products are of
// small integers, so that every element of C has one right value.

#include <string>
#include <vector>

#include "spmmbench/kernel.hpp"

namespace spmmbench {

struct PluginCheck {
  int passed = 0, skipped = 0;
  std::string reason;                 // of the last case that was skipped
  std::vector<std::string> failures;  // a line each, of at most 10 cases
};

enum class Checked {
  products,
  host_code,  // nothing of what kernels of a GPU compute: they are not run
};

// Every precision, layout and type of C that the kernel offers, over matrices with empty rows, one
// long row and no entry, odd and even N, with and without a gap behind lines: C is right after a
// second launch with another B too, nothing is written outside of it nor to B, several plans may
// live at a time, on the host what was allocated is freed, and what is reported to be held is. All
// of it once more with each option that has a variant.
PluginCheck check_plugin_kernel(const Kernel& kernel, Device& device, Checked checked);

}  // namespace spmmbench
