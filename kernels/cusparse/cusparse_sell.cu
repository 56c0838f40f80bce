// cuSPARSE's product of A in sliced ELLPACK and a vector: a baseline of N = 1. The remarks of
// cusparse_csr.cu on tf32 and on a 16-bit C apply here too.

#include <algorithm>
#include <limits>
#include <utility>

#include "cusparse/cusparse.hpp"
#include "cusparse/sell_on_device.hpp"
#include "spmmbench/registry.hpp"

namespace spmmbench::cusparse_sell {
namespace {

std::int64_t count_on_host(const CsrMatrix& a) {
  std::int64_t stored = 0;
  for (std::int64_t first = 0; first < a.rows; first += kSliceRows) {
    std::int64_t longest = 0;
    for (std::int64_t row = first; row < std::min(first + kSliceRows, a.rows); ++row)
      longest = std::max(longest, a.row_length(row));
    stored += longest * kSliceRows;
  }
  return stored;
}

class CusparseSell final : public Kernel {
 public:
  const KernelInfo& info() const override { return info_; }

  Support supports(const Problem& problem, const DeviceInfo&) const override {
    if (auto reason = unsupported_by_cusparse_vectors(problem); !reason.empty())
      return Support::no(std::move(reason));
    const std::int64_t stored = problem.on_device != nullptr ? count_entries(*problem.on_device)
                                                             : count_on_host(*problem.a);
    if (stored > std::numeric_limits<std::int32_t>::max())
      return Support::no("more entries than 32-bit indices can count");
    const auto value_bytes = static_cast<std::int64_t>(bytes_of(storage_type(problem.precision)));
    return Support::yes(resident_bytes(problem) +
                        static_cast<std::size_t>(stored * (4 + value_bytes)));
  }

  std::unique_ptr<Prepared> prepare(const SparseOperand& a, const Options&, Device& device,
                                    StageTimer& stages) const override {
    (void)cusparse_handle(device);
    DeviceSlices slices = built(a, device, stages);
    SparseOnDevice out;
    out.stored = slices.stored;
    out.describe = [m = a.m(), k = a.k(), nnz = a.nnz(), stored = slices.stored,
                    type = storage_type(a.precision), offset = slices.offset.data(),
                    col_idx = slices.col_idx.data(), values = slices.values.data()] {
      cusparseSpMatDescr_t matrix = nullptr;
      SPMMBENCH_CUSPARSE(cusparseCreateSlicedEll, &matrix, m, k, nnz, stored, kSliceRows, offset,
                         col_idx, values, CUSPARSE_INDEX_32I, CUSPARSE_INDEX_32I,
                         CUSPARSE_INDEX_BASE_ZERO, cuda_type(type));
      return SparseDescriptor(matrix);
    };
    out.memory.push_back(std::move(slices.offset));
    out.memory.push_back(std::move(slices.col_idx));
    out.memory.push_back(std::move(slices.values));
    return make_cusparse_prepared(a, device, std::move(out), CUSPARSE_SPMV_SELL_ALG1, false);
  }

 private:
  static DeviceSlices built(const SparseOperand& a, Device& device, StageTimer& stages) {
    const ResidentCsr csr(a, device, stages);
    const auto timed = stages.scope("build");
    return build_slices(csr.view(), device);
  }

  static KernelInfo info_of_sell() {
    KernelInfo info =
        cusparse_vector_info("cusparse_spmv_sell", "SpMV of sliced ELLPACK, SELL_ALG1");
    info.prepares_on_device = true;
    return info;
  }

  KernelInfo info_ = info_of_sell();
};

SPMMBENCH_REGISTER_KERNEL(CusparseSell);

}  // namespace
}  // namespace spmmbench::cusparse_sell
