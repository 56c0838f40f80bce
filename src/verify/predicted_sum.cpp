#include "verify/predicted_sum.hpp"

#include <bit>
#include <cmath>
#include <cstddef>
#include <vector>

#include "verify/tensor_core.hpp"

namespace spmmbench {

float predicted_sum(const SumOrder& order, const KernelInfo& kernel, Precision precision,
                    const CsrMatrix& a, const std::function<double(std::int64_t k)>& b,
                    float scale) {
  const bool as_fp16 = is_scaled(precision) && kernel.promoted_columns == 1;
  const TensorCore core = tensor_core(as_fp16 ? Precision::fp16 : precision);
  std::vector<float> of_a, of_b;
  for (const std::int64_t entry : order.entries) {
    of_a.push_back(a.values[entry]);
    of_b.push_back(static_cast<float>(b(a.col_idx[entry])));
  }
  float sum = 0;
  std::size_t entry = 0, instruction = 0;
  for (const std::size_t part_end : order.parts) {
    float part = 0;
    for (; instruction < part_end; ++instruction) {
      const std::size_t count = order.instructions[instruction] - entry;
      part = multiply_accumulate(core, std::span(of_a).subspan(entry, count),
                                 std::span(of_b).subspan(entry, count), part);
      entry += count;
    }
    sum += part;
  }
  return is_scaled(precision) ? sum * scale : sum;
}

bool same_bits(double got, double predicted) {
  if (std::isnan(predicted)) return std::isnan(got);
  return std::bit_cast<std::uint64_t>(got) == std::bit_cast<std::uint64_t>(predicted);
}

}  // namespace spmmbench
