// gap_slices: weights with scattered zeros times a vector (N = 1), as in decoding token by token.
// Every lane of a warp walks the nonzeros of a row. Of the column of a nonzero only the gap to the
// one before is stored, in 4 or 8 bits, so a nonzero takes 2.5 or 3 bytes, one less in fp8, and a
// position without one takes neither bytes nor instructions. B lies in shared memory.
//
// docs/kernels/gap_slices.md has the pictures and what was measured.

#include <cuda_runtime.h>
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "common/dependent_launch.hpp"
#include "common/resident_csr.hpp"
#include "common/shared_limit.hpp"
#include "core/row_lengths.hpp"
#include "gap_slices/device.cuh"
#include "gap_slices/device_build.hpp"
#include "spmmbench/registry.hpp"

namespace spmmbench::gap_slices {
namespace {

using Slices = GapSlices;

const auto kRowLanes = auto_choice_option<int>("row_lanes", {"1", "2", "4", "8", "16", "32"},
                                               "lanes of a warp that share a row");
const auto kGapBits = auto_choice_option<int>("gap_bits", {"4", "8"}, "of the gap to a nonzero");

// The most that one block needs: a sum for each of kMostBlockRows rows, and 32 more for each warp.
constexpr std::size_t kMostSumBytes =
    (Slices::kMostBlockRows + Slices::kLanes * gap_slices::kWarps) * sizeof(float);
constexpr std::int64_t kSmallPositions = std::int64_t{1} << 24;  // never refused for fill

class GapSlicesPlan final : public Plan {
 public:
  struct Matrix {  // A on the device
    Matrix(const SparseOperand& a, const Options& options, Device& device, StageTimer& stages)
        : type(storage_type(a.precision)), scale(a.scale()), overlap(kernels_wait()) {
      const ResidentCsr resident(a, device, stages);
      const auto timed = stages.scope("build");
      const int value_bits = 8 * static_cast<int>(bytes_of(type));
      if (kRowLanes(options) && kGapBits(options)) {
        shape = {*kRowLanes(options), *kGapBits(options), value_bits};
      } else {
        shape =
            Slices::choose(gap_slices::count(resident.view()), device.info().sm_count, value_bits);
        shape.row_lanes = kRowLanes(options).value_or(shape.row_lanes);
        shape.gap_bits = kGapBits(options).value_or(shape.gap_bits);
      }
      built = gap_slices::build_slices(resident.view(), a.row_ids, shape, device.info().sm_count,
                                       gap_slices::kWarps, device);
      const Slices& index = built.index;
      stats = index.stats();
      blocks = static_cast<unsigned>(index.block_ptr.size() - 1);
      std::int32_t most_slices = 0;
      for (unsigned block = 0; block < blocks; ++block)
        most_slices = std::max(most_slices, index.block_ptr[block + 1] - index.block_ptr[block]);
      shared_bytes =
          gap_slices::shared_bytes(a.k(), gap_slices::held_bytes(type), most_slices, shape.rows());
      arguments = {.words = built.words.as<std::uint32_t>(),
                   .slice_ptr = built.slice_ptr.as<std::int32_t>(),
                   .block_ptr = built.block_ptr.as<std::int32_t>(),
                   .slice_warps = built.slice_warps.as<Slices::Warps>(),
                   .ranges = built.ranges.as<Slices::Range>(),
                   .starts = built.starts.as<std::int32_t>(),
                   .row_ids = built.slice_rows.as<std::int32_t>(),
                   .cols = static_cast<int>(a.k()),
                   .part_cols = static_cast<int>(index.part_cols),
                   .row_lanes = shape.row_lanes,
                   .scale = scale};
    }

    ElementType type;
    float scale;
    bool overlap;
    Slices::Shape shape;
    FormatStats stats;
    unsigned blocks = 0;
    std::size_t shared_bytes = 0;
    gap_slices::DeviceSlices built;
    gap_slices::Arguments arguments{};
  };

  GapSlicesPlan(const Matrix& a, ElementType c_type) : a_(a) {
    visit_multiply(c_type, [&](auto multiply, auto*, auto*) {
      allow_shared_bytes(multiply, static_cast<int>(a.shared_bytes));
    });
  }

  void launch(const DenseView& b, const DenseView& c, Stream stream) override {
    gap_slices::Arguments arguments = a_.arguments;
    arguments.scale *= b.scale;
    visit_multiply(c.type, [&]<class T, class TC>(auto multiply, T*, TC*) {
      launch_dependent(multiply, dim3(a_.blocks), dim3(gap_slices::kThreads), a_.shared_bytes,
                       stream, a_.overlap, arguments,
                       gap_slices::Vector<const T>{static_cast<const T*>(b.data), b.row_stride()},
                       gap_slices::Vector<TC>{static_cast<TC*>(c.data), c.row_stride()});
    });
  }

  PlanReport report() const override {
    PlanReport report;
    report.format = a_.stats;
    const gap_slices::DeviceSlices& built = a_.built;
    report.device_bytes +=
        sum_of_bytes(built.words, built.slice_ptr, built.block_ptr, built.slice_warps, built.ranges,
                     built.starts, built.slice_rows);
    report.issued_flops = 2.0 * static_cast<double>(a_.stats.stored);
    report.params["row_lanes"] = fmt::format("{}", a_.shape.row_lanes);
    report.params["gap_bits"] = fmt::format("{}", a_.shape.gap_bits);
    return report;
  }

