#include "measure/bit_checks.hpp"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <random>
#include <span>
#include <utility>
#include <vector>

#include "core/block_scales.hpp"
#include "gpu/backend.hpp"
#include "spmmbench/sum_order.hpp"
#include "verify/predicted_sum.hpp"

namespace spmmbench {
namespace {

// A prediction takes some 50 ns a product, so that all of them take 0.1 s at the most, unless a row
// is longer than kPredictedProducts.
constexpr int kPredictedElements = 1024;
constexpr std::int64_t kPredictedProducts = std::int64_t{1} << 21;

// An element of C, and what its sum may be.
struct Predicted {
  const unsigned char* at;
  std::vector<float> sums;
};

std::int64_t count_equal(std::span<const Predicted> elements, ElementType type, Device& device) {
  const auto is_equal = [&](const Predicted& element, const unsigned char* stored) {
    const double got = load_element(type, stored, 0);
    return std::ranges::any_of(
        element.sums, [&](float sum) { return same_bits(got, decode(type, encode(type, sum))); });
  };
  std::int64_t equal = 0;
  const bool on_gpu = device.info().kind == DeviceKind::cuda;
  while (!elements.empty()) {
    const auto now = elements.first(std::min(elements.size(), kMostPieces));
    std::vector<const unsigned char*> places;
    for (const Predicted& element : now) places.push_back(element.at);
    const unsigned char* const read = on_gpu ? cuda_read(places, device) : nullptr;
    device.synchronize();
    for (std::size_t i = 0; i < now.size(); ++i)
      equal += is_equal(now[i], on_gpu ? read + i * kPieceBytes : now[i].at) ? 1 : 0;
    elements = elements.subspan(now.size());
  }
  return equal;
}

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
  std::vector<Predicted> elements;
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
    std::vector<float> sums_of_order = predicted_sums(
        *order, kernel, problem.precision, a,
        [&](std::int64_t k) { return input.operands->value_of_b(place(b, k, column)); },
        a.scale * b.scale, scale_of_blocks);
    if (sums_of_order.empty()) continue;
    elements.push_back(
        {static_cast<const unsigned char*>(c.data) + place(c, row_of_c, column) * bytes_of(c.type),
         std::move(sums_of_order)});
    products += static_cast<std::int64_t>(order->entries.size());
  }
  check.predicted = static_cast<std::int64_t>(elements.size());
  check.equal = count_equal(elements, c.type, *input.device);
  return check;
}

}  // namespace spmmbench
