// auto: looks at the structure of A, predicts the time of each kernel that could suit it, and runs
// the one with the least. What it picked and why is in the result's params. The models are short on
// purpose, sums of terms whose factors were fitted to an H200 (docs/log/irregular-windows.md); what they
// must get right is the order of the kernels, not their times.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/tile_choice.hpp"
#include "format/wcsr_estimate.hpp"
#include "spmmbench/error.hpp"
#include "spmmbench/registry.hpp"
#include "spmmbench/shared_parts.hpp"

namespace spmmbench {
namespace {

// What the prediction looks at, all of it from samples of the rows.
struct Structure {
  double nnz = 0;
  double mean_row = 0;
  double cv_row = 0;
  double empty_rows = 0;  // share of the rows
  WcsrEstimate windows;
  double band_blocks = 0;  // 64-column blocks with a nonzero in a band of 128 rows
  double block_fill = 0;   // nonzeros / entries of those blocks
};

constexpr std::int64_t kBandRows = 128, kBlockColumns = 64;

// Bands in proportion to their nonzeros: a few, and more where their blocks may be worth it.
void estimate_blocks(const CsrMatrix& matrix, const std::vector<std::int64_t>& rows,
                     Structure& out) {
  constexpr std::size_t kFew = 4;
  constexpr double kWorthFill = 0.15;
  constexpr std::int64_t kMostEntries = 1 << 16, kMostOfBand = 1 << 14;
  std::vector<bool> seen(matrix.cols / kBlockColumns + 1);
  std::vector<std::int32_t> blocks;
  double samples = 0, slots_per_nonzero = 0, distinct = 0, slots = 0;
  std::int64_t entries = 0, sampled = -1;
  const auto sample = [&](std::int64_t row) {
    const std::int64_t first = row / kBandRows * kBandRows;
    const std::int64_t last = std::min(first + kBandRows, matrix.rows);
    if (first != sampled) {
      const std::int64_t nnz = matrix.row_ptr[last] - matrix.row_ptr[first];
      const std::int64_t parts = (nnz + kMostOfBand - 1) / kMostOfBand;
      blocks.clear();
      for (std::int64_t r = first; r < last; ++r)
        for_part_of_row(matrix, r, parts, parts / 2, [&](std::int32_t column) {
          const std::int32_t block = column / static_cast<std::int32_t>(kBlockColumns);
          if (!seen[block]) blocks.push_back(block);
          seen[block] = true;
        });
      for (const std::int32_t block : blocks) seen[block] = false;
      distinct = static_cast<double>(blocks.size()) * static_cast<double>(parts);
      slots = distinct * static_cast<double>(kBandRows * kBlockColumns) / static_cast<double>(nnz);
      entries += nnz / parts;
      sampled = first;
    }
    samples += 1;
    out.band_blocks += distinct;
    slots_per_nonzero += slots;
  };
  for (std::size_t i = 0; i < kFew; ++i) sample(rows[(2 * i + 1) * rows.size() / (2 * kFew)]);
  if (samples / slots_per_nonzero > kWorthFill)
    for (std::size_t i = 0; i < rows.size() && entries < kMostEntries; ++i) sample(rows[i]);
  out.band_blocks /= samples;
  out.block_fill = std::min(1.0, samples / slots_per_nonzero);
}

double share_of_empty_rows(const CsrMatrix& matrix) {
  constexpr std::int64_t kPlaces = 128, kRows = 8;  // so many rows lie in a cache line
  const std::int64_t places = std::min(kPlaces, (matrix.rows + kRows - 1) / kRows);
  std::int64_t empty = 0, rows = 0;
  for (std::int64_t i = 0; i < places; ++i) {
    const std::int64_t first = matrix.rows / places * i;
    const std::int64_t last = std::min(first + kRows, matrix.rows);
    for (std::int64_t row = first; row < last; ++row) empty += matrix.row_length(row) == 0;
    rows += last - first;
  }
  return static_cast<double>(empty) / static_cast<double>(rows);
}

Structure structure_of(const CsrMatrix& matrix) {
  Structure out;
  out.nnz = static_cast<double>(matrix.nnz());
  if (matrix.nnz() == 0) return out;
  out.mean_row = out.nnz / static_cast<double>(matrix.rows);
  out.cv_row = row_length_variation(matrix);
  out.empty_rows = share_of_empty_rows(matrix);
  constexpr std::int64_t kQuick = 1 << 12;
  out.windows = estimate_wcsr(matrix, {}, kQuick);
  estimate_blocks(matrix, rows_at_nonzeros(matrix), out);
  return out;
}

struct Candidate {
  std::string kernel;
  Options options;
  double us = 0;  // predicted
};

// Best first.
std::vector<Candidate> candidates(const Problem& problem, const Structure& structure,
                                  int sm_count) {
  const int value_bytes = static_cast<int>(bytes_of(storage_type(problem.precision)));
  const auto n = static_cast<double>(problem.n), row_bytes = n * value_bytes;
  const auto rows = static_cast<double>(problem.m());
  const double b_mb = static_cast<double>(problem.k()) * row_bytes * 1e-6;
  const double c_mb = rows * n * 4e-6;
  const double gather_mb = structure.nnz * row_bytes * 1e-6;

  // By the tile and strip of 128 bytes, at the height that suits best; empty windows have a tile as
  // well.
  constexpr std::array<double, 3> kTileUs = {180e-6, 240e-6, 380e-6};
  double tiles_us = std::numeric_limits<double>::infinity();
  for (std::size_t h = 0; h < kTileUs.size(); ++h)
    tiles_us = std::min(
        tiles_us, kTileUs[h] * std::max(structure.nnz * structure.windows.stored_share[h] / 16,
                                        rows / kWcsrHeights[h]));
  const double strips = std::max(1.0, row_bytes / 128);
  const tiles::Height height = tiles::best_height(structure.windows, problem.n, value_bytes,
                                                  tiles::dense_box_cost(value_bytes));
  const bool search = tiles::worth_order(*problem.a, height.cost, problem.n, value_bytes);
  std::map<std::string, std::string> windows_options = {{"order", "search"}};
  if (!search)
    windows_options = {{"order", "natural"},
                       {"window", fmt::format("{}", kWcsrHeights[height.index])}};
  Candidate windows{"async_wcsr", Options(std::move(windows_options)),
                    1.6 + tiles_us * strips + 0.23 * c_mb + 0.2 * b_mb};
  // By the nonzero: rows of B from the L1 cache where neighbours share them. Rows that differ in
  // length leave lanes idle, and long ones are cut.
  Candidate rows_of_a{
      "csr_row_split",
      {},
      0.06 * gather_mb + 0.24 * c_mb + 0.3 * b_mb + 4 * std::min(3.0, structure.cv_row)};

  // Windows of short, even rows are mostly padding, which costs them most while rows of B are
  // narrow; unless an order is worth looking for, which only async_wcsr does.
  const double windows_cost = tiles::gather_cost(structure.windows, 0, problem.n, value_bytes,
                                                 tiles::dense_box_cost(value_bytes));
  const bool plain =
      row_bytes <= 128 && structure.cv_row < 1 && gather_mb < 13 * (0.24 * c_mb + 0.3 * b_mb) &&
      tiles::gathers_over_memory(*problem.a, windows_cost, problem.n, value_bytes) < 1;
  std::vector<Candidate> out{std::move(windows), std::move(rows_of_a)};
  if (plain) std::swap(out[0], out[1]);
  // Windows of aligned rows are padding where most rows are empty; rsh makes them of those that are
  // not.
  if (structure.empty_rows > 0.6) out.insert(out.begin(), {"rsh", {}, 0.9 * out[0].us});
  // Its bitmaps are a third of nearly empty boxes of four-byte values. Decoding them takes longer
  // than reading boxes where windows are long, and where a launch is mostly latency.
  const bool boxes_are_empty = value_bytes == 4 && structure.windows.stored_share[0] > 0.5;
  if (boxes_are_empty && structure.mean_row < 16 && out[0].kernel == "async_wcsr" && out[0].us > 20)
    out.insert(out.begin(), {"rsh", {}, 0.96 * out[0].us});

  // By the block: a thread block walks those of its band one after another, then stores C.
  if (structure.band_blocks > 0 && value_bytes == 2) {
    const double bands = std::ceil(rows / kBandRows), wide = std::ceil(n / 256);
    const double turns = std::ceil(bands * wide / sm_count), width = std::min(n, 256.0);
    const double turn_us = 4 + 0.02 * width + (0.49 + 0.0006 * width) * structure.band_blocks;
    const double flops = structure.nnz / structure.block_fill * 2 * n;
    // The roughest of the predictions, for the longest of the builds.
    constexpr double kMargin = 0.8;
    Candidate blocks{"async_bcsr", {}, std::max(turns * turn_us, flops / 4e8)};
    out.insert(blocks.us < kMargin * out[0].us ? out.begin() : out.end(), std::move(blocks));
  }
  return out;
}

// The kernel with its options, and what it is expected to take.
struct Pick {
  const Kernel* kernel = nullptr;
  Options options;
  double us = 0;
  std::string reason;  // why none, when kernel is null
};

Pick pick(const Problem& problem, const Structure& structure, const DeviceInfo& device) {
  Pick out;
  for (const Candidate& candidate : candidates(problem, structure, device.sm_count)) {
    const Kernel* const kernel = Registry<Kernel>::instance().find(candidate.kernel);
    if (kernel == nullptr) continue;
    Problem own = problem;
    own.options = candidate.options;
    const Support support = check_support(*kernel, own, device);
    if (support.ok) return {kernel, candidate.options, candidate.us, {}};
    out.reason = fmt::format("{}: {}", candidate.kernel, support.reason);
  }
  return out;
}

class AutoPlan final : public Plan {
 public:
  AutoPlan(std::unique_ptr<Plan> plan, std::map<std::string, std::string> params)
      : plan_(std::move(plan)), params_(std::move(params)) {}

