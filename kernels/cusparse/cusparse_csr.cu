// cuSPARSE's CSR algorithms, one kernel each.
//
// cusparse_csr_default is what a plain cusparseSpMM call gives, without preprocessing: the baseline
// that most papers divide by. The others name their algorithm and call cusparseSpMM_preprocess,
// whose time is the stage "tune". cuSPARSE has no tf32 arithmetic for CSR: at tf32 its inputs are
// the rounded ones and it computes in fp32.
//
// Only ALG3 writes a 16-bit C that is the fp32 sum rounded once. What the others write differs from
// the reference by several times the bound (6x seen, cuSPARSE 12.6, rows of 10 nonzeros), so they
// offer fp32 only.

#include <fmt/format.h>

#include "core/reads_transposed.hpp"
#include "cusparse/cusparse.hpp"
#include "spmmbench/registry.hpp"

namespace spmmbench::cusparse_csr {
namespace {

class CusparseCsr final : public CusparseKernel<cusparseSpMMAlg_t> {
 public:
  CusparseCsr(const char* suffix, const char* summary, cusparseSpMMAlg_t algorithm, bool preprocess)
      : CusparseKernel(fmt::format("cusparse_csr_{}", suffix), summary, algorithm, preprocess,
                       resident_csr) {
    info_.reads_plain_csr = !preprocess;
    if (algorithm == CUSPARSE_SPMM_CSR_ALG3)
      info_.c_types = {ElementType::f32, ElementType::f16, ElementType::bf16};
  }

 private:
  std::size_t bytes(const Problem& problem) const override { return csr_bytes(problem); }
};

// The transposed operation on CSR of A^T: with --transpose, what a caller of cuSPARSE runs who has
// A and wants A^T B without making A^T. The other algorithms do not offer it.
class CusparseCsrTransposed final : public CusparseKernel<cusparseSpMMAlg_t> {
 public:
  CusparseCsrTransposed()
      : CusparseKernel("cusparse_csr_transposed", "the transposed operation on CSR of A^T",
                       CUSPARSE_SPMM_ALG_DEFAULT, false, resident_transposed) {
    info_.purpose = "A^T B without making A^T: joins --transpose";
    info_.flags.emplace_back(kReadsTransposed);
  }

  Support supports(const Problem& problem, const DeviceInfo& device) const override {
    if (!fits_32_bits(problem)) return Support::no("2^31 - 1 nonzeros or more");
    return CusparseKernel::supports(problem, device);
  }

 private:
  std::size_t bytes(const Problem& problem) const override { return transposed_bytes(problem); }
};

SPMMBENCH_REGISTER_KERNEL(CusparseCsrTransposed);
SPMMBENCH_REGISTER_KERNEL(CusparseCsr, "default", "CSR as a plain cusparseSpMM call runs it",
                          CUSPARSE_SPMM_ALG_DEFAULT, false);
SPMMBENCH_REGISTER_KERNEL(CusparseCsr, "alg1", "CSR_ALG1 with preprocessing",
                          CUSPARSE_SPMM_CSR_ALG1, true);
SPMMBENCH_REGISTER_KERNEL(CusparseCsr, "alg2", "CSR_ALG2 with preprocessing",
                          CUSPARSE_SPMM_CSR_ALG2, true);
SPMMBENCH_REGISTER_KERNEL(CusparseCsr, "alg3", "CSR_ALG3 with preprocessing (bit-reproducible)",
                          CUSPARSE_SPMM_CSR_ALG3, true);

}  // namespace
}  // namespace spmmbench::cusparse_csr
