#pragma once
// The host-side matrices. A sparse matrix is CSR with 64-bit row pointers and 32-bit columns; a
// dense one is row-major. Values are fp32; beside them stands what they are in fp64 where a run
// multiplies in fp64.

#include <cstdint>
#include <string>
#include <vector>

namespace spmmbench {

// Compressed sparse rows. Columns ascending within a row, no duplicates; explicit zeros are kept as
// entries.
struct CsrMatrix {
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::vector<std::int64_t> row_ptr = {0};  // rows + 1
  std::vector<std::int32_t> col_idx;        // nnz, each in [0, cols)
  std::vector<float> values;                // nnz
  std::vector<double> values64 = {};        // nnz, or empty
  float scale = 1;  // an element is this times its value (is_scaled in precision.hpp)
  // An element is also this times its block's. Empty: blocks have no scales (block_scales.hpp).
  std::vector<float> block_scales = {};

  std::int64_t nnz() const { return row_ptr.back(); }
  std::int64_t row_length(std::int64_t row) const { return row_ptr[row + 1] - row_ptr[row]; }
  double value(std::int64_t entry) const {
    return values64.empty() ? values[entry] : values64[entry];
  }
  bool operator==(const CsrMatrix&) const = default;
};

// A matrix on the host that is made when it is first asked for, such as a copy of one on a device.
class LazyCsr {
 public:
  virtual ~LazyCsr() = default;
  virtual const CsrMatrix& get() = 0;  // the same at every call; throws what making it throws
};

// Points to a matrix on the host: to one that is there, or to one that is made when it is read.
class HostCsr {
 public:
  HostCsr(const CsrMatrix* matrix = nullptr) : matrix_(matrix) {}
  explicit HostCsr(LazyCsr* lazy) : lazy_(lazy) {}

  const CsrMatrix* get() const { return lazy_ != nullptr ? &lazy_->get() : matrix_; }
  const CsrMatrix& operator*() const { return *get(); }
  const CsrMatrix* operator->() const { return get(); }
  bool is_lazy() const { return lazy_ != nullptr; }

 private:
  const CsrMatrix* matrix_ = nullptr;
  LazyCsr* lazy_ = nullptr;
};

// Dense, row-major: element (i, j) is values[i * cols + j].
struct DenseMatrix {
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::vector<float> values;          // rows * cols
  std::vector<double> values64 = {};  // rows * cols, or empty

  double value(std::int64_t at) const { return values64.empty() ? values[at] : values64[at]; }
  bool operator==(const DenseMatrix&) const = default;
};

// A sparse matrix as loaded or generated, with what identifies it in results.
struct NamedMatrix {
  std::string name;    // file stem, or the generator spec
  std::string source;  // path, or gen:SPEC
  // The hash of rows, cols, row_ptr, col_idx, and of the fp32 values unless `pattern`.
  std::string sha256;
  // The source held no values: they were drawn from U(-1, 1) by the run's seed.
  bool pattern = false;
  double load_ms = 0;
  CsrMatrix csr;
};

// Throws Error naming what is broken (row_ptr not ascending, column out of range, columns not
// ascending, sizes).
void validate(const CsrMatrix& matrix);

}  // namespace spmmbench
