#pragma once
// The contract of a kernel: its description, whether it can run a problem, A prepared once, and the
// plans that are bound to the prepared A, one for each shape of B and C.

#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "spmmbench/device.hpp"
#include "spmmbench/format.hpp"
#include "spmmbench/option.hpp"
#include "spmmbench/pick.hpp"
#include "spmmbench/problem.hpp"
#include "spmmbench/stage_timer.hpp"

namespace spmmbench {

// How sums are rounded. This decides the error bound (error_bound.hpp). At fp32 it is always
// fp32_fma, and at fp64 the same in fp64.
enum class Accumulation {
  fp32_fma,          // products and sums in IEEE fp32, any order
  fp32_tensor_core,  // tensor-core sums: truncated after alignment
  fp16,              // any sum rounded or truncated to fp16; no kernel of ours
};

// The sizes that a kernel of a library declares to take. Ours refuse others in `supports`.
struct SizeLimits {
  bool square = false;
  std::vector<std::int64_t> allowed_n = {};  // empty: every N that the others allow
  std::int64_t n_multiple = 1, m_multiple = 1, k_multiple = 1;
  std::int64_t max_n = 0, max_mk = 0, max_kn = 0;  // 0: no limit

  std::string text() const;  // "M = K, N a multiple of 8, N at most 512"; empty: all
  // Why a product is refused; empty where it is not.
  std::string refusal(std::int64_t m, std::int64_t k, std::int64_t n) const;
};

// How a kernel wants B and C in memory.
struct OperandForm {
  bool packed = false;  // lines follow each other without a gap
  // Row-major C has memory for rows up to the next multiple, which a launch may overwrite.
  std::int64_t c_row_multiple = 1;

  auto operator<=>(const OperandForm&) const = default;
};

// What changes in a kernel when one of its options has a certain value. A member that is empty or 0
// changes nothing.
struct Variant {
  std::string option, value;
  std::optional<Accumulation> accumulation = {};
  std::optional<int> promoted_columns = {};
  std::vector<ElementType> c_types = {};
  std::vector<Layout> layouts = {};
  std::vector<std::int64_t> allowed_n = {};  // this or n_multiple replaces both of the kernel's
  std::int64_t n_multiple = 0, max_n = 0;
};

struct KernelInfo {
  std::string name;          // snake_case; variants of one family share a prefix
  std::string summary;       // one line
  std::string source;        // paper or library
  std::string purpose = {};  // empty: for every run; else what for ("to copy"): runs when named
  DeviceKind device = DeviceKind::cuda;
  int min_compute_capability = 80;  // ignored on the host
  bool exact_architecture = false;  // runs only on min_compute_capability itself (sm_90a code)
  std::vector<Precision> precisions;
  std::vector<ElementType> c_types = {ElementType::f32};  // at fp64 always fp64
  std::vector<Layout> layouts = {Layout::row_major};      // of B and C
  Accumulation accumulation = Accumulation::fp32_fma;
  // In fp8: columns of A whose products tensor cores add up before the sum goes to fp32; 0: all.
  int promoted_columns = 0;
  bool writes_row_ids = false;  // accepts Problem::row_ids
  bool binary = false;      // treats every stored entry as 1; never ranked with weighted kernels
  bool baseline = false;    // vendor library
  bool inspects_b = false;  // plans look at what B holds: Plan::inspect_b
  bool ignores_stream = false;   // timed by the host's clock, from an idle device to an idle one
  bool asks_for_rates = false;   // predicts with the device's rates, measured as a run starts
  bool adds_to_c = false;        // C is zeroed in every launch
  bool reads_plain_csr = false;  // where CSR lies on the device, nothing else is prepared of A
  bool takes_values = false;     // Prepared::take_values
  // Prepares faster from SparseOperand::on_device: a caller with A on the host copies it there.
  bool prepares_on_device = false;
  SizeLimits sizes = {};
  OperandForm form = {};
  std::vector<OptionSpec> options = {};
  // Of a library, as plugin.h has them: where A may lie, names of flags ("keeps_a").
  std::vector<DeviceKind> a_memory = {};
  std::vector<std::string> flags = {};
  std::vector<Variant> variants = {};  // later ones decide
};

struct Support {
  bool ok = false;
  std::string reason;            // when not ok: "needs compute capability 9.0"
  std::size_t device_bytes = 0;  // when ok: predicted, B and C not included

  static Support yes(std::size_t device_bytes) { return {true, {}, device_bytes}; }
  static Support no(std::string reason) { return {false, std::move(reason), 0}; }
};

// What a plan reports of itself. All of it goes into the result row.
struct PlanReport {
  std::size_t device_bytes = 0;  // held by the plan, B and C not included
  std::optional<FormatStats> format;
  std::map<std::string, std::string> params;  // options in force, also those that it chose itself
  std::optional<double> issued_flops;         // with padding; 2 * nnz * N when absent
  std::map<std::string, double> metrics;  // kernel-specific, snake_case with the unit in the name
  // Set by a kernel that runs one of several others. If it measured them, the case is prepared only
  // once, since a second preparation could pick another.
  std::optional<Pick> pick;
};

// A kernel bound to one shape. Its Prepared outlives it.
class Plan {
 public:
  virtual ~Plan() = default;

