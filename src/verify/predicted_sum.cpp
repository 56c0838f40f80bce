#include "verify/predicted_sum.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>

#include "verify/tensor_core.hpp"

namespace spmmbench {
namespace {

// What a sum may be, each value once.
using Sums = std::vector<float>;

void sort_unique(Sums& sums) {
  const auto bits = [](float x) { return std::bit_cast<std::uint32_t>(x); };
  std::ranges::sort(sums, {}, bits);
  const auto rest = std::ranges::unique(sums, {}, bits);
  sums.erase(rest.begin(), rest.end());
}

void add_all(const Sums& x, const Sums& y, Sums& out) {
  for (const float a : x)
    for (const float b : y) out.push_back(a + b);
}

Sums in_order(std::span<const Sums> terms) {
  const auto is_known = [](const Sums& term) { return term.size() == 1; };
  if (std::ranges::all_of(terms, is_known)) {
    float sum = 0;
    for (const Sums& term : terms) sum += term[0];
    return {sum};
  }
  Sums sum = {0};
  for (const Sums& term : terms) {
    Sums next;
    add_all(sum, term, next);
    sort_unique(next);
    sum = std::move(next);
  }
  return sum;
}

// The sums of every set of terms, made from those of the sets with one term less.
Sums in_any_order(std::span<const Sums> terms) {
  const std::size_t sets = std::size_t{1} << terms.size();
  std::vector<Sums> of_set(sets);
  of_set[0] = {0};
  for (std::size_t set = 1; set < sets; ++set) {
    for (std::size_t i = 0; i < terms.size(); ++i)
      if ((set >> i & 1) != 0) add_all(of_set[set ^ std::size_t{1} << i], terms[i], of_set[set]);
    sort_unique(of_set[set]);
  }
  return of_set.back();
}

float on_cuda_cores(std::span<const float> a, std::span<const float> b, float sum) {
  for (std::size_t i = 0; i < a.size(); ++i) sum = std::fma(a[i], b[i], sum);
  return sum;
}

std::vector<Sums> sums_of_parts(const SumOrder& order, const TensorCore& core,
                                std::span<const float> a, std::span<const float> b) {
  std::vector<Sums> parts;
  std::size_t entry = 0, instruction = 0;
  for (const std::size_t part_end : order.parts) {
    float part = 0;
    for (; instruction < part_end; ++instruction) {
      const std::size_t count = order.instructions[instruction] - entry;
      const auto of_a = a.subspan(entry, count), of_b = b.subspan(entry, count);
      part = order.on_cuda_cores ? on_cuda_cores(of_a, of_b, part)
                                 : multiply_accumulate(core, of_a, of_b, part);
      entry += count;
    }
    parts.push_back({part});
  }
  return parts;
}

// The sum of parts that each lie within one block of A and of B.
float scaled_sum(const SumOrder& order, const std::vector<Sums>& parts, const CsrMatrix& a,
                 const std::function<float(std::int64_t k)>& block_scale) {
  float sum = 0;
  std::size_t entry = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::size_t end = order.parts[i] == 0 ? 0 : order.instructions[order.parts[i] - 1];
    if (end > entry) sum = std::fma(parts[i][0], block_scale(a.col_idx[order.entries[entry]]), sum);
    entry = end;
  }
  return sum;
}

}  // namespace

std::vector<float> predicted_sums(const SumOrder& order, const KernelInfo& kernel,
                                  Precision precision, const CsrMatrix& a,
                                  const std::function<double(std::int64_t k)>& b, float scale,
                                  const std::function<float(std::int64_t k)>& block_scale) {
  for (const SumOrder::Level& level : order.levels)
    if (level.as_they_come && level.terms > kMostAsTheyCome) return {};
  const bool as_fp16 = is_scaled(precision) && kernel.promoted_columns == 1;
  std::vector<float> of_a, of_b;
  for (const std::int64_t entry : order.entries) {
    of_a.push_back(a.values[entry]);
    of_b.push_back(static_cast<float>(b(a.col_idx[entry])));
  }
  std::vector<Sums> terms =
      sums_of_parts(order, tensor_core(as_fp16 ? Precision::fp16 : precision), of_a, of_b);
  if (block_scale) return {scaled_sum(order, terms, a, block_scale)};
  for (const SumOrder::Level& level : order.levels) {
    std::vector<Sums> next;
    for (std::size_t at = 0; at < terms.size(); at += level.terms) {
      const auto group = std::span(terms).subspan(at, std::min(level.terms, terms.size() - at));
      next.push_back(level.as_they_come ? in_any_order(group) : in_order(group));
    }
    terms = std::move(next);
  }
  Sums sums = in_order(terms);
  if (is_scaled(precision))
    for (float& sum : sums) sum *= scale;
  return sums;
}

bool same_bits(double got, double predicted) {
  if (std::isnan(predicted)) return std::isnan(got);
  return std::bit_cast<std::uint64_t>(got) == std::bit_cast<std::uint64_t>(predicted);
}

}  // namespace spmmbench
