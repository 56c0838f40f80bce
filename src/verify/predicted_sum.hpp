#pragma once
// An element of C to the bit, where the plan states its order of sums (spmmbench/sum_order.hpp).

#include <cstdint>
#include <functional>
#include <vector>

#include "spmmbench/kernel.hpp"
#include "spmmbench/matrix.hpp"
#include "spmmbench/sum_order.hpp"

namespace spmmbench {

// The sums that the order allows, each once: one, or several where three terms or more are added as
// they come. None where these are more than kMostAsTheyCome. `a` and `b` have the values that A and
// B store, `b` those of a column by row. `scale`: of A times that of B, in fp32. `block_scale`: of
// the block of A times that of the block of B that column k of A meets, likewise; a part is then
// multiplied by it and added in one rounding. The results are not yet rounded to the type of C.
constexpr std::size_t kMostAsTheyCome = 6;  // 720 orders, of 64 sets of terms
std::vector<float> predicted_sums(const SumOrder& order, const KernelInfo& kernel,
                                  Precision precision, const CsrMatrix& a,
                                  const std::function<double(std::int64_t k)>& b, float scale,
                                  const std::function<float(std::int64_t k)>& block_scale = {});

// The same number, or a NaN where a NaN is meant.
bool same_bits(double got, double predicted);

}  // namespace spmmbench
