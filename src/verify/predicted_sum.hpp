#pragma once
// An element of C to the bit, where the plan states its order of sums (spmmbench/sum_order.hpp).

#include <cstdint>
#include <functional>
#include <span>

#include "spmmbench/kernel.hpp"
#include "spmmbench/matrix.hpp"
#include "spmmbench/sum_order.hpp"

namespace spmmbench {

// `a` and `b` have the values that A and B store, `b` those of a column by row. `scale`: of A times
// that of B, in fp32. The result is not yet rounded to the type of C.
float predicted_sum(const SumOrder& order, const KernelInfo& kernel, Precision precision,
                    const CsrMatrix& a, const std::function<double(std::int64_t k)>& b,
                    float scale);

// The same number, or a NaN where a NaN is meant.
bool same_bits(double got, double predicted);

}  // namespace spmmbench
