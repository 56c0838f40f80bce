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

class CusparseSpmv final : public Kernel {
 public:
  CusparseSpmv(const char* name, const char* summary, cusparseSpMVAlg_t algorithm, bool preprocess)
      : info_(cusparse_vector_info(name, summary)),
        algorithm_(algorithm),
        preprocess_(preprocess) {}

  const KernelInfo& info() const override { return info_; }

  Support supports(const Problem& problem, const DeviceInfo&) const override {
    if (auto reason = unsupported_by_cusparse_vectors(problem); !reason.empty())
      return Support::no(std::move(reason));
    return Support::yes(csr_bytes(problem));
  }

  std::unique_ptr<Prepared> prepare(const SparseOperand& a, const Options&, Device& device,
                                    StageTimer& stages) const override {
    (void)cusparse_handle(device);
    return make_cusparse_prepared(a, device, resident_csr(a, device, stages), algorithm_,
                                  preprocess_);
  }

 private:
  KernelInfo info_;
  cusparseSpMVAlg_t algorithm_;
  bool preprocess_;
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
