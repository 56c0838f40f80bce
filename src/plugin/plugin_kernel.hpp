#pragma once
// One kernel of a loaded library as a Kernel.

#include <memory>
#include <string>

#include "spmmbench/kernel.hpp"
#include "spmmbench/plugin.h"

namespace spmmbench {

class PluginKernel final : public Kernel {
 public:
  // Throws Error naming what plugin.h does not allow. `library` and `kernel` exist until the
  // program ends.
  // `load_ms`: what loading the library took.
  PluginKernel(std::string path, const spmmbench_library& library, const spmmbench_kernel& kernel,
               double load_ms);

  const KernelInfo& info() const override { return info_; }
  const std::string& path() const { return path_; }
  Support supports(const Problem& problem, const DeviceInfo& device) const override;
  std::unique_ptr<Prepared> prepare(const SparseOperand& a, const Options& options, Device& device,
                                    StageTimer& stages) const override;

 private:
  std::string path_;
  const spmmbench_library& library_;
  const spmmbench_kernel& kernel_;
  KernelInfo info_;
  bool tunes_;
  double load_ms_;
};

}  // namespace spmmbench
