#pragma once
// The operands of the exact test. A and B keep their structure. Of each product one factor is
// n/2^w with 1 <= |n| <= wide and the other m/2^v with 1 <= |m| <= narrow, so a product is a
// multiple of one unit, 2^-(w+v), of at most wide * narrow units. So is every partial sum in any
// order. All stay below 2^24 units, so fp32 holds each exactly, in fp64 below 2^53. So do tensor
// cores, which align terms to the largest one and keep 24 bits. The result of a correct kernel is
// therefore equal to the reference. `wide` fills the precision's significand, or 13 bits of fp32's
// and 42 of fp64's, as long as the longest row allows it: up to 1,024 nonzeros in fp32 and fp64.
// Where sums are kept in fp16, they stay below 2^11 units, and below 2^14 where tensor cores add up
// products of fp8. If those of 128 columns at most go to fp32, they are below it anyway, since 15 *
// 7 units are the largest product.

#include <cstdint>
#include <optional>
#include <span>

#include "spmmbench/matrix.hpp"
#include "spmmbench/precision.hpp"
#include "spmmbench/random.hpp"

namespace spmmbench {

// The values that the longest row allows, where sums have `sum_bits` (verify/bound.hpp). None where
// even products of one unit could add up to 2^sum_bits units.
std::optional<Lattice> make_lattice(std::uint64_t seed, std::int64_t longest_row,
                                    Precision precision, int sum_bits = 24);

// A with lattice values. Row i of `a` is row row_ids[i] of the original, or row i where row_ids is
// empty; the values of a row do not depend on the order of rows.
CsrMatrix with_lattice_values(const CsrMatrix& a, std::span<const std::int32_t> row_ids,
                              const Lattice& lattice);

// B with lattice values wherever `b` is not zero. Each has values in fp64 where the argument has.
DenseMatrix with_lattice_values(const DenseMatrix& b, const Lattice& lattice);

// Whether no nonzero of A has a row of B with a value other than zero. Every product is then zero,
// whatever a kernel leaves out.
bool only_zero_products(const CsrMatrix& a, const DenseMatrix& b);

// B, K x n, for an A that keeps its values. An element of C is at most one product, a(i, k) or
// -a(i, k), so that it is exact in every precision and in sums of every type. Each column of B has
// a nonzero for as many columns of A as a random choice finds of which no two share a row. None
// where A has values that are not finite, which would meet zeros.
std::optional<DenseMatrix> with_one_product(const CsrMatrix& a, std::int64_t n, std::uint64_t seed);

}  // namespace spmmbench
