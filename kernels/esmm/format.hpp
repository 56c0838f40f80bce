#pragma once
// Operand patterns of ESMM: which indices of the inner dimension hold a nonzero in a strip of 32
// rows of A or 32 columns of B. The kernels extract them on the device, in this layout; here are
// their statistics.

#include <cstdint>
#include <vector>

#include "spmmbench/format.hpp"

namespace spmmbench::esmm {

struct OperandPattern {
  static constexpr int kStrip = 32;    // rows of A, columns of B
  static constexpr int kByte = 8;      // inner indices per pattern byte of the source
  static constexpr int kChunk = 1024;  // a strip's bits are padded with zeros to a multiple of this

  std::int64_t length = 0;          // the inner dimension, K
  std::int64_t strips = 0;          // ceil(outer dimension / kStrip)
  std::int64_t words = 0;           // per strip
  std::vector<std::uint32_t> bits;  // [strips][words]; bit k % 32 of word k / 32 is index k

  // A pattern of this many rows of A, or columns of B, over an inner dimension of `length`, without
  // bits.
  static OperandPattern of_shape(std::int64_t outer, std::int64_t length);
  // The statistics of the rows of A without the bits, which take rows x columns / 256 bytes.
  // Explicit zeros, -0 too, set no bit.
  static FormatStats stats_of_rows(const CsrMatrix& a);

  std::int64_t set_bits() const;
  std::int64_t set_bytes() const;  // pattern bytes that are not zero
  FormatStats stats(std::int64_t nnz) const;
};

// The share of the work that patterns leave. A unit of work is `group_a` x `group_b` strips of C by
// `step` inner indices (1 or kByte). It is needed when one of its indices is set in any of its
// strips of A and in any of its strips of B. Returns needed / all units, 0 when there are none.
double needed_fraction(const OperandPattern& a, const OperandPattern& b, int group_a, int group_b,
                       int step);

}  // namespace spmmbench::esmm
