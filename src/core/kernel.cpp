#include "spmmbench/kernel.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <tuple>

#include "core/contains.hpp"

namespace spmmbench {
namespace {

// Empty where what it says of the shape of B and C allows the problem.
std::string refusal_of_shape(const KernelInfo& info, const Problem& problem) {
  if (!writes(info, problem.precision, problem.c_type))
    return fmt::format("does not write {}", to_string(problem.c_type));
  if (!contains(info.layouts, problem.layout))
    return problem.layout == Layout::col_major ? "needs row-major B and C"
                                               : "needs column-major B and C";
  return info.sizes.refusal(problem.m(), problem.k(), problem.n);
}

}  // namespace

std::vector<ElementType> written_types(const KernelInfo& info) {
  std::vector<ElementType> types = info.c_types;
  if (contains(info.precisions, Precision::fp64) && !contains(types, ElementType::f64))
    types.push_back(ElementType::f64);
  return types;
}

bool writes(const KernelInfo& info, Precision precision, ElementType c_type) {
  if ((precision == Precision::fp64) != (c_type == ElementType::f64)) return false;
  return contains(info.c_types, c_type) ||
         (c_type == ElementType::f64 && contains(info.precisions, Precision::fp64));
}

Layout layout_for(const KernelInfo& info, Layout asked, std::int64_t n) {
  return n == 1 && contains(info.layouts, Layout::col_major) ? Layout::col_major : asked;
}

std::string SizeLimits::text() const {
  std::vector<std::string> parts;
  if (square) parts.emplace_back("M = K");
  if (!allowed_n.empty()) parts.push_back(fmt::format("N {}", fmt::join(allowed_n, ", ")));
  for (const auto& [name, multiple] :
       {std::pair{"N", n_multiple}, std::pair{"M", m_multiple}, std::pair{"K", k_multiple}})
    if (multiple > 1) parts.push_back(fmt::format("{} a multiple of {}", name, multiple));
  for (const auto& [name, most] :
       {std::pair{"N", max_n}, std::pair{"M * K", max_mk}, std::pair{"K * N", max_kn}})
    if (most > 0) parts.push_back(fmt::format("{} at most {}", name, most));
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string SizeLimits::refusal(std::int64_t m, std::int64_t k, std::int64_t n) const {
  if (square && m != k) return "needs a square A";
  if (!allowed_n.empty() && !contains(allowed_n, n)) return fmt::format("does not take N = {}", n);
  for (const auto& [name, size, multiple] :
       {std::tuple{"N", n, n_multiple}, std::tuple{"M", m, m_multiple},
        std::tuple{"K", k, k_multiple}})
    if (multiple > 1 && size % multiple != 0)
      return fmt::format("needs {} to be a multiple of {}", name, multiple);
  for (const auto& [name, a, b, most] :
       {std::tuple{"N", n, std::int64_t{1}, max_n}, std::tuple{"M * K", m, k, max_mk},
        std::tuple{"K * N", k, n, max_kn}})
    if (most > 0 && a > 0 && b > most / a)
      return fmt::format("needs {} to be at most {}", name, most);
  return {};
}

KernelInfo info_with(const KernelInfo& info, const Options& options) {
  KernelInfo out = info;
  for (const Variant& variant : info.variants) {
    const auto option =
        std::find_if(info.options.begin(), info.options.end(),
                     [&](const OptionSpec& each) { return each.name == variant.option; });
    if (options.get(variant.option, option->default_value) != variant.value) continue;
    out.accumulation = variant.accumulation.value_or(out.accumulation);
    out.promoted_columns = variant.promoted_columns.value_or(out.promoted_columns);
    if (!variant.c_types.empty()) out.c_types = variant.c_types;
    if (!variant.layouts.empty()) out.layouts = variant.layouts;
    if (!variant.allowed_n.empty() || variant.n_multiple > 0) {
      out.sizes.allowed_n = variant.allowed_n;
      out.sizes.n_multiple = std::max<std::int64_t>(variant.n_multiple, 1);
    }
    if (variant.max_n > 0) out.sizes.max_n = variant.max_n;
  }
  return out;
}

Support check_operand(const Kernel& kernel, const SparseOperand& a, const Options& options,
                      const DeviceInfo& device) {
  const KernelInfo& info = kernel.info();
  check_options(kernel, options);
  if (info.device == DeviceKind::cuda) {
    if (device.kind != DeviceKind::cuda) return Support::no("no CUDA device");
    const int cc = device.compute_capability;
    if (cc < info.min_compute_capability ||
        (info.exact_architecture && cc != info.min_compute_capability))
      return Support::no(fmt::format("needs compute capability {}.{}",
                                     info.min_compute_capability / 10,
                                     info.min_compute_capability % 10));
    if (a.m() == 0 || a.k() == 0) return Support::no("A has no rows or no columns");
  }
  if (!contains(info.precisions, a.precision))
    return Support::no(fmt::format("does not offer {}", to_string(a.precision)));
  if (!a.row_ids.empty() && !info.writes_row_ids)
    return Support::no("writes rows in stored order only");
  return Support::yes(0);
}

Support check_support(const Kernel& kernel, const Problem& problem, const DeviceInfo& device) {
  const KernelInfo& info = kernel.info();
  Support of_operand = check_operand(kernel, problem.operand(), problem.options, device);
  if (!of_operand.ok) return of_operand;
  std::string why = info.variants.empty()
                        ? refusal_of_shape(info, problem)
                        : refusal_of_shape(info_with(info, problem.options), problem);
  return why.empty() ? kernel.supports(problem, device) : Support::no(std::move(why));
}

}  // namespace spmmbench
