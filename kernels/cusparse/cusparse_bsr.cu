// cuSPARSE's block CSR (BSR_ALG1): square dense blocks, stored one after the other, each row-major.
// It multiplies fp32 only; at tf32 its inputs are the rounded ones and it computes in fp32.

#include <fmt/format.h>

#include <limits>
#include <vector>

#include "cusparse/cusparse.hpp"
#include "format/bcsr.hpp"
#include "spmmbench/registry.hpp"
#include "spmmbench/scalars.hpp"

namespace spmmbench {
namespace {

#if CUSPARSE_VERSION >= 12501  // the first that multiplies BSR
constexpr bool kHasBsr = true;
constexpr cusparseSpMMAlg_t kAlgorithm = CUSPARSE_SPMM_BSR_ALG1;
#else
constexpr bool kHasBsr = false;
constexpr cusparseSpMMAlg_t kAlgorithm = CUSPARSE_SPMM_ALG_DEFAULT;
#endif

const auto kBlock = integer_option("block", 64, 2, 128, "rows and columns of a block");

class CusparseBsr final : public Kernel {
 public:
  const KernelInfo& info() const override { return info_; }

  Support supports(const Problem& problem, const DeviceInfo&) const override {
    if (!kHasBsr) return Support::no("needs cuSPARSE 12.5.1 or newer");
    if (auto reason = unsupported_by_cusparse(problem.precision, problem.c_type); !reason.empty())
      return Support::no(std::move(reason));
    const int block = kBlock(problem.options);
    if (auto reason = unsupported_block(problem, block); !reason.empty())
      return Support::no(std::move(reason));
    const BcsrPattern pattern = BcsrPattern::build(*problem.a, block, block);
    if (pattern.blocks() > std::numeric_limits<std::int32_t>::max())
      return Support::no("more blocks than 32-bit indices can count");
    if (auto reason = unsupported_padding(static_cast<double>(pattern.stored()), problem);
        !reason.empty())
      return Support::no(std::move(reason));
    return Support::yes(static_cast<std::size_t>(pattern.stored()) * sizeof(float) +
                        static_cast<std::size_t>(pattern.blocks() + pattern.block_rows() + 1) *
                            sizeof(std::int32_t));
  }

  std::unique_ptr<Prepared> prepare(const SparseOperand& a, const Options& options, Device& device,
                                    StageTimer& stages) const override {
    (void)cusparse_handle(device);
    const int block = kBlock(options);
    SparseOnDevice out;
    Bcsr bcsr;
    {
      const auto timed = stages.scope("build");
      bcsr = Bcsr::build(*a.a, BcsrPattern::build(*a.a, block, block));
      out.report.format = bcsr.pattern.stats(sizeof(float));
      out.report.params["block"] = fmt::format("{}", block);
      out.stored = bcsr.pattern.stored();
    }
    {
      const auto timed = stages.scope("upload");
      const BcsrPattern& pattern = bcsr.pattern;
      out.memory.push_back(device.upload(
          std::vector<std::int32_t>(pattern.block_row_ptr.begin(), pattern.block_row_ptr.end())));
      out.memory.push_back(device.upload(pattern.block_col));
      out.memory.push_back(device.upload(bcsr.values));
      device.synchronize();
      out.describe = [rows = pattern.block_rows(), cols = a.k() / block, blocks = pattern.blocks(),
                      block, row_ptr = out.memory[0].data(), block_col = out.memory[1].data(),
                      values = out.memory[2].data()] {
        cusparseSpMatDescr_t matrix = nullptr;
        SPMMBENCH_CUSPARSE(cusparseCreateBsr, &matrix, rows, cols, blocks, block, block, row_ptr,
                           block_col, values, CUSPARSE_INDEX_32I, CUSPARSE_INDEX_32I,
                           CUSPARSE_INDEX_BASE_ZERO, CUDA_R_32F, CUSPARSE_ORDER_ROW);
        return SparseDescriptor(matrix);
      };
    }
    return make_cusparse_prepared(a, device, std::move(out), kAlgorithm, false);
  }

 private:
  KernelInfo info_ = {
      .name = "cusparse_bsr",
      .summary = "block CSR (BSR_ALG1)",
      .source = "cuSPARSE",
      .precisions = {Precision::fp32, Precision::tf32},
      .layouts = {Layout::row_major, Layout::col_major},
      .accumulation = Accumulation::fp32_fma,
      .baseline = true,
      .options = {kBlock},
      .flags = {kTakesScalars},
  };
};

SPMMBENCH_REGISTER_KERNEL(CusparseBsr);

}  // namespace
}  // namespace spmmbench
