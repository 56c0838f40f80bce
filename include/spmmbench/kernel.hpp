#pragma once
// The contract of a kernel: what it says of itself, whether it can run a problem, and the plan that
// runs it.

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "spmmbench/device.hpp"
#include "spmmbench/format.hpp"
#include "spmmbench/problem.hpp"

namespace spmmbench {

// How sums are rounded: decides the error bound (verify/bound.hpp).
enum class Accumulation {
  fp32_fma,          // products and sums in IEEE fp32, any order
  fp32_tensor_core,  // tensor-core sums: truncated alignment, see verify/bound.hpp
};

struct KernelInfo {
  std::string name;     // snake_case; variants of one family share a prefix
  std::string summary;  // one line
  std::string source;   // paper or library
  DeviceKind device = DeviceKind::cuda;
  int min_compute_capability = 80;  // ignored on the host
  bool exact_architecture = false;  // runs only on min_compute_capability itself (sm_90a code)
  std::vector<Precision> precisions;
  std::vector<ElementType> c_types = {ElementType::f32};
  std::vector<Layout> layouts = {Layout::row_major};
  Accumulation accumulation = Accumulation::fp32_fma;  // at fp32 always fp32_fma
  bool writes_row_ids = false;                         // accepts Problem::row_ids
  bool binary = false;    // treats every stored entry as 1; never ranked with weighted kernels
  bool baseline = false;  // vendor library
  std::vector<OptionSpec> options = {};
};

struct Support {
  bool ok = false;
  std::string reason;            // when not ok: "needs compute capability 9.0"
  std::size_t device_bytes = 0;  // when ok: predicted, B and C not included

  static Support yes(std::size_t device_bytes) { return {true, {}, device_bytes}; }
  static Support no(std::string reason) { return {false, std::move(reason), 0}; }
};

// Wall-clock milliseconds of preparation, summed by stage name: "build", "upload", "tune", or a
// kernel's own.
class StageTimer {
 public:
  class Scope {
   public:
    explicit Scope(double& total_ms)
        : total_ms_(&total_ms), start_(std::chrono::steady_clock::now()) {}
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;
    ~Scope() {
      *total_ms_ +=
          std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start_)
              .count();
    }

   private:
    double* total_ms_;
    std::chrono::steady_clock::time_point start_;
  };

  // `auto timed = stages.scope("build");` times until the end of the block. Device work must be
  // synchronised inside the scope for its time to count there.
  [[nodiscard]] Scope scope(const std::string& stage) { return Scope(stages_ms_[stage]); }
  const std::map<std::string, double>& stages_ms() const { return stages_ms_; }

 private:
  std::map<std::string, double> stages_ms_;
};

// What a plan tells of itself once prepared; it all goes into the result row.
struct PlanReport {
  std::size_t device_bytes = 0;  // held by the plan, B and C not included
  std::optional<FormatStats> format;
  std::map<std::string, std::string> params;  // values in force, chosen ones included
  std::optional<double> issued_flops;         // with padding; 2 * nnz * N when absent
  std::map<std::string, double> metrics;  // kernel-specific, snake_case with the unit in the name
};

class Plan {
 public:
  virtual ~Plan() = default;

  // C = A * B. The only thing timed: allocates nothing, does not synchronise, writes every element
  // of C on every call, in the original row order. `b` and `c` have the problem's shape, layout and
  // types.
  virtual void launch(const DenseView& b, const DenseView& c, Stream stream) = 0;
  virtual PlanReport report() const = 0;
};

class Kernel {
 public:
  virtual ~Kernel() = default;
  virtual const KernelInfo& info() const = 0;

  // Only what `info` cannot say: shape limits and memory. Precision, layout, C type, architecture,
  // row ids and unknown options are checked by check_support before this is called.
  virtual Support supports(const Problem& problem, const DeviceInfo& device) const = 0;

  // Builds, uploads and tunes, each in its stage. Throws Error or DeviceError.
  virtual std::unique_ptr<Plan> prepare(const Problem& problem, Device& device,
                                        StageTimer& stages) const = 0;
};

// The whole question: KernelInfo's limits, then Kernel::supports.
Support check_support(const Kernel& kernel, const Problem& problem, const DeviceInfo& device);

}  // namespace spmmbench
