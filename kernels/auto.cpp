// auto: looks at the structure of A, predicts the time of each kernel that could suit it, and runs
// the one with the least. What it picked and why is in the result's params. The models are short on
// purpose: bytes over measured rates of an H200 (results/NOTES.md, auto); what they must get right
// is the order of the kernels, not their times.

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/tile_choice.hpp"
#include "format/wcsr_estimate.hpp"
#include "spmmbench/error.hpp"
#include "spmmbench/registry.hpp"

namespace spmmbench {
namespace {

constexpr double kLaunchUs = 3;
constexpr double kMemoryBytesPerUs = 3.4e6;  // B once and C once, mixed
constexpr double kWcsrBytesPerUs = 8.0e6;    // out of the L2 cache, by tiles
constexpr double kCsrBytesPerUs = 6.4e6;     // the same, row by row
constexpr double kBcsrFlopsPerUs = 4.0e8;    // of stored 64 x 64 blocks, 16-bit

// What the prediction looks at. Everything that costs more than a pass over the row pointers is
// sampled.
struct Structure {
  double nnz = 0;
  double mean_row = 0;
  double cv_row = 0;
  double gathered_share = 0;  // distinct columns of 8-row windows / nonzeros
  double block_fill = 0;      // of the 64 x 64 blocks that hold a nonzero
};

// Bands of 64 rows in proportion to their nonzeros, as estimate_wcsr samples its groups.
double estimate_block_fill(const CsrMatrix& matrix) {
  constexpr std::int64_t kBlock = 64, kSamples = 32;
  if (matrix.nnz() == 0) return 0;
  double slots_per_nonzero = 0;
  std::vector<std::int32_t> blocks;
  for (std::int64_t s = 0; s < kSamples; ++s) {
    const std::int64_t entry = matrix.nnz() / kSamples * s + matrix.nnz() / (2 * kSamples);
    const std::int64_t row = std::upper_bound(matrix.row_ptr.begin(), matrix.row_ptr.end(), entry) -
                             matrix.row_ptr.begin() - 1;
    const std::int64_t first = row / kBlock * kBlock;
    const std::int64_t last = std::min(first + kBlock, matrix.rows);
    blocks.clear();
    for (std::int64_t e = matrix.row_ptr[first]; e < matrix.row_ptr[last]; ++e) {
      const auto block = static_cast<std::int32_t>(matrix.col_idx[e] / kBlock);
      if (blocks.empty() || blocks.back() != block) blocks.push_back(block);
    }
    std::sort(blocks.begin(), blocks.end());
    const auto distinct = std::unique(blocks.begin(), blocks.end()) - blocks.begin();
    slots_per_nonzero += static_cast<double>(distinct * kBlock * kBlock) /
                         static_cast<double>(matrix.row_ptr[last] - matrix.row_ptr[first]);
  }
  return kSamples / slots_per_nonzero;
}

Structure structure_of(const CsrMatrix& matrix) {
  Structure out;
  out.nnz = static_cast<double>(matrix.nnz());
  if (matrix.nnz() == 0) return out;
  out.mean_row = out.nnz / static_cast<double>(matrix.rows);
  out.cv_row = row_length_variation(matrix);
  out.gathered_share = estimate_wcsr(matrix, {}).gathered_share[0];
  out.block_fill = estimate_block_fill(matrix);
  return out;
}

struct Candidate {
  std::string kernel;
  Options options;
  double us = 0;  // predicted
};

std::vector<Candidate> candidates(const Problem& problem, const Structure& structure) {
  const auto value_bytes = static_cast<double>(bytes_of(storage_type(problem.precision)));
  const auto n = static_cast<double>(problem.n);
  const double memory_us =
      (structure.nnz * (4 + value_bytes) + static_cast<double>(problem.k()) * n * value_bytes +
       static_cast<double>(problem.m()) * n * 4) /
      kMemoryBytesPerUs;
  std::vector<Candidate> out;
  const auto add = [&](std::string kernel, std::map<std::string, std::string> options,
                       double work_us) {
    out.push_back(
        {std::move(kernel), Options(std::move(options)), std::max(work_us, memory_us) + kLaunchUs});
  };
  const double gathered = structure.nnz * structure.gathered_share;
  const double strips = std::max(1.0, n * value_bytes / 256);
  add("async_wcsr", {{"order", "search"}},
      gathered * (n * value_bytes + strips * (4 + 8 * value_bytes)) / kWcsrBytesPerUs);
  add("csr_row_split", {}, structure.nnz * (n * value_bytes + 4 + value_bytes) / kCsrBytesPerUs);
  if (structure.block_fill > 0 && value_bytes == 2)
    add("async_bcsr", {}, structure.nnz / structure.block_fill * 2 * n / kBcsrFlopsPerUs);
  std::stable_sort(out.begin(), out.end(),
                   [](const Candidate& a, const Candidate& b) { return a.us < b.us; });
  return out;
}

// The kernel, and the problem as it is given to it: with that kernel's options.
struct Pick {
  const Kernel* kernel = nullptr;
  Problem problem;
  double us = 0;
  std::string reason;  // why none, when kernel is null
};

Pick pick(const Problem& problem, const Structure& structure, const DeviceInfo& device) {
  Pick out;
  for (const Candidate& candidate : candidates(problem, structure)) {
    const Kernel* const kernel = Registry<Kernel>::instance().find(candidate.kernel);
    if (kernel == nullptr) continue;
    Problem own = problem;
    own.options = candidate.options;
    const Support support = check_support(*kernel, own, device);
    if (support.ok) return {kernel, std::move(own), candidate.us, {}};
    out.reason = fmt::format("{}: {}", candidate.kernel, support.reason);
  }
  return out;
}

class AutoPlan final : public Plan {
 public:
  AutoPlan(std::unique_ptr<Plan> plan, std::map<std::string, std::string> params)
      : plan_(std::move(plan)), params_(std::move(params)) {}

