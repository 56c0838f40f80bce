// esmm_mma: C = A * B for dense-stored A and B with zeros in both, on tensor cores. Patterns and
// lines of A are those of esmm, whose sparse path this is: every warp lists the k-indices that
// survive in its 32 x 32 tile of C (esmm_mma/warp_list.cuh). Where many survive, cuBLAS multiplies
// A as a dense matrix instead.
//
// The products of a skipped k are not formed: an Inf or NaN that only meets zeros of the other
// operand leaves no NaN in C. A survivor is multiplied for all rows of the tile.

#include <cuda_runtime.h>

#include "common/shared_limit.hpp"
#include "esmm/prepared.cuh"
#include "esmm_mma/warp_list.cuh"
#include "spmmbench/registry.hpp"

namespace spmmbench::esmm_mma {
namespace {

const auto kPath = auto_choice_option(
    "path", {"lists", "dense"},
    "products over lists, or cuBLAS on A with its zeros; auto: by the share that survives");
const auto kExtract = choice_option(
    "extract", "none", {"none", "a", "ab"},
    "patterns made inside every launch: none (compute only), a (B's cached), ab (total)");

// The share of indices that may survive before cuBLAS is faster; measured on an H200 at 4096^3.
double dense_share(Precision precision) { return precision == Precision::tf32 ? 0.16 : 0.15; }

const Kernel& cublas_dense() { return Registry<Kernel>::instance().at("cublas_dense"); }

Support supports_cublas(const Problem& problem, const DeviceInfo& device) {
  return check_support(cublas_dense(), Problem{problem, problem, {}}, device);
}

// Calls run.operator()<Input>() with the tag of mma's inputs.
template <class Run>
void with_input(Precision precision, Run&& run) {
  switch (precision) {
    case Precision::fp16: run.template operator()<__half>(); break;
    case Precision::bf16: run.template operator()<__nv_bfloat16>(); break;
    default: run.template operator()<ptx::Tf32>(); break;
  }
}

class EsmmMmaPlan final : public Plan {
 public:
  EsmmMmaPlan(const Problem& problem, Device& device, StageTimer& stages)
      : operands_(problem, device, stages),
        device_(device),
        problem_(problem),
        path_(kPath(problem.options)),
        extract_(kExtract(problem.options)) {
    with_input(problem.precision, [&]<class Input>() {
      using S = Shape<Input>;
      allow_shared_bytes(warp_list<S>, S::kSharedBytes);
    });
  }

  void inspect_b(const DenseView& b, StageTimer& stages) override {
    operands_.read_patterns(b, stages);
    operands_.extract(false, stages);
    if (extract_ == "none") operands_.drop_dense();
    needed_ = operands_.needed(1, 1, 1);
    const bool dense = path_ ? *path_ == "dense"
                             : needed_ > dense_share(problem_.precision) &&
                                   supports_cublas(problem_, device_.info()).ok;
    if (!dense) return;
    dense_a_ = cublas_dense().prepare(problem_, {}, device_, stages);
    dense_ = dense_a_->bind(problem_, stages);
  }

  void launch(const DenseView& b, const DenseView& c, Stream stream) override {
    if (extract_ != "none") operands_.launch_extract_a(false, stream);
    if (extract_ == "ab") operands_.launch_extract_b(b, stream);
    if (dense_) return dense_->launch(b, c, stream);
    const esmm::Operands op = operands_.operands(b, c);
    with_input(problem_.precision, [&]<class Input>() {
      using S = Shape<Input>;
      warp_list<S><<<static_cast<unsigned>(S::grid(op)), S::kThreads, S::kSharedBytes,
                     static_cast<cudaStream_t>(stream.handle)>>>(op, c.type);
    });
    SPMMBENCH_CUDA_LAUNCHED();
  }

  PlanReport report() const override {
    PlanReport r;
    r.device_bytes = operands_.device_bytes();
    r.format = operands_.format(problem_.nnz());
    r.params = {{"path", dense_ ? "dense" : "lists"}, {"extract", extract_}};
    r.metrics = operands_.metrics();
    const esmm::Sizes& s = operands_.sizes();
    constexpr double kTile = 2.0 * esmm::kStrip * esmm::kStrip;
    r.issued_flops =
        kTile * static_cast<double>(s.strips_a * s.strips_b) * static_cast<double>(s.k) * needed_;
    if (dense_) {
      const PlanReport dense = dense_->report();
      r.device_bytes += dense.device_bytes;
      r.issued_flops = dense.issued_flops;
    }
    return r;
  }

 private:
  esmm::PatternedOperands operands_;
  Device& device_;
  Problem problem_;
  std::optional<std::string> path_;
  std::string extract_;
  std::unique_ptr<Prepared> dense_a_;  // of cublas_dense; empty where lists multiply
  std::unique_ptr<Plan> dense_;
  double needed_ = 0;  // the share of the indices of a tile that survive, mean over tiles
};

class EsmmMma final : public Kernel {
 public:
  const KernelInfo& info() const override { return info_; }

  Support supports(const Problem& problem, const DeviceInfo& device) const override {
    const Support lists = esmm::supports_dense_a(problem, device);
    if (!lists.ok || kPath(problem.options) == "lists") return lists;
    const Support cublas = supports_cublas(problem, device);
    if (!cublas.ok) return kPath(problem.options) == "dense" ? cublas : lists;
    const std::size_t bytes = lists.device_bytes + cublas.device_bytes;
    if (bytes > device.memory_bytes)
      return Support::no(
          fmt::format("A stored densely needs {:.1f} GB", static_cast<double>(bytes) / 1e9));
    return Support::yes(bytes);
  }

  std::unique_ptr<Prepared> prepare(const SparseOperand& a, const Options& options, Device& device,
                                    StageTimer&) const override {
    return std::make_unique<PreparedPerShape<EsmmMmaPlan>>(a, options, device);
  }

 private:
  KernelInfo info_ = {
      .name = "esmm_mma",
      .summary = "dense-stored A and B, mma over lists of k-indices nonzero in both",
      .source = "ESMM patterns; lists are ours",
      .purpose = "for a B with zeros",
      .min_compute_capability = 80,
      .precisions = {Precision::tf32, Precision::fp16, Precision::bf16},
      .c_types = {ElementType::f32, ElementType::f16, ElementType::bf16},
      .accumulation = Accumulation::fp32_tensor_core,
      .inspects_b = true,
      .options = {kPath, kExtract},
  };
};

SPMMBENCH_REGISTER_KERNEL(EsmmMma);

}  // namespace
}  // namespace spmmbench::esmm_mma
