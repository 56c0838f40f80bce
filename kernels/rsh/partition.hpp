#pragma once
// Which rows go to tensor cores and which to CUDA cores (RSH-SpMM, Algorithm 1).

#include <cstdint>
#include <vector>

#include "spmmbench/matrix.hpp"

namespace spmmbench::rsh {

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
  std::vector<std::int32_t> window_row;  // nw: first row, ascending
  std::vector<std::uint64_t> row_bits;   // bit per row: it stands in a window
  std::vector<std::int32_t> residual;    // nonempty rows for CUDA cores, ascending
};

// A window ends at `window_rows` rows, or where its rows would span more than 64 (long runs of
// empty or residual rows). O(nnz) with a counting table per thread (cols bytes). The scan restarts
// every 65536 rows so that chunks are independent: the same result whatever the thread count.
RsPartition partition_rows(const CsrMatrix& matrix, const RsPartitionOptions& options);

}  // namespace spmmbench::rsh
