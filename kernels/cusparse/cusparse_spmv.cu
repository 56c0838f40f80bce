// cuSPARSE's product of a sparse matrix and a vector: baselines of N = 1.
//
// cusparse_spmv is what a plain cusparseSpMV call gives, without preprocessing. The others name
// their algorithm and call cusparseSpMV_preprocess, whose time is the stage "tune". cuSPARSE's
// vectors are contiguous, as one column of a column-major matrix is. The remarks of cusparse_csr.cu
// on tf32 and on a 16-bit C apply here too.

#include "cusparse/cusparse.hpp"
#include "spmmbench/registry.hpp"

namespace spmmbench::cusparse_spmv {
namespace {

class CusparseSpmv final : public CusparseKernel<cusparseSpMVAlg_t> {
 public:
  CusparseSpmv(const char* name, const char* summary, cusparseSpMVAlg_t algorithm, bool preprocess)
      : CusparseKernel(name, summary, algorithm, preprocess, resident_csr) {}

 private:
  std::size_t bytes(const Problem& problem) const override { return csr_bytes(problem); }
};

SPMMBENCH_REGISTER_KERNEL(CusparseSpmv, "cusparse_spmv", "CSR as a plain cusparseSpMV call runs it",
                          CUSPARSE_SPMV_ALG_DEFAULT, false);
SPMMBENCH_REGISTER_KERNEL(CusparseSpmv, "cusparse_spmv_alg1", "SpMV CSR_ALG1 with preprocessing",
                          CUSPARSE_SPMV_CSR_ALG1, true);
SPMMBENCH_REGISTER_KERNEL(CusparseSpmv, "cusparse_spmv_alg2",
                          "SpMV CSR_ALG2 with preprocessing (bit-reproducible)",
                          CUSPARSE_SPMV_CSR_ALG2, true);

}  // namespace
}  // namespace spmmbench::cusparse_spmv
