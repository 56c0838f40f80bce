#pragma once
// Which rows go to tensor cores and which to CUDA cores (RSH-SpMM, Algorithm 1).

#include <cstdint>
#include <vector>

#include "spmmbench/matrix.hpp"

namespace spmmbench {

// Delta(r) = columns of row r that no row of r+1 .. r+W-1 holds. Among rows of at most tau_nnz
// nonzeros the residual takes those with
enum class RsRule {
  printed,  // Delta <= tau_delta: the paper's algorithm as printed ("low impact")
  overlap,  // nnz - Delta <= tau_delta: the rows its sensitivity study describes ("weak overlap")
};

enum class RsMembers {
  consecutive,  // a window takes all of r .. r+W-1, as in Algorithm 1; the scan jumps over them
  collected,    // every row is tried; windows are filled with the rows that are left
};

struct RsPartitionOptions {
  int window_rows = 8;
  RsRule rule = RsRule::overlap;
  RsMembers members = RsMembers::collected;
  int tau_delta = 0;
  int tau_nnz = 0;  // 0: no residual rows
};

struct RsPartition {
  std::vector<std::int32_t> window_row;  // nw: first row
  std::vector<std::uint8_t> row_delta;   // nw * window_rows, as in RsTile
  std::vector<std::int32_t> residual;    // nonempty rows for CUDA cores, ascending
  std::vector<std::int32_t> empty;       // rows without entries that stand in no window, ascending
};

// O(nnz) with a counting table per thread (cols bytes). The scan restarts every 65536 rows so that
// chunks are independent: the same result whatever the thread count.
RsPartition partition_rows(const CsrMatrix& matrix, const RsPartitionOptions& options);

}  // namespace spmmbench
