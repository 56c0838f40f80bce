#include "measure/bit_checks.hpp"

#include <algorithm>
#include <cstdint>
#include <exception>
#include <functional>
#include <optional>
#include <random>
#include <span>
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
  std::int64_t row, column;
  const unsigned char* at;
  std::vector<float> sums = {};
};

std::int64_t count_equal(std::span<const Predicted> elements, ElementType type, Device& device) {
  const auto is_equal = [&](const Predicted& element, const unsigned char* stored) {
    const double got = load_element(type, stored, 0);
    return std::ranges::any_of(
        element.sums, [&](float sum) { return same_bits(got, decode(type, encode(type, sum))); });
  };
  const bool on_gpu = device.info().kind == DeviceKind::cuda;
  std::vector<const unsigned char*> places;
  for (const Predicted& element : elements) places.push_back(element.at);
  const unsigned char* const read = on_gpu ? cuda_read(places, device) : nullptr;
  device.synchronize();
  std::int64_t equal = 0;
  for (std::size_t i = 0; i < elements.size(); ++i)
    equal += is_equal(elements[i], on_gpu ? read + i * kPieceBytes : places[i]) ? 1 : 0;
  return equal;
}

// Rows at random, as many as have that many products in all.
std::vector<std::int64_t> rows_to_predict(const CsrMatrix& a, std::mt19937_64& random) {
  std::uniform_int_distribution<std::int64_t> any(0, a.rows - 1);
  std::vector<std::int64_t> rows;
  std::int64_t products = 0;
  while (std::ssize(rows) < kPredictedElements && products < kPredictedProducts) {
    rows.push_back(any(random));
    products += a.row_length(rows.back());
  }
  return rows;
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
  std::uniform_int_distribution<std::int64_t> any_column(0, c.cols - 1);
  const std::vector<std::int64_t> rows = rows_to_predict(a, random);
  sums->will_ask(rows);
  std::vector<Predicted> elements;
  for (const std::int64_t row : rows) {
    const std::int64_t column = any_column(random);
    const std::int64_t row_of_c = problem.row_ids.empty() ? row : problem.row_ids[row];
    elements.push_back({row, column,
                        static_cast<const unsigned char*>(c.data) +
                            place(c, row_of_c, column) * bytes_of(c.type)});
  }
  const auto predict = [&](Predicted& element) {
    const std::optional<SumOrder> order = sums->sum_order(element.row, element.column);
    if (!order) return;
    std::function<float(std::int64_t)> scale_of_blocks;
    if (has_block_scales(problem.precision))
      scale_of_blocks = [&](std::int64_t k) {
        return block_scale(a, element.row, k) * input.operands->block_scale_of_b(k, element.column);
      };
    element.sums = predicted_sums(
        *order, kernel, problem.precision, a,
        [&](std::int64_t k) { return input.operands->value_of_b(place(b, k, element.column)); },
        a.scale * b.scale, scale_of_blocks);
  };
  std::exception_ptr error;
#pragma omp parallel for schedule(dynamic, 8)
  for (Predicted& element : elements) try {
      predict(element);
    } catch (...) {
#pragma omp critical
      error = std::current_exception();
    }
  if (error) std::rethrow_exception(error);
  std::erase_if(elements, [](const Predicted& element) { return element.sums.empty(); });
  check.predicted = static_cast<std::int64_t>(elements.size());
  check.equal = count_equal(elements, c.type, *input.device);
  return check;
}

}  // namespace spmmbench
