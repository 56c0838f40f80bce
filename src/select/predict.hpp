#pragma once
// Predicts how long a kernel takes on a matrix that it has not run. The prediction is a sum of
// terms. Each term is an amount of work over the device's rate for such work, times a coefficient
// of the kernel. The terms are here; the coefficients, which scripts/fit_selection.py fits to
// recorded runs, are in coefficients.hpp.

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "select/device_model.hpp"
#include "select/features.hpp"
#include "spmmbench/precision.hpp"
#include "spmmbench/problem.hpp"

namespace spmmbench {

// Amounts of work. Where no other unit is named they are the microseconds that the work takes at
// the device's rates, so that an ideal kernel has the coefficient 1. Counts of "100 per
// multiprocessor" are 1 when every multiprocessor has 100 of them.
struct Terms {
  double launch = 1;           // 1: the fixed cost of a launch
  double a_csr = 0;            // A in CSR, from memory
  double b = 0;                // B once, from memory
  double c = 0;                // C once in fp32, to memory
  double spill = 0;            // the part of A, B and C that the L2 cache cannot hold, from memory
  double gather_rows = 0;      // a row of B per nonzero, from the L2 cache
  double gather_distinct = 0;  // the same, once for 8 rows of A that have the column
  double gather_spill = 0;     // the part of gather_rows that the L2 cache cannot hold, from memory
  double gather_window = 0;    // a row of B per column of a window, as async_wcsr has them
  double tiles = 0;            // tiles of 16 columns and 128 bytes of B, 100 per multiprocessor
  double window_parts = 0;     // tens of CTAs that add up one window, beyond the first
  double window_depth = 0;     // tens of tiles of one window that a warp walks one after the other
  double nonzeros = 0;         // nonzeros times groups of 256 bytes of B, 100 per multiprocessor
  double loads = 0;            // nonzeros times groups of 16 bytes of B, 100 per multiprocessor
  double rows = 0;             // rows times groups of 256 bytes of B, 100 per multiprocessor
  double filled_rows = 0;      // the same without empty rows, where async_wcsr leaves them out
  double longest_row = 0;      // thousands of nonzeros in the longest row, 4 at most
  double variation = 0;        // of the row lengths, 3 at most
  double uneven_rows = 0;      // gather_rows times the variation, of which 2 counts at most
  double mean_row = 0;         // hundreds of nonzeros of a row, 2.56 at most
  double dense_flops = 0;      // the product with A's zeros
  double dense_a = 0;          // A with its zeros, from memory
  double dense_spill = 0;      // the part of it that the L2 cache cannot hold
  double dense_depth = 0;      // thousands of columns that one tile of the dense product walks
  double dense_odd = 0;        // the same where a line of A or B is no multiple of 16 bytes
  double dense_a_odd = 0;      // dense_a in the same case
  double block_steps = 0;   // 64-column blocks that the busiest SM walks, 128 x 256 of C at a time
  double block_spill = 0;   // the part of these blocks that the L2 cache cannot hold, from memory
  double positions = 0;     // millions of entries of A times tiles of 256 columns, per SM
  double bitmap_spill = 0;  // bits and words that the L2 cache cannot hold, from memory
  double slots = 0;  // slots that gather_mma reads in all its passes, 100,000 per multiprocessor
  double slot_groups = 0;     // the same for each group of 8 columns
  double slot_passes = 0;     // how often gather_mma reads A
  double packed = 0;          // two of every four entries with their indices, from memory
  double packed_spill = 0;    // the part of these that the L2 cache cannot hold
  double cluster_us = 0;      // what dense_cluster expects of its division of the product
  double cluster_copies = 0;  // what all CTAs of it copy, from the L2 cache
  double gaps = 0;            // nonzeros and the gaps between them (gap_slices), from memory
  double gap_spill = 0;       // the part of these that the L2 cache cannot hold
  // gather_window and tiles once rows that resemble each other are brought together
  double ordered_gather = 0, ordered_tiles = 0;
  // 1 where 32 neighbouring rows have no column in common, less where they do (jagged_slices)
  double scattered = 0;
  // gather_rows and scattered once such rows are brought together
  double ordered_rows = 0, ordered_scattered = 0;
};

// `layout`: of B and C.
Terms terms_of(const MatrixFeatures& features, std::int64_t n, Layout layout, Precision precision,
               const DeviceModel& device);

// The terms of the time of preparation.
struct PrepareTerms {
  double constant = 1;
  double nonzeros = 0;  // millions
  double rows = 0;      // millions
  double entries = 0;   // millions of entries of A, zeros included
  double stored = 0;    // millions of entries of 128 x 64 blocks
  // The first three again where a kernel that can search for a row order would do so, else 0.
  double search = 0, search_nonzeros = 0, search_rows = 0;
};

PrepareTerms prepare_terms_of(const MatrixFeatures& features, std::int64_t n, Precision precision);

// Name and value of every term, in the order of the table's columns (coefficients.hpp).
std::vector<std::pair<std::string, double>> named_terms(const Terms& terms);
std::vector<std::pair<std::string, double>> named_terms(const PrepareTerms& terms);

struct Prediction {
  double us = 0;          // per call
  double prepare_ms = 0;  // once
  // Kernels are ranked by this: `us` times the kernel's margin. The margin makes up for predictions
  // that are too low on some matrices and too high on others.
  double rank_us = 0;
};

enum class Standing {
  left_out,  // the kernel cannot gain on such a matrix, or not be prepared in reasonable time
  trial,  // it is not expected to gain over its natural order: to be run only where it is measured
  full,
};

struct Candidate {
  std::string_view name;  // a kernel's Spec, as in the table of coefficients
  Prediction prediction;
  Standing standing = Standing::full;
};

// Candidates that are trials where rows hardly overlap (`row_overlap`).
inline constexpr std::string_view kWindowsSearch = "async_wcsr?order=search";
inline constexpr std::string_view kSlicesSearch = "jagged_slices?order=search";

// The standing of a kernel, a Spec as in the table, for N = `n`.
Standing standing_of(std::string_view kernel, const MatrixFeatures& features, std::int64_t n);

// Every kernel that the table has coefficients for at this precision and N, without those that are
// left out.
std::vector<Candidate> predict(const MatrixFeatures& features, std::int64_t n, Layout layout,
                               Precision precision, const DeviceModel& device);

}  // namespace spmmbench