 private:
  // Calls `function` with the kernel for these types and gaps, and null pointers of its types.
  template <class Function>
  void visit_multiply(ElementType c_type, Function&& function) {
    visit_element_type(c_type, [&]<class TC>(TC* c_tag) {
      const auto with = [&]<class T>(T* tag) {
        if (a_.shape.gap_bits == 4) function(gap_slices::multiply<T, TC, 4>, tag, c_tag);
        else function(gap_slices::multiply<T, TC, 8>, tag, c_tag);
      };
      if (a_.type == ElementType::f16) with(static_cast<__half*>(nullptr));
      else if (a_.type == ElementType::e4m3) with(static_cast<__nv_fp8_e4m3*>(nullptr));
      else with(static_cast<__nv_bfloat16*>(nullptr));
    });
  }

  const Matrix& a_;
};

class GapSlicesPrepared final : public Prepared {
 public:
  GapSlicesPrepared(const SparseOperand& a, const Options& options, Device& device,
                    StageTimer& stages)
      : a_(a, options, device, stages) {}

  std::unique_ptr<Plan> bind(const Shape& shape, StageTimer&) override {
    return std::make_unique<GapSlicesPlan>(a_, shape.c_type);
  }

 private:
  GapSlicesPlan::Matrix a_;
};

class GapSlicesKernel final : public Kernel {
 public:
  const KernelInfo& info() const override { return info_; }

  Support supports(const Problem& problem, const DeviceInfo& device) const override {
    if (problem.n != 1) return Support::no("N = 1 only");
    const ElementType type = storage_type(problem.precision);
    const std::size_t shared =
        gap_slices::vector_bytes(problem.k(), gap_slices::held_bytes(type)) + kMostSumBytes;
    if (shared > device.shared_per_block)
      return Support::no(
          fmt::format("a vector of {} elements and the sums take {} of {} bytes of "
                      "shared memory",
                      problem.k(), shared, device.shared_per_block));
    const std::int64_t positions = problem.m() * problem.k();
    const std::int64_t widest = (1 << kGapBits(problem.options).value_or(8)) - 1;
    if (positions > kSmallPositions && positions > widest * problem.nnz())
      return Support::no("more columns between nonzeros than the widest gap, on average");
    // At worst one lane of every row has all its nonzeros, with zeros on the way and at its end. No
    // slice is longer than the shortest row of the slice before, the first than the longest row.
    const Slices::Counts counts = counts_of(problem);
    const std::int64_t row_lanes =
        kRowLanes(problem.options)
            .value_or(Slices::choose_row_lanes(counts, device.sm_count).count);
    const std::int64_t of_rows = problem.nnz() + Slices::kGroup * problem.m() + positions / widest;
    const std::int64_t of_longest = counts.longest_row + Slices::kGroup + problem.k() / widest;
    const std::int64_t entries = row_lanes * of_rows + Slices::kLanes * of_longest;
    const std::int64_t blocks = device.sm_count + problem.m() / Slices::kMostBlockRows + 1;
    const std::int64_t of_warp = sizeof(Slices::Range) + Slices::kLanes * sizeof(std::int32_t);
    const auto entry_bytes = static_cast<std::int64_t>(bytes_of(type)) + 1;  // with the widest gap
    constexpr std::int64_t kRowBytes = 12;  // slice_rows, slice_ptr, slice_warps: a slice each
    return Support::yes(static_cast<std::size_t>(entry_bytes * entries +
                                                 kRowBytes * (problem.m() + Slices::kLanes) +
                                                 blocks * gap_slices::kWarps * of_warp) +
                        resident_bytes(problem));
  }

  std::unique_ptr<Prepared> prepare(const SparseOperand& a, const Options& options, Device& device,
                                    StageTimer& stages) const override {
    return std::make_unique<GapSlicesPrepared>(a, options, device, stages);
  }

 private:
  // Without entries, which take longer, where A is on the host.
  static Slices::Counts counts_of(const Problem& problem) {
    if (problem.on_device != nullptr) return gap_slices::count(*problem.on_device);
    return {problem.m(), problem.k(), problem.nnz(), longest_row(*problem.a)};
  }

  KernelInfo info_ = {
      .name = "gap_slices",
      .summary = "N = 1, scattered zeros: nonzeros stored by the gaps between them",
      .source = "spmmbench",
      .precisions = {Precision::fp16, Precision::fp8_e4m3, Precision::bf16},
      .c_types = {ElementType::f32, ElementType::f16, ElementType::bf16},
      .layouts = {Layout::row_major, Layout::col_major},
      .accumulation = Accumulation::fp32_fma,
      .writes_row_ids = true,
      .prepares_on_device = true,
      .options = {kRowLanes, kGapBits},
  };
};

SPMMBENCH_REGISTER_KERNEL(GapSlicesKernel);

}  // namespace
}  // namespace spmmbench::gap_slices
