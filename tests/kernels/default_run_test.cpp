// Which kernels a run without -k measures.

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "run/plan.hpp"
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

TEST(DefaultRun, AKernelWithAPurposeOfItsOwnRunsOnlyWhenNamed) {
  const auto has_any = [](const std::vector<std::string>& patterns) {
    Cases cases;
    cases.kernels = patterns;
    const auto groups = plan_groups(cases, {}, DeviceKind::host);
    return std::any_of(groups.begin(), groups.end(), [](const PrecisionGroup& group) {
      return std::any_of(group.kernels.begin(), group.kernels.end(), [](const KernelChoice& one) {
        return !one.kernel->info().purpose.empty();
      });
    });
  };
  EXPECT_FALSE(has_any({}));
  const auto all = Registry<Kernel>::instance().sorted();
  if (std::all_of(all.begin(), all.end(),
                  [](const Kernel* kernel) { return kernel->info().purpose.empty(); }))
    GTEST_SKIP() << "built without CUDA";
  EXPECT_TRUE(has_any({"*"}));
}

TEST(DefaultRun, OfTheTransposeHasTheKernelThatReadsTheInputItself) {
  const auto has_it = [](bool transpose) {
    Cases cases;
    cases.load.transpose = transpose;
    const auto groups = plan_groups(cases, {}, DeviceKind::cuda);
    return std::ranges::any_of(groups, [](const PrecisionGroup& group) {
      return std::ranges::any_of(group.kernels, [](const KernelChoice& one) {
        return one.kernel->info().name == "cusparse_csr_transposed";
      });
    });
  };
  if (Registry<Kernel>::instance().find("cusparse_csr_transposed") == nullptr)
    GTEST_SKIP() << "built without CUDA";
  EXPECT_FALSE(has_it(false));
  EXPECT_TRUE(has_it(true));
}

}  // namespace
}  // namespace spmmbench
