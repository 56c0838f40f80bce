// cuSPARSE's product of A in sliced ELLPACK and a vector: a baseline of N = 1. The remarks of
// cusparse_csr.cu on tf32 and on a 16-bit C apply here too.

#include <algorithm>
#include <limits>
#include <type_traits>
#include <vector>

#include "cusparse/cusparse.hpp"
#include "gpu/upload_values.hpp"
#include "spmmbench/registry.hpp"

namespace spmmbench::cusparse_sell {
namespace {

constexpr std::int64_t kSliceRows = 32;  // one for each lane of a warp

// Rows of a slice are as long as its longest one; entry i of all of them, then entry i + 1.
template <class Value>
struct Slices {
  std::vector<std::int32_t> offset;   // of each slice's entries, and their number
  std::vector<std::int32_t> col_idx;  // -1: padding
  std::vector<Value> values;          // 0 in the padding
};

std::int64_t stored_entries(const CsrMatrix& a) {
  std::int64_t stored = 0;
  for (std::int64_t first = 0; first < a.rows; first += kSliceRows) {
    std::int64_t longest = 0;
    for (std::int64_t row = first; row < std::min(first + kSliceRows, a.rows); ++row)
      longest = std::max(longest, a.row_length(row));
    stored += longest * kSliceRows;
  }
  return stored;
}

template <class Value>
Slices<Value> build(const CsrMatrix& a) {
  Slices<Value> out;
  const std::int64_t stored = stored_entries(a);
  out.col_idx.assign(stored, -1);
  out.values.assign(stored, 0);
  std::int64_t at = 0;
  for (std::int64_t first = 0; first < a.rows; first += kSliceRows) {
    out.offset.push_back(static_cast<std::int32_t>(at));
    std::int64_t longest = 0;
    for (std::int64_t row = first; row < std::min(first + kSliceRows, a.rows); ++row) {
      for (std::int64_t i = 0; i < a.row_length(row); ++i) {
        const std::int64_t place = at + i * kSliceRows + row - first;
        out.col_idx[place] = a.col_idx[a.row_ptr[row] + i];
        out.values[place] = static_cast<Value>(a.value(a.row_ptr[row] + i));
      }
      longest = std::max(longest, a.row_length(row));
    }
    at += longest * kSliceRows;
  }
  out.offset.push_back(static_cast<std::int32_t>(at));
  return out;
}

class CusparseSell final : public Kernel {
 public:
  const KernelInfo& info() const override { return info_; }

  Support supports(const Problem& problem, const DeviceInfo&) const override {
    if (auto reason = unsupported_by_cusparse_vectors(problem); !reason.empty())
      return Support::no(std::move(reason));
    const std::int64_t stored = stored_entries(*problem.a);
    if (stored > std::numeric_limits<std::int32_t>::max())
      return Support::no("more entries than 32-bit indices can count");
    const auto value_bytes = static_cast<std::int64_t>(bytes_of(storage_type(problem.precision)));
    return Support::yes(static_cast<std::size_t>(stored * (4 + value_bytes)));
  }

  std::unique_ptr<Prepared> prepare(const SparseOperand& a, const Options&, Device& device,
                                    StageTimer& stages) const override {
    (void)cusparse_handle(device);
    const ElementType type = storage_type(a.precision);
    SparseOnDevice out = type == ElementType::f64 ? upload<double>(a, device, stages)
                                                  : upload<float>(a, device, stages);
    out.describe = [m = a.m(), k = a.k(), nnz = a.nnz(), stored = out.stored, type,
                    offset = out.memory[0].data(), col_idx = out.memory[1].data(),
                    values = out.memory[2].data()] {
      cusparseSpMatDescr_t matrix = nullptr;
      SPMMBENCH_CUSPARSE(cusparseCreateSlicedEll, &matrix, m, k, nnz, stored, kSliceRows, offset,
                         col_idx, values, CUSPARSE_INDEX_32I, CUSPARSE_INDEX_32I,
                         CUSPARSE_INDEX_BASE_ZERO, cuda_type(type));
      return SparseDescriptor(matrix);
    };
    return make_cusparse_prepared(a, device, std::move(out), CUSPARSE_SPMV_SELL_ALG1, false);
  }

 private:
  // Without a description.
  template <class Value>
  static SparseOnDevice upload(const SparseOperand& a, Device& device, StageTimer& stages) {
    Slices<Value> slices;
    {
      const auto timed = stages.scope("build");
      slices = build<Value>(*a.a);
    }
    const auto timed = stages.scope("upload");
    SparseOnDevice out;
    out.memory.push_back(device.upload(slices.offset));
    out.memory.push_back(device.upload(slices.col_idx));
    if constexpr (std::is_same_v<Value, double>) out.memory.push_back(device.upload(slices.values));
    else out.memory.push_back(upload_values(device, slices.values, storage_type(a.precision)));
    device.synchronize();
    out.stored = std::ssize(slices.col_idx);
    return out;
  }

  KernelInfo info_ =
      cusparse_vector_info("cusparse_spmv_sell", "SpMV of sliced ELLPACK, SELL_ALG1");
};

SPMMBENCH_REGISTER_KERNEL(CusparseSell);

}  // namespace
}  // namespace spmmbench::cusparse_sell
