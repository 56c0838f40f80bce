#include "cli/inspection_bytes.hpp"

#include <omp.h>

#include <cmath>

namespace spmmbench {

double inspection_bytes(const CsrMatrix& matrix) {
  // Measured, and held against what is allocated, by tests/memory/inspection_test.cpp: the largest
  // of all formats, where most of a matrix is rows, columns, nonzeros or positions.
  constexpr double kPerRow = 128;             // bitmap_values, where columns are few
  constexpr double kPerColumn = 32;           // the transposed pattern, and orders
  constexpr double kPerColumnAndThread = 12;  // slot_streams
  constexpr double kPerNonzero = 104;         // slot_streams, where nonzeros lie apart
  constexpr double kPerPosition = 2.4;        // bitmap_queues
  constexpr double kPanelRows = 16;           // of bitmap_queues, to which rows are padded
  constexpr double kMostPositions = 1 << 28;  // more are counted, not built
  const auto rows = static_cast<double>(matrix.rows), cols = static_cast<double>(matrix.cols);
  const double positions = std::ceil(rows / kPanelRows) * kPanelRows * cols;
  return kPerRow * rows + (kPerColumn + kPerColumnAndThread * omp_get_max_threads()) * cols +
         kPerNonzero * static_cast<double>(matrix.nnz()) +
         (positions > kMostPositions ? 0 : kPerPosition * positions);
}

}  // namespace spmmbench
