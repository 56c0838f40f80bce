// cuSPARSE's products of A as coordinates, one kernel each. They need no preprocessing. The remarks
// of cusparse_csr.cu on tf32 and on a 16-bit C apply here too.

#include "cusparse/cusparse.hpp"
#include "spmmbench/registry.hpp"

namespace spmmbench::cusparse_coo {
namespace {

template <class Algorithm>
class CusparseCoo final : public CusparseKernel<Algorithm> {
 public:
  CusparseCoo(const char* name, const char* summary, Algorithm algorithm)
      : CusparseKernel<Algorithm>(name, summary, algorithm, false, resident_coo) {}

 private:
  std::size_t bytes(const Problem& problem) const override {
    return coo_bytes(problem) + static_cast<std::size_t>(workspace_bytes(problem));
  }

  // COO_ALG2 keeps a row of C and about 20 bytes for every 24 nonzeros (cuSPARSE 12.6, N = 8 to
  // 128); the others need next to nothing.
  std::int64_t workspace_bytes(const Problem& problem) const {
    constexpr std::int64_t kNonzeros = 24, kBytes = 20;
    if constexpr (!CusparseCoo::kIsVector)
      if (this->algorithm_ == CUSPARSE_SPMM_COO_ALG2)
        return problem.nnz() * (sum_bytes(problem) * problem.n + kBytes) / kNonzeros;
    return 0;
  }

  static std::int64_t sum_bytes(const Problem& problem) {
    return problem.precision == Precision::fp64 ? sizeof(double) : sizeof(float);
  }
};

using Product = CusparseCoo<cusparseSpMMAlg_t>;
using VectorProduct = CusparseCoo<cusparseSpMVAlg_t>;
SPMMBENCH_REGISTER_KERNEL(Product, "cusparse_coo_alg1", "coordinates, COO_ALG1",
                          CUSPARSE_SPMM_COO_ALG1);
SPMMBENCH_REGISTER_KERNEL(Product, "cusparse_coo_alg2", "coordinates, COO_ALG2 (bit-reproducible)",
                          CUSPARSE_SPMM_COO_ALG2);
SPMMBENCH_REGISTER_KERNEL(Product, "cusparse_coo_alg3", "coordinates, COO_ALG3",
                          CUSPARSE_SPMM_COO_ALG3);
SPMMBENCH_REGISTER_KERNEL(Product, "cusparse_coo_alg4", "coordinates, COO_ALG4",
                          CUSPARSE_SPMM_COO_ALG4);
SPMMBENCH_REGISTER_KERNEL(VectorProduct, "cusparse_spmv_coo_alg1", "SpMV of coordinates, COO_ALG1",
                          CUSPARSE_SPMV_COO_ALG1);
SPMMBENCH_REGISTER_KERNEL(VectorProduct, "cusparse_spmv_coo_alg2",
                          "SpMV of coordinates, COO_ALG2 (bit-reproducible)",
                          CUSPARSE_SPMV_COO_ALG2);

}  // namespace
}  // namespace spmmbench::cusparse_coo
