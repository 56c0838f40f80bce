#include "gpu/scaled_launches.hpp"

#include <cstdint>

namespace spmmbench {
namespace {

// With the rows behind the last that the kernel may write.
std::size_t product_bytes(const KernelInfo& kernel, DenseView c) {
  const std::int64_t multiple = kernel.form.c_row_multiple;
  if (c.layout == Layout::row_major) c.rows = (c.rows + multiple - 1) / multiple * multiple;
  return c.bytes();
}

void host_scale_add(const DenseView& product, const DenseView& c, const Scalars& scalars) {
  visit_element(c.type, [&](auto element) {
    using Stored = decltype(element);
    using Bits = typename Stored::Bits;
    using Value = typename Stored::Value;
    const auto alpha = static_cast<Value>(scalars.alpha), beta = static_cast<Value>(scalars.beta);
#pragma omp parallel for schedule(static)
    for (std::int64_t line = 0; line < c.lines(); ++line) {
      const Bits* const from = static_cast<const Bits*>(product.data) + line * product.ld;
      Bits* const to = static_cast<Bits*>(c.data) + line * c.ld;
      for (std::int64_t i = 0; i < c.line_length(); ++i) {
        const Value scaled = alpha * static_cast<Value>(element.decode(from[i]));
        to[i] = element.encode(
            beta == 0 ? scaled : scaled + beta * static_cast<Value>(element.decode(to[i])));
      }
    }
  });
}

}  // namespace

std::size_t scaling_bytes(const KernelInfo& kernel, const Scalars& scalars, const DenseView& c) {
  return scalars.plain() || takes_scalars(kernel) ? 0 : product_bytes(kernel, c);
}

ScaledLaunches::ScaledLaunches(Plan& plan, const KernelInfo& kernel, Device& device)
    : plan_(plan), scaling_(dynamic_cast<ScalingPlan*>(&plan)), kernel_(kernel), device_(device) {}

void ScaledLaunches::launch(const DenseView& b, const DenseView& c, const Scalars& scalars,
                            Stream stream) {
  if (scalars.plain()) return plan_.launch(b, c, stream);
  if (scaling_ != nullptr) return scaling_->launch_scaled(b, c, scalars, stream);
  const std::size_t bytes = product_bytes(kernel_, c);
  if (product_.bytes() < bytes) product_ = device_.allocate(bytes);
  DenseView product = c;
  product.data = product_.data();
  plan_.launch(b, product, stream);
  if (device_.info().kind == DeviceKind::host) return host_scale_add(product, c, scalars);
  if (kernel_.ignores_stream) device_.wait_idle();  // what comes next is on the stream
  cuda_scale_add(product, c, scalars, stream);
}

}  // namespace spmmbench
