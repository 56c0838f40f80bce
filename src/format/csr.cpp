// Compressed sparse rows with 32-bit row pointers, as cuSPARSE and the compared papers store them.

#include "spmmbench/format.hpp"
#include "spmmbench/registry.hpp"

namespace spmmbench::csr {
namespace {

class Csr final : public Format {
 public:
  std::string name() const override { return "csr"; }
  std::string summary() const override { return "compressed sparse rows, 32-bit row pointers"; }
  FormatStats analyze(const CsrMatrix& matrix, const Options& /*options*/) const override {
    FormatStats out;
    out.name = name();
    out.index_bytes = 4 * matrix.nnz() + 4 * (matrix.rows + 1);
    out.bytes = out.index_bytes + 4 * matrix.nnz();
    out.stored = matrix.nnz();
    return out;
  }
};

SPMMBENCH_REGISTER_FORMAT(Csr);

}  // namespace
}  // namespace spmmbench::csr
