#include "measure/bit_checks.hpp"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <random>
#include <vector>

#include "core/block_scales.hpp"
#include "spmmbench/sum_order.hpp"
#include "verify/predicted_sum.hpp"

namespace spmmbench {
namespace {

// A prediction takes some 50 ns a product, so that all of them take 0.1 s at the most, unless a row
// is longer than kPredictedProducts.
constexpr int kPredictedElements = 1024;
constexpr std::int64_t kPredictedProducts = std::int64_t{1} << 21;

}  // namespace

BitCheck check_bits(const CaseInput& input, Plan& plan) {
  BitCheck check;
  auto* const sums = dynamic_cast<OrderedSums*>(&plan);
  if (sums == nullptr || input.problem.nnz() == 0) return check;
  const KernelInfo kernel = input.choice->info();
  const Problem& problem = input.problem;
  const CsrMatrix& a = *problem.a;
  const DenseView &b = input.operands->b, &c = input.operands->c;
  const auto place = [](const DenseView& view, std::int64_t i, std::int64_t j) {
    return view.layout == Layout::row_major ? i * view.ld + j : j * view.ld + i;
  };
  std::mt19937_64 random{std::random_device{}()};
  const auto below = [&](std::int64_t n) {
    return std::uniform_int_distribution<std::int64_t>(0, n - 1)(random);
  };
  std::int64_t products = 0;
  for (int i = 0; i < kPredictedElements && products < kPredictedProducts; ++i) {
    const std::int64_t row = below(a.rows), column = below(c.cols);
    const std::int64_t row_of_c = problem.row_ids.empty() ? row : problem.row_ids[row];
    const std::optional<SumOrder> order = sums->sum_order(row, column);
    if (!order) continue;
    std::function<float(std::int64_t)> scale_of_blocks;
    if (has_block_scales(problem.precision))
      scale_of_blocks = [&](std::int64_t k) {
        return block_scale(a, row, k) * input.operands->block_scale_of_b(k, column);
      };
    const std::vector<float> sums_of_order = predicted_sums(
        *order, kernel, problem.precision, a,
        [&](std::int64_t k) { return input.operands->value_of_b(place(b, k, column)); },
        a.scale * b.scale, scale_of_blocks);
    if (sums_of_order.empty()) continue;
    std::uint64_t raw = 0;  // an element of any type
    input.device->download(
        &raw,
        static_cast<const unsigned char*>(c.data) + place(c, row_of_c, column) * bytes_of(c.type),
        bytes_of(c.type));
    const auto is_stored = [&](float sum) {
      return same_bits(load_element(c.type, &raw, 0), decode(c.type, encode(c.type, sum)));
    };
    check.equal += std::ranges::any_of(sums_of_order, is_stored) ? 1 : 0;
    ++check.predicted;
    products += static_cast<std::int64_t>(order->entries.size());
  }
  return check;
}

}  // namespace spmmbench