  void launch(const DenseView& b, const DenseView& c, Stream stream) override {
    plan_->launch(b, c, stream);
  }
  PlanReport report() const override {
    PlanReport report = plan_->report();
    report.params.insert(params_.begin(), params_.end());
    return report;
  }

 private:
  std::unique_ptr<Plan> plan_;
  std::map<std::string, std::string> params_;
};

class Auto final : public Kernel {
 public:
  const KernelInfo& info() const override { return info_; }

  Support supports(const Problem& problem, const DeviceInfo& device) const override {
    const Pick picked = pick(problem, structure_of(*problem.a), device);
    if (picked.kernel == nullptr) return Support::no(picked.reason);
    return check_support(*picked.kernel, picked.problem, device);
  }

  std::unique_ptr<Plan> prepare(const Problem& problem, Device& device,
                                StageTimer& stages) const override {
    Pick picked;
    std::map<std::string, std::string> params;
    {
      const auto timed = stages.scope("choose");
      const Structure structure = structure_of(*problem.a);
      picked = pick(problem, structure, device.info());
      if (picked.kernel == nullptr) throw Error(fmt::format("auto: {}", picked.reason));
      params["picked"] = Spec{picked.kernel->info().name, picked.problem.options}.to_string();
      params["why"] = fmt::format(
          "{:.1f} nonzeros per row (cv {:.1f}), 8-row windows gather {:.2f} per nonzero, "
          "64x64 blocks {:.0f}% full: predicted {:.1f} us",
          structure.mean_row, structure.cv_row, structure.gathered_share,
          100 * structure.block_fill, picked.us);
    }
    return std::make_unique<AutoPlan>(picked.kernel->prepare(picked.problem, device, stages),
                                      std::move(params));
  }

 private:
  KernelInfo info_ = {
      .name = "auto",
      .summary = "the kernel that the structure of A suggests, with its best options",
      .source = "spmmbench",
      .precisions = {Precision::fp32, Precision::tf32, Precision::fp16, Precision::bf16},
      .accumulation = Accumulation::fp32_tensor_core,
      .writes_row_ids = true,
  };
};

SPMMBENCH_REGISTER_KERNEL(Auto);

}  // namespace
}  // namespace spmmbench
