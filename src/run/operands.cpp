#include "run/operands.hpp"

#include <vector>

#include "spmmbench/random.hpp"

namespace spmmbench {

void upload_rounded(const DenseMatrix& host, const DenseView& view, Precision precision,
                    Device& device) {
  std::vector<unsigned char> image(view.bytes(), kPoison);
  const std::size_t pitch = static_cast<std::size_t>(view.ld) * bytes_of(view.type);
#pragma omp parallel for schedule(static)
  for (std::int64_t line = 0; line < view.lines(); ++line)
    for (std::int64_t at = 0; at < view.line_length(); ++at) {
      const std::int64_t i = view.layout == Layout::row_major ? line : at;
      const std::int64_t j = view.layout == Layout::row_major ? at : line;
      store_element(view.type, image.data() + line * pitch, at,
                    round_to(precision, host.values[i * host.cols + j]));
    }
  device.upload(view.data, image.data(), image.size());
}

Operands make_operands(const CsrMatrix& a, std::int64_t n, Precision precision, ElementType c_type,
                       Layout layout, const DenseMatrix* host_b, std::uint64_t seed,
                       Device& device) {
  Operands operands;
  operands.b = make_dense_view(a.cols, n, layout, storage_type(precision));
  operands.c = make_dense_view(a.rows, n, layout, c_type);
  operands.b_memory = device.allocate(operands.b.bytes());
  operands.c_memory = device.allocate(operands.c.bytes());
  operands.b.data = operands.b_memory.data();
  operands.c.data = operands.c_memory.data();
  if (host_b != nullptr) upload_rounded(*host_b, operands.b, precision, device);
  else device.fill_uniform(operands.b, stream_seed(seed, kStreamB), precision);
  device.synchronize();
  return operands;
}

}  // namespace spmmbench
