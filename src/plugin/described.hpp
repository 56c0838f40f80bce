#pragma once
// Kernels of a library that another process has loaded. This process knows their descriptions and
// nothing else of them: no code of the library runs here.

#include <memory>
#include <string>
#include <vector>

#include "spmmbench/kernel.hpp"

namespace spmmbench {

class DescribedKernel final : public Kernel {
 public:
  DescribedKernel(std::string path, KernelInfo info)
      : path_(std::move(path)), info_(std::move(info)) {}
  const KernelInfo& info() const override { return info_; }
  const std::string& path() const { return path_; }
  Support supports(const Problem& problem, const DeviceInfo& device) const override;
  std::unique_ptr<Prepared> prepare(const SparseOperand& a, const Options& options, Device& device,
                                    StageTimer& stages) const override;

 private:
  std::string path_;
  KernelInfo info_;
};

// One line of JSON, and the kernels that it describes. Throws Error where it describes none, or a
// kernel of another library.
std::string describe_kernels(const std::vector<const Kernel*>& kernels);
std::vector<std::unique_ptr<DescribedKernel>> read_kernels(const std::string& path,
                                                           const std::string& description);

}  // namespace spmmbench
