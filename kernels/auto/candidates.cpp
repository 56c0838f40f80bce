#include "auto/candidates.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "auto/device_features.hpp"
#include "core/contains.hpp"
#include "select/row_overlap.hpp"
#include "spmmbench/registry.hpp"

namespace spmmbench {
namespace {

constexpr double kAllAlike = 0.999;  // the largest value below 1 that is told

}  // namespace

std::function<bool(std::string_view spec)> takes(Layout layout) {
  return [layout](std::string_view spec) {
    const Kernel* kernel = Registry<Kernel>::instance().find(Spec::parse(spec).name);
    return kernel != nullptr && contains(kernel->info().layouts, layout);
  };
}

double row_overlap_of(const CsrMatrix& a) { return std::min(row_overlap(a), kAllAlike); }

MatrixFeatures features_of(const SparseOperand& a, Device& device) {
  if (!a.a.is_lazy()) return features_of(*a.a);
  MatrixFeatures features = features_on_device(*a.on_device, device);
  features.row_overlap = std::min(features.row_overlap, kAllAlike);
  return features;
}

std::optional<Choice> supported(const Candidate& candidate, const SparseOperand& a,
                                const Shape& shape, const DeviceInfo& device,
                                std::string& refusal) {
  Choice choice{nullptr, Spec::parse(candidate.spec), 0};
  choice.kernel = Registry<Kernel>::instance().find(choice.spec.name);
  if (choice.kernel == nullptr) return std::nullopt;
  const Support support =
      check_support(*choice.kernel, Problem{a, shape, choice.spec.options}, device);
  if (!support.ok) {
    refusal = fmt::format("{}: {}", choice.spec.name, support.reason);
    return std::nullopt;
  }
  choice.device_bytes = support.device_bytes;
  return choice;
}

std::optional<std::pair<Choice, std::size_t>> best_of(const std::vector<Candidate>& all,
                                                      const SparseOperand& a, const Shape& shape,
                                                      const DeviceInfo& device,
                                                      std::string& refusal) {
  for (std::size_t i = 0; i < all.size(); ++i)
    if (auto choice = supported(all[i], a, shape, device, refusal))
      return std::pair(*std::move(choice), i);
  return std::nullopt;
}

bool any_takes_order(std::span<const Candidate> candidates) {
  return std::ranges::any_of(candidates, [](const auto& one) { return !one.ordered_as.empty(); });
}

std::string Why::text() const {
  const MatrixFeatures& features = ranking.features;
  constexpr std::size_t kNamed = 4;
  std::vector<std::string> expected;
  for (const Candidate& one : ranked) {
    const Spec spec = Spec::parse(one.spec);
    if (Registry<Kernel>::instance().find(spec.name) == nullptr) continue;
    expected.push_back(fmt::format("{} {:.1f} us", spec.to_string(), one.estimate.us));
    if (ranking.calls > 0)
      expected.back() += fmt::format(" after {:.1f} ms", one.estimate.prepare_ms);
    if (expected.size() == kNamed) break;
  }
  const std::string blocks = features.block_fill > 0 ? fmt::format(", 128x64 blocks {:.0f}% full",
                                                                   100 * features.block_fill)
                                                     : "";
  return fmt::format(
      "{:.1f} nonzeros per row (cv {:.1f}), 8-row windows gather {:.2f} per nonzero{}: expected "
      "{}{}",
      features.mean_row, features.cv_row, features.gathered_8, blocks, fmt::join(expected, ", "),
      refusal.empty() ? "" : "; refused: " + refusal);
}

}  // namespace spmmbench
