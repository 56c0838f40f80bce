#pragma once
// B and C of a case on a device.

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "spmmbench/block_scales.hpp"
#include "spmmbench/device.hpp"
#include "spmmbench/kernel.hpp"
#include "spmmbench/matrix.hpp"
#include "spmmbench/precision.hpp"
#include "spmmbench/problem.hpp"
#include "spmmbench/update.hpp"

namespace spmmbench {

// B and C for one device, K, M, N, precision, layout and type of C. The cases of a group share
// them. C lies between two guards, to which no kernel may write.
//
// Behind B lie a few lines more, so that there are several views of it, all in nearly the same
// memory: view i begins i * view_step bytes behind B. No element of one is the same element of
// another.
struct Operands {
  Buffer b_memory, c_memory;
  DenseView b, c;
  // The scales of the blocks of B, the same for every view; empty if blocks have none.
  std::vector<float> scales_of_b;
  Buffer scales_memory;          // the same
  std::size_t tail_bytes = 0;    // behind C, which OperandForm::c_row_multiple lets a kernel write
  int views = 1;                 // of B
  std::size_t view_step = 0;     // a multiple of 256
  std::function<void()> fill_b;  // and what lies behind it, with what it was made with
  std::function<double(std::int64_t at)> value_of_b;  // element `at` of its memory, as it was made
  std::uint64_t b_checksum = 0;                       // of all of it
  std::uint64_t guard_checksum = 0;                   // of each guard of C

  DenseView b_view(int i) const {
    DenseView view = b;
    view.data = static_cast<unsigned char*>(b.data) + i * view_step;
    return view;
  }
  float block_scale_of_b(std::int64_t k, std::int64_t j) const {
    return scales_of_b.empty() ? 1 : scales_of_b[scale_at_b(k, j, b.cols)];
  }
  // The size of each guard: as many rows as a tile may write behind the end of C, up to 1/32 of C,
  // and at least 64 KiB.
  std::size_t guard_bytes() const;
};

// What no product contains: NaN, or finite numbers too large for one. A kernel that looks for NaN
// in C finds none in the second.
enum class Poison { nan, large };

// Fills C, before a launch of the kernel. For a kernel that ignores the stream, this returns when C
// is filled.
void poison(const DenseView& c, const KernelInfo& kernel, Device& device,
            Poison with = Poison::nan);

// C before a launch of this update: its values where the launch reads them, else poison.
void start_c(const DenseView& c, const Update& update, const KernelInfo& kernel, Device& device,
             Poison with = Poison::nan);

// The values that C has before launches with these scalars.
StartOfC drawn_c(ElementType c_type, std::uint64_t seed);

// Whether B and the guards of C are seen to be as they were made, at one look. Where this is false,
// wrote_to_b and damage_around_c say more.
bool is_intact(const Operands& operands, Device& device);

// Says in a sentence where the guards of C were overwritten; empty when they were not. Restores the
// guards.
std::string damage_around_c(const Operands& operands, Device& device);

// A checksum of all arrays of A, and of its copy on the device if there is one.
std::uint64_t checksum_of_a(const SparseOperand& a, Device& device);

// Whether a kernel wrote to B, which the reference and all kernels of the group read. Fills B again
// where one did.
bool wrote_to_b(const Operands& operands, Device& device);

// A view without memory for B, K x n. `packed`: its lines follow each other without a gap, as those
// of other libraries do; else as make_b_view has them.
DenseView make_operand_b(std::int64_t k, const Shape& shape, Precision precision, bool packed);

// Uploads `host_b`, rounded to the precision; where it is null, B is drawn from the seed. Throws
// OutOfMemory, before anything is allocated, where both do not fit. `host_b` and `device` must
// outlive the operands. `rows`, with a number for each column of A: row i of a row-major B is row
// rows[i] of the one that is drawn, and zero where that is -1.
Operands make_operands(const CsrMatrix& a, std::int64_t n, Precision precision, ElementType c_type,
                       Layout layout, const DenseMatrix* host_b, std::uint64_t seed, Device& device,
                       const OperandForm& form = {}, std::span<const std::int32_t> rows = {});

// Uploads B, rounded to the precision, and from its first rows and columns on once more where the
// view has more of them. The padding becomes NaN. `block_scales`: of `host`, which is divided by
// them; empty: it is not.
void upload_rounded(const DenseMatrix& host, const DenseView& view, Precision precision,
                    Device& device, const std::vector<float>& block_scales = {});

// The reason of a case that needs more bytes than are free.
std::string out_of_memory(const Device& device, std::size_t needed);

}  // namespace spmmbench
