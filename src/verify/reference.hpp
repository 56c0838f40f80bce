#pragma once
// The reference in fp64, of products in fp64 as two terms (spmmbench/reference_sum.hpp), on the
// device where the result lies, and the checksum of B on which it relies.

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/word_hash.hpp"
#include "spmmbench/matrix.hpp"
#include "spmmbench/verdict.hpp"

namespace spmmbench {

// `a`, `row_ids` (row i of `a` is row row_ids[i] of C; empty: identity) and the memory of `b` must
// outlive the checker. `copy`: of both in this device's memory, for other references of them; none
// yet where it is null.
std::unique_ptr<ReferenceChecker> make_reference(const CsrMatrix& a,
                                                 std::span<const std::int32_t> row_ids,
                                                 const DenseView& b, Device& device,
                                                 std::shared_ptr<void>* copy = nullptr);

// For each of these memories of the device the sum of word_hash over its words.
std::vector<std::uint64_t> checksums(std::span<const ByteSpan> memories, Device& device);

// Likewise of host memory.
std::vector<std::uint64_t> checksums_on_host(std::span<const ByteSpan> memories);

// Element (i, j) of a matrix in host memory, as double.
double element_at(const DenseView& view, std::int64_t i, std::int64_t j);

}  // namespace spmmbench
