#pragma once
// B and C of a case on a device.

#include <cstdint>
#include <string>

#include "spmmbench/device.hpp"
#include "spmmbench/matrix.hpp"
#include "spmmbench/precision.hpp"

namespace spmmbench {

inline constexpr unsigned char kPoison = 0xFF;  // all ones is a NaN in fp32, fp16 and bf16

// B and C of one (device, K, M, N, precision, layout, C type). Shared by the cases of a group. C
// stands between two guards, which no kernel may write to.
struct Operands {
  Buffer b_memory, c_memory;
  DenseView b, c;
};

inline constexpr std::size_t kGuardBytes = std::size_t{64} << 10;

// A sentence that says where the guards of C were overwritten; empty when they were not. Restores
// the guards.
std::string damage_around_c(const Operands& operands, Device& device);

// `host_b` is uploaded, rounded to the precision, when not null; else B is drawn from the seed.
Operands make_operands(const CsrMatrix& a, std::int64_t n, Precision precision, ElementType c_type,
                       Layout layout, const DenseMatrix* host_b, std::uint64_t seed,
                       Device& device);

// Rounded to the precision; the padding becomes NaN.
void upload_rounded(const DenseMatrix& host, const DenseView& view, Precision precision,
                    Device& device);

}  // namespace spmmbench
