// cuSPARSE's block CSR (BSR_ALG1): square dense blocks, stored one after the other, each row-major.
// It multiplies fp32 only; at tf32 its inputs are the rounded ones and it computes in fp32.

#include <fmt/format.h>

#include <limits>
#include <utility>
#include <vector>

#include "async_bcsr/device_build.hpp"
#include "cusparse/cusparse.hpp"
#include "format/bcsr.hpp"
#include "spmmbench/registry.hpp"
#include "spmmbench/scalars.hpp"

namespace spmmbench::cusparse_bsr {
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
    const std::int64_t blocks = problem.on_device != nullptr
                                    ? async_bcsr::count_blocks(*problem.on_device, block, block)
                                    : BcsrPattern::build(*problem.a, block, block).blocks();
    const std::int64_t stored = blocks * block * block;
    if (blocks > std::numeric_limits<std::int32_t>::max())
      return Support::no("more blocks than 32-bit indices can count");
    if (auto reason = unsupported_padding(static_cast<double>(stored), problem); !reason.empty())
      return Support::no(std::move(reason));
    return Support::yes(static_cast<std::size_t>(stored) * sizeof(float) +
                        static_cast<std::size_t>(blocks + problem.m() / block + 1) *
                            sizeof(std::int32_t));
  }

  std::unique_ptr<Prepared> prepare(const SparseOperand& a, const Options& options, Device& device,
                                    StageTimer& stages) const override {
    (void)cusparse_handle(device);
    const int block = kBlock(options);
    async_bcsr::DeviceBcsr bcsr = built(a, block, device, stages);
    SparseOnDevice out;
    out.report.format = bcsr.sizes.stats(bcsr.totals, sizeof(float));
    out.report.params["block"] = fmt::format("{}", block);
    out.stored = bcsr.totals.blocks * block * block;
    out.describe = [rows = a.m() / block, cols = a.k() / block, blocks = bcsr.totals.blocks, block,
                    row_ptr = bcsr.block_row_ptr.data(), block_col = bcsr.block_col.data(),
                    values = bcsr.values.data()] {
      cusparseSpMatDescr_t matrix = nullptr;
      SPMMBENCH_CUSPARSE(cusparseCreateBsr, &matrix, rows, cols, blocks, block, block, row_ptr,
                         block_col, values, CUSPARSE_INDEX_32I, CUSPARSE_INDEX_32I,
                         CUSPARSE_INDEX_BASE_ZERO, CUDA_R_32F, CUSPARSE_ORDER_ROW);
      return SparseDescriptor(matrix);
    };
    out.memory.push_back(std::move(bcsr.block_row_ptr));
    out.memory.push_back(std::move(bcsr.block_col));
    out.memory.push_back(std::move(bcsr.values));
    return make_cusparse_prepared(a, device, std::move(out), kAlgorithm, false);
  }

 private:
  static async_bcsr::DeviceBcsr built(const SparseOperand& a, int block, Device& device,
                                      StageTimer& stages) {
    if (async_bcsr::pattern_fits(a.m(), a.k(), block)) {
      const ResidentCsr csr(a, device, stages);
      const auto timed = stages.scope("build");
      return async_bcsr::build_bcsr(csr.view(), block, device);
    }
    Bcsr host;
    {
      const auto timed = stages.scope("build");
      host = Bcsr::build(*a.a, BcsrPattern::build(*a.a, block, block));
    }
    const auto timed = stages.scope("upload");
    const BcsrPattern& pattern = host.pattern;
    const std::vector<std::int32_t> row_ptr(pattern.block_row_ptr.begin(),
                                            pattern.block_row_ptr.end());
    return {.sizes = pattern,
            .totals = pattern.totals(),
            .block_row_ptr = device.upload(row_ptr),
            .block_col = device.upload(pattern.block_col),
            .values = device.upload(host.values)};
  }

  KernelInfo info_ = {
      .name = "cusparse_bsr",
      .summary = "block CSR (BSR_ALG1)",
      .source = "cuSPARSE",
      .precisions = {Precision::fp32, Precision::tf32},
      .layouts = {Layout::row_major, Layout::col_major},
      .accumulation = Accumulation::fp32_fma,
      .baseline = true,
      .prepares_on_device = true,
      .options = {kBlock},
      .flags = {kTakesScalars},
  };
};

SPMMBENCH_REGISTER_KERNEL(CusparseBsr);

}  // namespace
}  // namespace spmmbench::cusparse_bsr
