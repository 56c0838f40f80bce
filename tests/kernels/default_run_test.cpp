// Which kernels a run without -k measures.

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "select/estimate.hpp"
#include "spmmbench/kernel.hpp"
#include "spmmbench/registry.hpp"
#include "spmmbench/spec.hpp"

namespace spmmbench {
namespace {

// Those of the GPU that are no vendor's, but for `auto` itself.
TEST(DefaultRun, MeasuresTheKernelsThatAutoConsiders) {
  std::set<std::string> measured, considered;
  for (const Kernel* kernel : Registry<Kernel>::instance().sorted()) {
    const KernelInfo& info = kernel->info();
    if (info.device == DeviceKind::cuda && !info.baseline && info.name != "auto" &&
        info.purpose.empty())
      measured.insert(info.name);
  }
  if (measured.empty()) GTEST_SKIP() << "built without CUDA";
  for (const auto& estimator : estimators()) {
    const std::string name = Spec::parse(estimator->spec).name;
    if (const Kernel* kernel = Registry<Kernel>::instance().find(name);
        kernel != nullptr && !kernel->info().baseline)
      considered.insert(name);
  }
  EXPECT_EQ(measured, considered);
}

}  // namespace
}  // namespace spmmbench
