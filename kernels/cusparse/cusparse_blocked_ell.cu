// cuSPARSE's Blocked-ELL: square dense blocks, every block row padded to as many blocks as the
// longest one has. Runs on the tensor cores.
//
//     block_col  [block_rows][width]                 -1 where a block row has no more blocks
//     values     [block_rows * b][width * b]         row-major; zeros in the padding blocks

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "async_bcsr/device_build.hpp"
#include "cusparse/cusparse.hpp"
#include "format/bcsr.hpp"
#include "gpu/upload_values.hpp"
#include "spmmbench/registry.hpp"
#include "spmmbench/scalars.hpp"

namespace spmmbench::cusparse_blocked_ell {
namespace {

const auto kBlock = integer_option("block", 64, 2, 128, "rows and columns of a block");

struct BlockedEll {
  std::int64_t width;  // blocks per block row
  std::vector<std::int32_t> block_col;
  std::vector<float> values;
};

BlockedEll build(const Bcsr& bcsr) {
  const BcsrPattern& pattern = bcsr.pattern;
  const std::int64_t block = pattern.bm;
  BlockedEll out{std::max<std::int64_t>(pattern.totals().longest, 1), {}, {}};
  out.block_col.assign(pattern.block_rows() * out.width, -1);
  out.values.assign(pattern.block_rows() * block * out.width * block, 0);
#pragma omp parallel for schedule(dynamic, 16)
  for (std::int64_t row = 0; row < pattern.block_rows(); ++row)
    for (std::int64_t at = pattern.block_row_ptr[row]; at < pattern.block_row_ptr[row + 1]; ++at) {
      const std::int64_t slot = at - pattern.block_row_ptr[row];
      out.block_col[row * out.width + slot] = pattern.block_col[at];
      for (std::int64_t r = 0; r < block; ++r)
        std::copy_n(bcsr.values.begin() + (at * block + r) * block, block,
                    out.values.begin() + ((row * block + r) * out.width + slot) * block);
    }
  return out;
}

class CusparseBlockedEll final : public Kernel {
 public:
  const KernelInfo& info() const override { return info_; }

  Support supports(const Problem& problem, const DeviceInfo&) const override {
    if (auto reason = unsupported_by_cusparse(problem.precision, problem.c_type); !reason.empty())
      return Support::no(std::move(reason));
    const int block = kBlock(problem.options);
    if (auto reason = unsupported_block(problem, block); !reason.empty())
      return Support::no(std::move(reason));
    const std::int64_t widest = problem.on_device != nullptr
                                    ? async_bcsr::widest_block_row(*problem.on_device, block, block)
                                    : BcsrPattern::build(*problem.a, block, block).totals().longest;
    const std::int64_t blocks = problem.m() / block * widest;
    const double stored = static_cast<double>(blocks) * block * block;
    if (auto reason = unsupported_padding(stored, problem); !reason.empty())
      return Support::no(std::move(reason));
    return Support::yes(static_cast<std::size_t>(
        stored * static_cast<double>(bytes_of(storage_type(problem.precision))) +
        static_cast<double>(blocks) * sizeof(std::int32_t)));
  }

  std::unique_ptr<Prepared> prepare(const SparseOperand& a, const Options& options, Device& device,
                                    StageTimer& stages) const override {
    (void)cusparse_handle(device);
    const int block = kBlock(options);
    async_bcsr::DeviceBcsr ell = built(a, block, device, stages);
    SparseOnDevice out;
    out.report = report(a, ell);
    out.stored = out.report.format->stored;
    out.describe = [rows = a.m(), cols = a.k(), width = ell.width * block, block,
                    type = storage_type(a.precision), block_col = ell.block_col.data(),
                    values = ell.values.data()] {
      cusparseSpMatDescr_t matrix = nullptr;
      SPMMBENCH_CUSPARSE(cusparseCreateBlockedEll, &matrix, rows, cols, block, width, block_col,
                         values, CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO, cuda_type(type));
      return SparseDescriptor(matrix);
    };
    out.memory.push_back(std::move(ell.block_col));
    out.memory.push_back(std::move(ell.values));
    return make_cusparse_prepared(a, device, std::move(out), CUSPARSE_SPMM_BLOCKED_ELL_ALG1, false);
  }

 private:
  static async_bcsr::DeviceBcsr built(const SparseOperand& a, int block, Device& device,
                                      StageTimer& stages) {
    if (async_bcsr::pattern_fits(a.m(), a.k(), block)) {
      const ResidentCsr csr(a, device, stages);
      const auto timed = stages.scope("build");
      return async_bcsr::build_blocked_ell(csr.view(), block, device);
    }
    async_bcsr::DeviceBcsr out;
    BlockedEll ell;
    {
      const auto timed = stages.scope("build");
      const Bcsr bcsr = Bcsr::build(*a.a, BcsrPattern::build(*a.a, block, block));
      ell = build(bcsr);
      out.sizes = bcsr.pattern;
      out.totals = bcsr.pattern.totals();
      out.width = ell.width;
    }
    const auto timed = stages.scope("upload");
    out.block_col = device.upload(ell.block_col);
    out.values = upload_values(device, ell.values, storage_type(a.precision));
    return out;
  }

  static PlanReport report(const SparseOperand& a, const async_bcsr::DeviceBcsr& ell) {
    const auto value_bytes = static_cast<std::int64_t>(bytes_of(storage_type(a.precision)));
    const int block = ell.sizes.bm;
    PlanReport report;
    FormatStats stats = ell.sizes.stats(ell.totals, static_cast<int>(value_bytes));
    stats.name = fmt::format("blocked_ell_{}", block);
    stats.tiles = a.m() / block * ell.width;
    stats.stored = stats.tiles * block * block;
    stats.index_bytes = stats.tiles * static_cast<std::int64_t>(sizeof(std::int32_t));
    stats.bytes = stats.index_bytes + stats.stored * value_bytes;
    stats.fill = static_cast<double>(a.nnz()) / static_cast<double>(stats.stored);
    stats.nnz_per_tile = static_cast<double>(a.nnz()) / static_cast<double>(stats.tiles);
    report.format = stats;
    report.params["block"] = fmt::format("{}", block);
    return report;
  }

  KernelInfo info_ = {
      .name = "cusparse_blocked_ell",
      .summary = "Blocked-ELL on the tensor cores",
      .source = "cuSPARSE",
      .precisions = {Precision::tf32, Precision::fp16, Precision::bf16},
      .c_types = {ElementType::f32, ElementType::f16, ElementType::bf16},
      .layouts = {Layout::row_major, Layout::col_major},
      .accumulation = Accumulation::fp32_tensor_core,
      .baseline = true,
      .prepares_on_device = true,
      .options = {kBlock},
      .flags = {kTakesScalars},
  };
};

SPMMBENCH_REGISTER_KERNEL(CusparseBlockedEll);

}  // namespace
}  // namespace spmmbench::cusparse_blocked_ell
