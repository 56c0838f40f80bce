#include "auto/early.hpp"

#include <algorithm>
#include <utility>

#include "core/contains.hpp"
#include "select/device_rates.hpp"
#include "spmmbench/registry.hpp"

namespace spmmbench {
namespace {

struct EarlyKernel {
  const Estimator* estimator;
  const Kernel* kernel;
  Spec spec;
};

std::vector<EarlyKernel> found_where(bool (*wanted)(const EarlyKernel&)) {
  std::vector<EarlyKernel> out;
  for (const auto& one : estimators()) {
    EarlyKernel early{one.get(), nullptr, Spec::parse(one->spec)};
    early.kernel = Registry<Kernel>::instance().find(early.spec.name);
    if (early.kernel != nullptr && wanted(early)) out.push_back(std::move(early));
  }
  return out;
}

// Those that prepare nothing, ours first.
const std::vector<EarlyKernel>& of_plain_csr() {
  static const std::vector<EarlyKernel> found = [] {
    std::vector<EarlyKernel> all =
        found_where([](const EarlyKernel& one) { return one.kernel->info().reads_plain_csr; });
    std::stable_partition(all.begin(), all.end(),
                          [](const EarlyKernel& one) { return !one.kernel->info().baseline; });
    return all;
  }();
  return found;
}

const std::vector<EarlyKernel>& by_sizes() {
  static const std::vector<EarlyKernel> found =
      found_where([](const EarlyKernel& one) { return may_go_by_sizes(*one.estimator); });
  return found;
}

const std::vector<EarlyKernel>& on_device() {
  static const std::vector<EarlyKernel> found =
      found_where([](const EarlyKernel& one) { return one.estimator->on_device; });
  return found;
}

bool takes(const EarlyKernel& one, Layout layout) {
  return contains(one.kernel->info().layouts, layout);
}

std::optional<Choice> supported_early(const EarlyKernel& early, const SparseOperand& a,
                                      const Shape& shape, const DeviceInfo& device) {
  const Support support =
      check_support(*early.kernel, Problem{a, shape, early.spec.options}, device);
  if (!support.ok) return std::nullopt;
  return Choice{early.kernel, early.spec, support.device_bytes};
}

}  // namespace

std::optional<Start> start_of(const SparseOperand& a, const Shape& shape,
                              const DeviceInfo& device) {
  const Product of_sizes(features_of_sizes(a.m(), a.k(), a.nnz()), shape, a.precision,
                         device_model(device, known_rates(device)));
  for (const EarlyKernel& one : of_plain_csr()) {
    const Estimator& estimator = *one.estimator;
    const auto estimate = estimator.estimate(of_sizes);
    if (!estimate) continue;
    if (auto choice = supported_early(one, a, shape, device))
      return Start{*std::move(choice),
                   {estimator.spec, *estimate, Standing::full, estimator.on_device},
                   of_sizes};
  }
  return std::nullopt;
}

std::vector<Candidate> candidates_by_sizes(const Start& start) {
  std::vector<Candidate> out = {start.candidate};
  for (const EarlyKernel& one : by_sizes())
    if (one.estimator->spec != start.candidate.spec && takes(one, start.of_sizes.layout))
      if (const auto candidate = candidate_by_sizes(*one.estimator, start.of_sizes))
        out.push_back(*candidate);
  return out;
}

std::vector<Candidate> candidates_on_device(const Product& product) {
  std::vector<Candidate> out;
  for (const EarlyKernel& one : on_device()) {
    const Estimator& estimator = *one.estimator;
    if (!takes(one, product.layout)) continue;
    if (estimator.standing_for(product) != Standing::full) continue;
    if (const auto estimate = estimator.estimate(product))
      out.push_back({estimator.spec, *estimate, Standing::full, true, estimator.by_sizes});
  }
  return out;
}

std::optional<Choice> early_choice(const Candidate& candidate, const Start& start,
                                   const SparseOperand& a, const Shape& shape,
                                   const DeviceInfo& device) {
  if (candidate.spec == start.candidate.spec) return start.choice;
  for (const EarlyKernel& one : on_device())
    if (one.estimator->spec == candidate.spec) return supported_early(one, a, shape, device);
  return std::nullopt;
}

}  // namespace spmmbench
