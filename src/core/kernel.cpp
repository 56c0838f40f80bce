#include "spmmbench/kernel.hpp"

#include <fmt/format.h>

#include "core/contains.hpp"

namespace spmmbench {

Layout layout_for(const KernelInfo& info, Layout asked, std::int64_t n) {
  return n == 1 && contains(info.layouts, Layout::col_major) ? Layout::col_major : asked;
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
  if (!contains(info.c_types, problem.c_type))
    return Support::no(fmt::format("does not write {}", to_string(problem.c_type)));
  if (!contains(info.layouts, problem.layout))
    return Support::no(problem.layout == Layout::col_major ? "needs row-major B and C"
                                                           : "needs column-major B and C");
  return kernel.supports(problem, device);
}

}  // namespace spmmbench
