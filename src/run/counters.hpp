#pragma once
// Hardware counters of one profiled launch, taken by Nsight Compute around `spmmbench profile`, or
// around `spmmbench worker` with a description of the work (run/work.hpp).

#include <map>
#include <string>
#include <vector>

#include "run/work.hpp"

namespace spmmbench {

// The counters of one kernel that the launch ran, by ncu's names and in base units.
struct KernelCounters {
  std::string kernel;
  std::map<std::string, double> values;
};

// Arguments for ncu, to count the launch of the `profile` or `worker` command that follows them.
// `cold`: ncu flushes the caches before it; else they are as the launches before left them.
std::vector<std::string> ncu_arguments(bool cold);

// Reads the output of `ncu --csv --page raw`. Throws Error with ncu's message when it has no
// kernel.
std::vector<KernelCounters> parse_ncu_csv(const std::string& text);

// One launch may run several kernels. Bytes and times add up; utilisations are weighted by time,
// and the hit rate by the sectors looked up. The keys are those of a result row's metrics.
std::map<std::string, double> combine_counters(const std::vector<KernelCounters>& kernels);

// Runs ncu on a child that does `work` (one launch of one case) and combines what it counted.
// Throws Error and Interrupted.
std::map<std::string, double> count_launch(const Work& work, bool cold);

}  // namespace spmmbench
