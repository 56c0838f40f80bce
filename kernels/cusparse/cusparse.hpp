#pragma once
// What the cuSPARSE baselines share: checked calls, descriptors that free themselves, one handle
// per device, and the plan that runs cusparseSpMM or cusparseSpMV whatever the sparse format.

#include <cusparse.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "common/device_handles.hpp"
#include "common/resident_csr.hpp"
#include "gpu/element.cuh"
#include "gpu/given_csr.hpp"
#include "gpu/vendor_libraries.hpp"
#include "spmmbench/kernel.hpp"

namespace spmmbench {

[[noreturn]] void throw_cusparse_error(cusparseStatus_t status, const char* call);

// Calls a function of cuSPARSE; a failure becomes a DeviceError that names it.
#define SPMMBENCH_CUSPARSE(function, ...)                                           \
  do {                                                                              \
    const cusparseStatus_t spmmbench_status =                                       \
        SPMMBENCH_FUNCTION(::spmmbench::cusparse_library(), function)(__VA_ARGS__); \
    if (spmmbench_status != CUSPARSE_STATUS_SUCCESS)                                \
      ::spmmbench::throw_cusparse_error(spmmbench_status, #function);               \
  } while (false)

using CusparseHandle = DeviceHandles<cusparseHandle_t>::Shared;
CusparseHandle& cusparse_handle(const Device& device);

cusparseOrder_t cusparse_order(Layout layout);

struct DestroySparse {
  void operator()(cusparseSpMatDescr_t matrix) const noexcept {
    (void)SPMMBENCH_FUNCTION(cusparse_library(), cusparseDestroySpMat)(matrix);
  }
};
struct DestroyDense {
  void operator()(cusparseDnMatDescr_t matrix) const noexcept {
    (void)SPMMBENCH_FUNCTION(cusparse_library(), cusparseDestroyDnMat)(matrix);
  }
};
using SparseDescriptor =
    std::unique_ptr<std::remove_pointer_t<cusparseSpMatDescr_t>, DestroySparse>;
using DenseDescriptor = std::unique_ptr<std::remove_pointer_t<cusparseDnMatDescr_t>, DestroyDense>;

DenseDescriptor describe_dense(const DenseView& view);

// A in whatever format. Every plan has a descriptor of its own, since cuSPARSE keeps what
// preprocessing for one shape found in it.
struct SparseOnDevice {
  std::optional<ResidentCsr> csr;          // of formats that use its arrays
  std::optional<ReorderedCsr> transposed;  // A^T, where it is multiplied by the transpose of that
  std::vector<Buffer> memory;
  std::function<SparseDescriptor()> describe;  // points into both
  std::int64_t stored = 0;                     // entries, padding included
  PlanReport report;  // of what does not depend on the shape; plans add the rest
};

// Whether 32 bits count the nonzeros. Then A has 32-bit indices, as every caller would give it,
// else 64-bit ones throughout, since cuSPARSE does not mix.
bool fits_32_bits(const SparseOperand& a);

// A in CSR: the arrays on the device where A lies there, else a copy. Stage "upload". Changing the
// width of indices is not counted, since a caller of cuSPARSE would have them as it takes them.
SparseOnDevice resident_csr(const SparseOperand& a, Device& device, StageTimer& stages);
std::size_t csr_bytes(const SparseOperand& a);
// A as CSR of A^T. Stages "upload" and "transpose".
SparseOnDevice resident_transposed(const SparseOperand& a, Device& device, StageTimer& stages);
std::size_t transposed_bytes(const SparseOperand& a);
// The same as coordinates, sorted by row. Stages "upload", and "build" for the rows of the entries.
SparseOnDevice resident_coo(const SparseOperand& a, Device& device, StageTimer& stages);
std::size_t coo_bytes(const SparseOperand& a);

// Plans around an uploaded A that call cusparseSpMM, or cusparseSpMV for a contiguous column of B:
// workspace, and preprocessing when asked, both in the stage "tune".
std::unique_ptr<Prepared> make_cusparse_prepared(const SparseOperand& a, Device& device,
                                                 SparseOnDevice matrix, cusparseSpMMAlg_t algorithm,
                                                 bool preprocess);
std::unique_ptr<Prepared> make_cusparse_prepared(const SparseOperand& a, Device& device,
                                                 SparseOnDevice matrix, cusparseSpMVAlg_t algorithm,
                                                 bool preprocess);

// Why cuSPARSE cannot multiply: it was not found, or it does not take these types together (B and C
// of a 16-bit type, or a 16-bit B with an fp32 C). Empty when it can.
std::string unsupported_by_cusparse(Precision precision, ElementType c_type);

// Formats of dense blocks: why a block size is refused, and a number of stored entries beyond which
// the format is no serious candidate. Empty where they are not.
std::string unsupported_block(const Problem& problem, int block);
std::string unsupported_padding(double stored, const Problem& problem);

// The baselines of A in CSR, COO and sliced ELLPACK. cuSPARSE computes in fp32 for them, in
// fp64 at fp64.
KernelInfo cusparse_info(std::string name, std::string summary);

// The same of cusparseSpMV, whose vectors are contiguous: N = 1 and column-major.
KernelInfo cusparse_vector_info(std::string name, std::string summary);
std::string unsupported_by_cusparse_vectors(const Problem& problem);

// A baseline of one algorithm: cusparseSpMMAlg_t, or cusparseSpMVAlg_t for N = 1. `resident` brings
// A to the device.
template <class Algorithm>
class CusparseKernel : public Kernel {
 public:
  const KernelInfo& info() const override { return info_; }

  Support supports(const Problem& problem, const DeviceInfo&) const override {
    if (auto reason = kIsVector ? unsupported_by_cusparse_vectors(problem)
                                : unsupported_by_cusparse(problem.precision, problem.c_type);
        !reason.empty())
      return Support::no(std::move(reason));
    return Support::yes(bytes(problem));
  }

  std::unique_ptr<Prepared> prepare(const SparseOperand& a, const Options&, Device& device,
                                    StageTimer& stages) const override {
    (void)cusparse_handle(device);
    return make_cusparse_prepared(a, device, resident_(a, device, stages), algorithm_, preprocess_);
  }

 protected:
  using Resident = SparseOnDevice (*)(const SparseOperand&, Device&, StageTimer&);

  CusparseKernel(std::string name, std::string summary, Algorithm algorithm, bool preprocess,
                 Resident resident)
      : info_(kIsVector ? cusparse_vector_info(std::move(name), std::move(summary))
                        : cusparse_info(std::move(name), std::move(summary))),
        algorithm_(algorithm),
        preprocess_(preprocess),
        resident_(resident) {}

  // The bytes of A on the device, and of a workspace if it is larger than others have.
  virtual std::size_t bytes(const Problem& problem) const = 0;

  static constexpr bool kIsVector = std::is_same_v<Algorithm, cusparseSpMVAlg_t>;
  KernelInfo info_;
  Algorithm algorithm_;

 private:
  bool preprocess_;
  Resident resident_;
};

}  // namespace spmmbench
