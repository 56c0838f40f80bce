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

#include <limits>
#include <vector>

#include "common/cusparse.hpp"
#include "common/upload_values.hpp"
#include "spmmbench/registry.hpp"

namespace spmmbench {
namespace {

bool fits_32_bits(const SparseOperand& a) {
  return a.nnz() < std::numeric_limits<std::int32_t>::max();
}

// 32-bit indices while the nonzeros can be counted in them, as every caller would; else 64-bit ones
// throughout, since cuSPARSE does not mix.
SparseOnDevice upload_csr(const SparseOperand& operand, Device& device) {
  const CsrMatrix& a = *operand.a;
  const ElementType type = storage_type(operand.precision);
  const bool narrow = fits_32_bits(operand);
  SparseOnDevice out;
  if (narrow) {
    out.memory.push_back(
        device.upload(std::vector<std::int32_t>(a.row_ptr.begin(), a.row_ptr.end())));
    out.memory.push_back(device.upload(a.col_idx));
  } else {
    out.memory.push_back(device.upload(a.row_ptr));
    out.memory.push_back(
        device.upload(std::vector<std::int64_t>(a.col_idx.begin(), a.col_idx.end())));
  }
  out.memory.push_back(upload_values(device, a.values, type));
  out.stored = a.nnz();
  const cusparseIndexType_t index = narrow ? CUSPARSE_INDEX_32I : CUSPARSE_INDEX_64I;
  out.describe = [&a, index, type, row_ptr = out.memory[0].data(), col_idx = out.memory[1].data(),
                  values = out.memory[2].data()] {
    cusparseSpMatDescr_t matrix = nullptr;
    SPMMBENCH_CUSPARSE(cusparseCreateCsr(&matrix, a.rows, a.cols, a.nnz(), row_ptr, col_idx, values,
                                         index, index, CUSPARSE_INDEX_BASE_ZERO, cuda_type(type)));
    return SparseDescriptor(matrix);
  };
  return out;
}

class CusparseCsr final : public Kernel {
 public:
  CusparseCsr(const char* suffix, const char* summary, cusparseSpMMAlg_t algorithm, bool preprocess)
      : algorithm_(algorithm), preprocess_(preprocess) {
    info_.name = fmt::format("cusparse_csr_{}", suffix);
    info_.summary = summary;
    info_.source = "cuSPARSE";
    info_.precisions = {Precision::fp32, Precision::tf32, Precision::fp16, Precision::bf16};
    if (algorithm == CUSPARSE_SPMM_CSR_ALG3)
      info_.c_types = {ElementType::f32, ElementType::f16, ElementType::bf16};
    info_.layouts = {Layout::row_major, Layout::col_major};
    info_.accumulation = Accumulation::fp32_fma;
    info_.baseline = true;
  }

  const KernelInfo& info() const override { return info_; }

  Support supports(const Problem& problem, const DeviceInfo&) const override {
    if (auto reason = unsupported_types(problem.precision, problem.c_type); !reason.empty())
      return Support::no(std::move(reason));
    const std::int64_t index_bytes = fits_32_bits(problem) ? 4 : 8;
    const auto value_bytes = static_cast<std::int64_t>(bytes_of(storage_type(problem.precision)));
    return Support::yes(static_cast<std::size_t>((problem.m() + 1) * index_bytes +
                                                 problem.nnz() * (index_bytes + value_bytes)));
  }

  std::unique_ptr<Prepared> prepare(const SparseOperand& a, const Options&, Device& device,
                                    StageTimer& stages) const override {
    (void)cusparse_handle(device);
    SparseOnDevice matrix;
    {
      const auto timed = stages.scope("upload");
      matrix = upload_csr(a, device);
      device.synchronize();
    }
    return make_cusparse_prepared(a, device, std::move(matrix), algorithm_, preprocess_);
  }

 private:
  KernelInfo info_;
  cusparseSpMMAlg_t algorithm_;
  bool preprocess_;
};

SPMMBENCH_REGISTER_KERNEL(CusparseCsr, "default", "CSR as a plain cusparseSpMM call runs it",
                          CUSPARSE_SPMM_ALG_DEFAULT, false);
SPMMBENCH_REGISTER_KERNEL(CusparseCsr, "alg1", "CSR_ALG1 with preprocessing",
                          CUSPARSE_SPMM_CSR_ALG1, true);
SPMMBENCH_REGISTER_KERNEL(CusparseCsr, "alg2", "CSR_ALG2 with preprocessing",
                          CUSPARSE_SPMM_CSR_ALG2, true);
SPMMBENCH_REGISTER_KERNEL(CusparseCsr, "alg3", "CSR_ALG3 with preprocessing (bit-reproducible)",
                          CUSPARSE_SPMM_CSR_ALG3, true);

}  // namespace
}  // namespace spmmbench