  void inspect_b(const DenseView& b, StageTimer& stages) override { plan_->inspect_b(b, stages); }
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

class AutoPrepared final : public Prepared {
 public:
  AutoPrepared(const SparseOperand& a, Device& device, StageTimer& stages)
      : a_(a), device_(device) {
    const auto timed = stages.scope("choose");
    structure_ = structure_of(*a.a);
  }

  std::unique_ptr<Plan> bind(const Shape& shape, StageTimer& stages) override {
    Pick picked;
    std::map<std::string, std::string> params;
    {
      const auto timed = stages.scope("choose");
      picked = pick(Problem{a_, shape, {}}, structure_, device_.info());
      if (picked.kernel == nullptr) throw Error(fmt::format("auto: {}", picked.reason));
      params["picked"] = Spec{picked.kernel->info().name, picked.options}.to_string();
      params["why"] = fmt::format(
          "{:.1f} nonzeros per row (cv {:.1f}, {:.0f}% empty), 8-row windows gather {:.2f} per "
          "nonzero, "
          "128x64 blocks {:.0f}% full: predicted {:.1f} us",
          structure_.mean_row, structure_.cv_row, 100 * structure_.empty_rows,
          structure_.windows.gathered_share[0], 100 * structure_.block_fill, picked.us);
    }
    auto& prepared = prepared_.get(params["picked"], [&](StageTimer& cost) {
      return picked.kernel->prepare(a_, picked.options, device_, cost);
    });
    stages.add(prepared.cost);
    return std::make_unique<AutoPlan>(prepared.part->bind(shape, stages), std::move(params));
  }

 private:
  SparseOperand a_;
  Device& device_;
  Structure structure_;
  SharedParts<std::string, std::unique_ptr<Prepared>> prepared_;  // by what was picked
};

class Auto final : public Kernel {
 public:
  const KernelInfo& info() const override { return info_; }

  Support supports(const Problem& problem, const DeviceInfo& device) const override {
    const Pick picked = pick(problem, structure_of(*problem.a), device);
    if (picked.kernel == nullptr) return Support::no(picked.reason);
    Problem own = problem;
    own.options = picked.options;
    return check_support(*picked.kernel, own, device);
  }

  std::unique_ptr<Prepared> prepare(const SparseOperand& a, const Options&, Device& device,
                                    StageTimer& stages) const override {
    return std::make_unique<AutoPrepared>(a, device, stages);
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
