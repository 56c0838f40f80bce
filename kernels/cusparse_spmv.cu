// cuSPARSE's product of a sparse matrix and a vector: baselines of N = 1.
//
// cusparse_spmv is what a plain cusparseSpMV call gives, without preprocessing. The others name
// their algorithm and call cusparseSpMV_preprocess, whose time is the stage "tune". cuSPARSE's
// vectors are contiguous, as one column of a column-major matrix is. The remarks of cusparse_csr.cu
// on tf32 and on a 16-bit C apply here too.

#include "common/cusparse.hpp"
#include "spmmbench/registry.hpp"

namespace spmmbench {
namespace {

class CusparseSpmv final : public Kernel {
 public:
  CusparseSpmv(const char* name, const char* summary, cusparseSpMVAlg_t algorithm, bool preprocess)
      : algorithm_(algorithm), preprocess_(preprocess) {
    info_.name = name;
    info_.summary = summary;
    info_.source = "cuSPARSE";
    info_.precisions = {Precision::fp32, Precision::tf32, Precision::fp16, Precision::bf16};
    info_.layouts = {Layout::col_major, Layout::row_major};
    info_.accumulation = Accumulation::fp32_fma;
    info_.baseline = true;
  }

  const KernelInfo& info() const override { return info_; }

  Support supports(const Problem& problem, const DeviceInfo&) const override {
    if (auto reason = unsupported_by_cusparse(problem.precision, problem.c_type); !reason.empty())
      return Support::no(std::move(reason));
    if (problem.n != 1) return Support::no("N = 1 only");
    if (problem.layout == Layout::row_major) return Support::no("its vectors are contiguous");
    return Support::yes(csr_bytes(problem));
  }

  std::unique_ptr<Prepared> prepare(const SparseOperand& a, const Options&, Device& device,
                                    StageTimer& stages) const override {
    (void)cusparse_handle(device);
    return make_cusparse_prepared(a, device, upload_csr(a, device, stages), algorithm_,
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
}  // namespace spmmbench