  // Looks at B before the first launch, in a stage of its own. Only for kernels that depend on what
  // B holds (joint sparsity); every later launch is given the same B.
  virtual void inspect_b(const DenseView& /*b*/, StageTimer& /*stages*/) {}

  // C = A * B. Only this is timed. It allocates nothing, does not synchronise, and writes every
  // element of C on every call, in the original row order. `b` and `c` have the shape, layout and
  // types that the plan was bound to.
  virtual void launch(const DenseView& b, const DenseView& c, Stream stream) = 0;

  // A plan may go on preparing in its launches, once past launches have taken as long as that will
  // take. Returns whether the next launch may do so. Such a launch allocates, waits for the device,
  // and needs the memory that a bind needs. A launch in a stream capture never prepares.
  virtual bool prepares_next() const { return false; }
  // Prepares at once all that launches would have prepared; later ones prepare nothing.
  virtual void settle(StageTimer& /*stages*/) {}

  virtual PlanReport report() const = 0;
};

// A in a kernel's own form on one device. The operand, the options and the device outlive it.
class Prepared {
 public:
  virtual ~Prepared() = default;

  // Chooses what depends on the shape: variant, division of the work, workspace, tensor maps.
  // `stages` receives the time of all that this shape needs beyond `prepare`. A format that depends
  // on N is built by the first bind that needs it; its time is added again for each later bind that
  // shares it. Throws what Kernel::prepare does.
  virtual std::unique_ptr<Plan> bind(const Shape& shape, StageTimer& stages) = 0;

  // Only of kernels whose info says `takes_values`. Called when the values of the operand have
  // changed in place and its pattern has not. They lie in SparseOperand::on_device, which is then
  // given, or for a kernel on the host in SparseOperand::a. Later launches on `stream`, of all
  // plans, multiply by the new values. Enqueues at most about the work of one launch; the first
  // call may also make what it needs, and wait.
  virtual void take_values(Stream /*stream*/) {}
};

class Kernel {
 public:
  virtual ~Kernel() = default;
  virtual const KernelInfo& info() const = 0;

  // Limits that `info` cannot express: sizes and memory. check_support has already checked
  // precision, layout, C type, architecture, row ids and options when it calls this.
  virtual Support supports(const Problem& problem, const DeviceInfo& device) const = 0;

  // Builds, uploads and tunes what does not depend on the shape, each in its stage. Called only for
  // problems that `supports` accepted. Unsupported skips the case; any other exception fails it.
  virtual std::unique_ptr<Prepared> prepare(const SparseOperand& a, const Options& options,
                                            Device& device, StageTimer& stages) const = 0;
};

// The layout of B and C that the kernel gets if the user asked for `asked`. It differs only at
// N = 1: both layouts mean the same there, but only a column-major column is contiguous, so kernels
// that take column-major operands get that.
Layout layout_for(const KernelInfo& info, Layout asked, std::int64_t n);

void check_options(const Kernel& kernel, const Options& options);  // throws Error

// What a kernel says of itself where it has these options. They were checked.
KernelInfo info_with(const KernelInfo& info, const Options& options);

// The checks that need no shape: the options, and what KernelInfo says of the device, A, its
// precision and its row ids. Throws Error for bad options.
Support check_operand(const Kernel& kernel, const SparseOperand& a, const Options& options,
                      const DeviceInfo& device);

// The types of C: c_types, and fp64 where the kernel offers that precision.
std::vector<ElementType> written_types(const KernelInfo& info);
// Whether C can be stored in this type where A and B have this precision: fp64 at fp64 alone.
bool writes(const KernelInfo& info, Precision precision, ElementType c_type);

// All checks: check_operand, what KernelInfo says of the shape, then Kernel::supports.
Support check_support(const Kernel& kernel, const Problem& problem, const DeviceInfo& device);

// For kernels whose whole preparation depends on the shape: keeps A and makes a new
// PlanType(problem, device, stages) for every shape.
template <class PlanType>
class PreparedPerShape final : public Prepared {
 public:
  PreparedPerShape(const SparseOperand& a, const Options& options, Device& device)
      : a_(a), options_(options), device_(device) {}

  std::unique_ptr<Plan> bind(const Shape& shape, StageTimer& stages) override {
    return std::make_unique<PlanType>(Problem{a_, shape, options_}, device_, stages);
  }

 private:
  SparseOperand a_;
  Options options_;
  Device& device_;
};

}  // namespace spmmbench
