#pragma once
// A kernel as the C interface describes it.

#include <deque>
#include <vector>

#include "spmmbench/kernel.hpp"
#include "spmmbench/plugin.h"

namespace spmmbench {

struct Entry {
  const Kernel* kernel = nullptr;
  std::deque<std::vector<const char*>> choices;  // of the options, each ended by a null
  std::vector<spmmbench_option> options;
  std::vector<const spmmbench_option*> option_pointers;
  spmmbench_kernel c = {};
};

// All but the functions. The entry stays where it is, since `c` points into it. `has_cuda`: the
// library has kernels for GPUs, so that A may lie on one.
void describe(const Kernel& kernel, bool has_cuda, Entry& entry);

}  // namespace spmmbench
