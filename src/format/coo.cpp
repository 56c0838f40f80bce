// Coordinates: the yardstick of format sizes.

#include "spmmbench/format.hpp"
#include "spmmbench/registry.hpp"

namespace spmmbench::coo {
namespace {

class Coo final : public Format {
 public:
  std::string name() const override { return "coo"; }
  std::string summary() const override { return "row and column index per nonzero, 32 bits each"; }
  FormatStats analyze(const CsrMatrix& matrix, const Options& /*options*/) const override {
    FormatStats out;
    out.name = name();
    out.index_bytes = 8 * matrix.nnz();
    out.bytes = out.index_bytes + 4 * matrix.nnz();
    out.stored = matrix.nnz();
    return out;
  }
};

SPMMBENCH_REGISTER_FORMAT(Coo);

}  // namespace
}  // namespace spmmbench::coo
