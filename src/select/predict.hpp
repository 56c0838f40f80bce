#pragma once
// What a kernel would take on a matrix it has not run: a sum of terms, each an amount of work over
// the rate of the device that does it, times a coefficient of the kernel. The terms say what is
// counted; coefficients.hpp has what scripts/fit_selection.py made of recorded runs.

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "select/device_model.hpp"
#include "select/features.hpp"
#include "spmmbench/precision.hpp"
#include "spmmbench/problem.hpp"

namespace spmmbench {

// The work that a kernel's time is made of. All terms but `launch` grow with the matrix; each is in
// microseconds at the device's rates, so that a coefficient of 1 is the ideal.
struct Terms {
  static constexpr int kCount = 17;
  double launch = 1;         // 1: the fixed cost of a launch
  double a_csr = 0;          // A in CSR, from memory
  double b = 0;              // B once, from memory
  double c = 0;              // C once in fp32, to memory
  double gather_rows = 0;    // a row of B per nonzero, from the L2 cache
  double gather_spill = 0;   // the part of these that the L2 cache cannot hold, from memory
  double gather_window = 0;  // a row of B per column of a window, at the best height
  double tiles = 0;          // tiles of 16 columns and 128 bytes of B, 100 per multiprocessor
  double nonzeros = 0;       // nonzeros times groups of 256 bytes of B, 100 per multiprocessor
  double rows = 0;           // rows times groups of 256 bytes of B, 100 per multiprocessor
  double longest_row = 0;    // thousands of nonzeros in the longest row, 4 at most
  double variation = 0;      // of the row lengths, 3 at most
  double dense_flops = 0;    // the product with A's zeros, 128 x 128 tiles of C in whole waves
  double dense_a = 0;        // A with its zeros, from memory
  double block_steps = 0;    // 64-column blocks that the busiest SM walks, 128 x 256 of C at a time
  double dense_depth = 0;    // thousands of columns that one tile of the dense product walks
  double dense_odd = 0;      // the same where N or the columns of A are no multiple of 8
};

Terms terms_of(const MatrixFeatures& features, std::int64_t n, Precision precision,
               const DeviceModel& device);
// In the order of the struct, with their names.
std::array<std::pair<const char*, double>, Terms::kCount> named(const Terms& terms);

struct Prediction {
  double us = 0;          // per call
  double prepare_ms = 0;  // once
  // `us` times the kernel's margin: what kernels are ranked by. The margin makes up for predictions
  // that are too kind on some matrices and too harsh on others.
  double rank_us = 0;
};

// `candidate` is a kernel's Spec as the table of coefficients names it. Nothing where the table has
// no coefficients for it at this precision: such a kernel is no candidate.
std::optional<Prediction> predict(std::string_view candidate, const MatrixFeatures& features,
                                  std::int64_t n, Precision precision, const DeviceModel& device);

// Every kernel that the table knows at this precision.
std::vector<std::string> candidates(Precision precision);

}  // namespace spmmbench
