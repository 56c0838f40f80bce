// A in 2:4 structured sparsity, multiplied by NVIDIA's cuSPARSELt on the sparse tensor cores: the
// baseline of pruned weights in that pattern.
//
// The library is optional twice: its header at build, the library itself at run
// (cusparselt/library.hpp). Without one of them every problem that the library would take is
// refused.

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "common/dense_copy.hpp"
#include "core/two_of_four.hpp"
#include "cusparselt/prepared.hpp"
#include "spmmbench/registry.hpp"

namespace spmmbench {
namespace {

// What cuSPARSELt takes: multiples of this many bytes.
constexpr std::int64_t kMultipleOfA = 32;  // rows and columns
constexpr std::int64_t kMultipleOfN = 16;

class CusparseLtKernel final : public Kernel {
 public:
  const KernelInfo& info() const override { return info_; }

  Support supports(const Problem& problem, const DeviceInfo& device) const override {
    const ElementType type = storage_type(problem.precision);
    const bool is_fp8 = is_scaled(problem.precision);
    if (is_fp8 && problem.layout == Layout::row_major)
      return Support::no("cuSPARSELt takes fp8 contiguous along K: needs column-major B and C");
    if (!is_fp8 && problem.layout == Layout::col_major)
      return Support::no("cuSPARSELt 0.8.0 loses the device in column-major 16 bits");
    if (!is_fp8 && problem.c_type != type)
      return Support::no(fmt::format("cuSPARSELt does not write {} from {} inputs",
                                     to_string(problem.c_type), to_string(problem.precision)));
    const auto value_bytes = static_cast<std::int64_t>(bytes_of(type));
    if (problem.m() % (kMultipleOfA / value_bytes) != 0 ||
        problem.k() % (kMultipleOfA / value_bytes) != 0)
      return Support::no(fmt::format("needs M and K divisible by {}", kMultipleOfA / value_bytes));
    if (problem.n % (kMultipleOfN / value_bytes) != 0)
      return Support::no(fmt::format("needs N divisible by {}", kMultipleOfN / value_bytes));
    if (Support dense_copy = supports_dense(problem, device); !dense_copy.ok) return dense_copy;
    if (const auto row = first_row_beyond_two_of_four(*problem.a))
      return Support::no(
          fmt::format("not in 2:4: row {} has more than two nonzeros in a group of four", *row));
    if (std::string reason = cusparselt_missing(); !reason.empty())
      return Support::no(std::move(reason));
    return Support::yes(device_bytes(problem, dense_shape(problem).bytes()));
  }

  std::unique_ptr<Prepared> prepare(const SparseOperand& a, const Options&, Device& device,
                                    StageTimer& stages) const override {
    return prepare_cusparselt(a, device, stages);
  }

 private:
  // The compressed A beside what needs most room: A as CSR and dense, or the B and C that the
  // search multiplies.
  static std::size_t device_bytes(const Problem& problem, std::size_t dense) {
    const std::size_t element = bytes_of(storage_type(problem.precision));
    const std::size_t compressed = dense / 2 + dense / 8;  // values, and what says where they were
    const std::size_t csr = problem.a->row_ptr.size() * sizeof(std::int64_t) +
                            static_cast<std::size_t>(problem.nnz()) * (4 + element);
    const std::size_t b_and_c =
        static_cast<std::size_t>(problem.m() * problem.n) * bytes_of(problem.c_type) +
        static_cast<std::size_t>(problem.k() * problem.n) * element;
    return compressed + std::max(dense + csr, b_and_c);
  }

  KernelInfo info_ = {
      .name = "cusparselt",
      .summary = "cuSPARSELt on a matrix in 2:4, by the algorithm that its search finds fastest",
      .source = "cuSPARSELt",
      .precisions = {Precision::fp16, Precision::bf16, Precision::fp8_e4m3},
      .c_types = {ElementType::f16, ElementType::bf16},
      .layouts = {Layout::row_major, Layout::col_major},
      .accumulation = Accumulation::fp32_tensor_core,
      .baseline = true,
  };
};

SPMMBENCH_REGISTER_KERNEL(CusparseLtKernel);

}  // namespace
}  // namespace spmmbench
