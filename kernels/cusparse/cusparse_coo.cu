// cuSPARSE's products of A as coordinates, one kernel each. They need no preprocessing. The remarks
// of cusparse_csr.cu on tf32 and on a 16-bit C apply here too.

#include <type_traits>

#include "cusparse/cusparse.hpp"
#include "spmmbench/registry.hpp"

namespace spmmbench::cusparse_coo {
namespace {

// Algorithm: cusparseSpMMAlg_t, or cusparseSpMVAlg_t for N = 1.
template <class Algorithm>
class CusparseCoo final : public Kernel {
 public:
  CusparseCoo(const char* name, const char* summary, Algorithm algorithm)
      : info_(kIsVector ? cusparse_vector_info(name, summary) : cusparse_info(name, summary)),
        algorithm_(algorithm) {}

  const KernelInfo& info() const override { return info_; }

  Support supports(const Problem& problem, const DeviceInfo&) const override {
    if (auto reason = kIsVector ? unsupported_by_cusparse_vectors(problem)
                                : unsupported_by_cusparse(problem.precision, problem.c_type);
        !reason.empty())
      return Support::no(std::move(reason));
    return Support::yes(coo_bytes(problem) + static_cast<std::size_t>(workspace_bytes(problem)));
  }

  std::unique_ptr<Prepared> prepare(const SparseOperand& a, const Options&, Device& device,
                                    StageTimer& stages) const override {
    (void)cusparse_handle(device);
    return make_cusparse_prepared(a, device, resident_coo(a, device, stages), algorithm_, false);
  }

 private:
  static constexpr bool kIsVector = std::is_same_v<Algorithm, cusparseSpMVAlg_t>;

  // COO_ALG2 keeps a row of C and about 20 bytes for every 24 nonzeros (cuSPARSE 12.6, N = 8 to
  // 128); the others need next to nothing.
  std::int64_t workspace_bytes(const Problem& problem) const {
    constexpr std::int64_t kNonzeros = 24, kBytes = 20;
    if constexpr (!kIsVector)
      if (algorithm_ == CUSPARSE_SPMM_COO_ALG2)
        return problem.nnz() * (sum_bytes(problem) * problem.n + kBytes) / kNonzeros;
    return 0;
  }

  static std::int64_t sum_bytes(const Problem& problem) {
    return problem.precision == Precision::fp64 ? sizeof(double) : sizeof(float);
  }

  KernelInfo info_;
  Algorithm algorithm_;
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
