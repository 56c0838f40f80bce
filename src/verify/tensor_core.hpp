#pragma once
// The arithmetic of wgmma and mma on compute capability 9.0, to the bit: fp16, bf16, tf32 and e4m3
// (wgmma alone) with sums in fp32. NVIDIA does not describe it; MMA-Sim (arXiv 2511.10909) found it
// out, and tests/device/tensor_core_cuda_test.cpp asks the device, which differs in one point: an
// accumulator of zero has no exponent, and the least one of terms is -133. One instruction adds the
// products of all its k to the accumulator at once:
//
//   1. Products are exact. A subnormal input counts with the least exponent of its type, and the
//      exponent of a product is the sum of both: its significand lies below 4.
//   2. All terms, products and accumulator, are aligned to the largest exponent among them, -133 at
//      the least, and truncated behind `aligned_bits` fraction bits. Zeros have no exponent.
//   3. The sum of what is left is exact, and truncated to `result_bits` fraction bits of fp32.
//      Subnormal results stay, a sum of zero is +0, one of 2^128 or more infinity.
//
// Infinity and NaN are as IEEE 754 has them, each NaN 0x7FFFFFFF.

#include <span>

#include "spmmbench/precision.hpp"

namespace spmmbench {

struct TensorCore {
  int least_exponent;  // of an input
  int aligned_bits, result_bits;
};

// The tensor core of a precision; there is none for fp32 and fp64.
constexpr TensorCore tensor_core(Precision precision) {
  const bool eight_bits = is_scaled(precision);
  const int least = visit_element(storage_type(precision), [](auto e) { return 1 - e.kBias; });
  return {least, eight_bits ? 13 : 25, eight_bits ? 13 : 23};
}

// The accumulator after one instruction. `a` and `b` are of one length, at most its k (fp16 and
// bf16: 16, tf32: 8, e4m3: 32; wgmma.sp twice as many); what is missing counts as zero.
float multiply_accumulate(const TensorCore& core, std::span<const float> a,
                          std::span<const float> b, float accumulator);

}  // namespace spmmbench
