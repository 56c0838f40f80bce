// async_wcsr: irregular SpMM on tensor cores, after AsyncSparse (arXiv 2604.17834): windows of rows
// whose distinct columns are packed (src/format/wcsr.hpp), rows of B gathered asynchronously ahead
// of the products. common/tile_ring.cuh is the device code; this file chooses, builds and launches.
//
// Where it differs from the paper's kernel, which async_wcsr_paper keeps: windows of 8 to 32 rows
// rather than 64 and mma rather than wgmma (irregular matrices share few columns over 64 rows, and
// the tensor cores are never the limit), a ring of copies per warp rather than producer and
// consumer warpgroups (no barrier between warps), and split windows added up in a workspace rather
// than in C (no clearing pass).

#include <cuda_runtime.h>
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "async_wcsr/dense_box.cuh"
#include "async_wcsr/device_build.hpp"
#include "common/dependent_launch.hpp"
#include "common/tile_choice.hpp"
#include "common/tile_launch.hpp"
#include "common/tile_ring.cuh"
#include "format/tile_work.hpp"
#include "format/wcsr.hpp"
#include "gpu/cuda_check.hpp"
#include "spmmbench/registry.hpp"
#include "spmmbench/shared_parts.hpp"

namespace spmmbench {
namespace {

constexpr int kStages = 3;

template <class Boxes, int kRowBytes>
__global__ void __launch_bounds__(tiles::kMaxThreads,
                                  tiles::kMinBlocks<Boxes::kWindowRows, kRowBytes>)
    wcsr_kernel(const __grid_constant__ tiles::Arguments in, const void* boxes) {
  extern __shared__ __align__(128) unsigned char shared[];
  tiles::multiply_spans<Boxes, kRowBytes, kStages>(in, boxes, shared);
}

using Variant = tiles::Variant<tiles::Arguments, const void*>;

struct MakeVariant {
  template <class Input, int kWindowRows, int kRowBytes>
  Variant operator()() const {
    using Boxes = wcsr::DenseBoxes<Input, kWindowRows>;
    using Shape = tiles::Shape<Boxes, kRowBytes, kStages>;
    return {wcsr_kernel<Boxes, kRowBytes>, Shape::kFeatures, Shape::kRingBytes, Shape::kSums};
  }
};

// A in windows of one height and order.
struct Windows {
  WcsrShape shape;
  tiles::Choice choice;
  DeviceWcsr matrix;
  Buffer row_ids;
};

using SharedWindows = SharedParts<std::pair<std::string, int>, Windows>;  // by order and height

class AsyncWcsrPlan final : public Plan {
 public:
  AsyncWcsrPlan(const SparseOperand& a, const Options& options, std::int64_t n,
                SharedWindows::Entry& built, Device& device, StageTimer& stages)
      : windows_(built.part), n_(n), overlap_(device.info().compute_capability >= 90) {
    const DeviceWcsr& matrix = windows_.matrix;
    TileWork work;
    {
      const auto timed = stages.scope("build");
      variant_ = tiles::make_variant(a.precision, options, n, matrix.tiles(), matrix.windows(),
                                     windows_.shape.window_rows, MakeVariant{});
      launch_ = tiles::choose_launch(options, variant_, n, matrix.tiles(), matrix.windows(),
                                     device.info());
      work = cut_windows(matrix.window_ptr_host, launch_.cut);
    }
    if (windows_.matrix.input.data() != nullptr) {  // built just now: it may still be running
      const auto timed = built.cost.scope("build");
      device.synchronize();
      windows_.matrix.input = {};
    }
    stages.add(built.cost);
    const auto timed = stages.scope("upload");
    upload(a, work, device);
    describe(a, work);
  }

  void launch(const DenseView& b, const DenseView& c, Stream stream) override {
    if (blocks_ == 0) return;
    tiles::Arguments in = arguments_;
    in.b = b.data;
    in.b_row_bytes = static_cast<std::uint32_t>(b.ld * static_cast<std::int64_t>(bytes_of(b.type)));
    in.c = static_cast<float*>(c.data);
    in.ldc = c.ld;
    launch_dependent(variant_.kernel, dim3(blocks_, launch_.strip_groups), launch_.block(),
                     launch_.shared_bytes, stream, overlap_, in,
                     static_cast<const void*>(windows_.matrix.values));
  }

  PlanReport report() const override { return report_; }

 private:
  void upload(const SparseOperand& a, const TileWork& work, Device& device) {
    blocks_ = static_cast<unsigned>(work.spans.size() / launch_.cut.team);
    spans_ = device.upload(work.spans);
    splits_ = device.upload(work.splits);
    workspace_ = tiles::make_workspace(work, launch_, variant_.sums, false, device);
    device.synchronize();
    arguments_ = {.spans = spans_.as<TileSpan>(),
                  .splits = splits_.as<TileSplit>(),
                  .window_ptr = windows_.matrix.window_ptr,
                  .col_idx = windows_.matrix.col_idx,
                  .row_ids = windows_.row_ids.as<std::int32_t>(),
                  .places = static_cast<std::int32_t>(a.m()),
                  .windows = static_cast<std::int32_t>(windows_.matrix.windows()),
                  .b = nullptr,
                  .b_row_bytes = 0,
                  .c = nullptr,
                  .ldc = 0,
                  .n = n_,
                  .ordered = false,
                  .sums = workspace_.sums.as<float>(),
                  .arrivals = workspace_.arrivals.as<unsigned>(),
                  .release_early = tiles::release_early(work, launch_)};
  }

  void describe(const SparseOperand& a, const TileWork& work) {
    const DeviceWcsr& matrix = windows_.matrix;
    const WcsrShape& shape = windows_.shape;
    const tiles::Choice& choice = windows_.choice;
    for (const Buffer* buffer :
         std::initializer_list<const Buffer*>{&spans_, &splits_, &matrix.memory, &windows_.row_ids,
                                              &workspace_.sums, &workspace_.arrivals})
      report_.device_bytes += buffer->bytes();
    report_.format =
        wcsr_stats(shape, a.nnz(), matrix.window_ptr_host, matrix.gathered,
                   static_cast<std::int64_t>(choice.row_order->size() * sizeof(std::int32_t)));
    const auto number = [](std::int64_t value) { return fmt::format("{}", value); };
    report_.params = {
        {"window", number(shape.window_rows)},    {"order", choice.order},
        {"strip", number(variant_.features)},     {"warps", number(launch_.warps)},
        {"span", number(launch_.cut.span_tiles)}, {"whole", number(launch_.cut.whole_tiles)},
        {"part", number(launch_.cut.part_tiles)}};
    const int mma_rows = std::max(16, shape.window_rows);
    report_.issued_flops = 2.0 * static_cast<double>(matrix.tiles()) * tiles::kTileColumns *
                           mma_rows * static_cast<double>(launch_.all_strips()) * variant_.features;
    report_.metrics["blocks"] = static_cast<double>(blocks_) * launch_.strip_groups;
    report_.metrics["split_windows"] = static_cast<double>(work.splits.size());
  }

  Windows& windows_;
  std::int64_t n_;
  bool overlap_;
  Variant variant_;
  tiles::LaunchShape launch_;
  unsigned blocks_ = 0;
  Buffer spans_, splits_;
  tiles::Workspace workspace_;
  tiles::Arguments arguments_{};
  PlanReport report_;
};

class AsyncWcsrPrepared final : public Prepared {
 public:
  AsyncWcsrPrepared(const SparseOperand& a, const Options& options, Device& device)
      : a_(a),
        options_(options),
        device_(device),
        on_device_(options.get_choice("build", "device", {"host", "device"}) == "device"),
        chooser_(a, options, "auto",
                 tiles::dense_box_cost(static_cast<double>(bytes_of(storage_type(a.precision))))) {}

  std::unique_ptr<Plan> bind(const Shape& shape, StageTimer& stages) override {
    const tiles::Choice choice = chooser_.choose(shape.n, stages);
    auto& built = windows_.get({choice.order, choice.height_index},
                               [&](StageTimer& cost) { return build(choice, cost); });
    return std::make_unique<AsyncWcsrPlan>(a_, options_, shape.n, built, device_, stages);
  }

 private:
  Windows build(const tiles::Choice& choice, StageTimer& cost) {
    Windows out;
    out.shape = {kWcsrHeights[choice.height_index], tiles::kTileColumns,
                 storage_type(a_.precision)};
    out.choice = choice;
    out.matrix = on_device_ ? build_wcsr(*a_.a, out.shape, *choice.row_order, device_, cost)
                            : upload_wcsr(*a_.a, out.shape, *choice.row_order, device_, cost);
    const auto timed = cost.scope("upload");
    out.row_ids = device_.upload(tiles::rows_of_c(*choice.row_order, a_.row_ids));
    return out;
  }

  SparseOperand a_;
  Options options_;
  Device& device_;
  bool on_device_;
  tiles::WindowChooser chooser_;
  SharedWindows windows_;
};

class AsyncWcsr final : public Kernel {
 public:
  const KernelInfo& info() const override { return info_; }

  Support supports(const Problem& problem, const DeviceInfo&) const override {
    if (problem.nnz() + problem.m() >= std::numeric_limits<std::int32_t>::max())
      return Support::no("nonzeros and rows together above 2^31 - 2");
    const auto value_bytes = static_cast<std::int64_t>(bytes_of(storage_type(problem.precision)));
    const std::int64_t most = tiles::max_features(static_cast<int>(value_bytes));
    if (problem.n > most) return Support::no(fmt::format("N above {}", most));
    // Windows of 8 rows that share no column, and a half-filled tile at the end of each.
    const std::int64_t columns = problem.nnz() + problem.m();
    return Support::yes(
        static_cast<std::size_t>(columns * (4 + 8 * value_bytes) + 8 * problem.m()));
  }

  std::unique_ptr<Prepared> prepare(const SparseOperand& a, const Options& options, Device& device,
                                    StageTimer&) const override {
    return std::make_unique<AsyncWcsrPrepared>(a, options, device);
  }

 private:
  KernelInfo info_ = {
      .name = "async_wcsr",
      .summary = "windows of packed columns on tensor cores, rows of B copied ahead",
      .source = "AsyncSparse, arXiv 2604.17834",
      .precisions = {Precision::tf32, Precision::fp16, Precision::bf16},
      .accumulation = Accumulation::fp32_tensor_core,
      .writes_row_ids = true,
      .options = tiles::options_with(
          "auto", {{"build", "device", "where the format is built: host or device"}}),
  };
};

SPMMBENCH_REGISTER_KERNEL(AsyncWcsr);

}  // namespace
}  // namespace spmmbench
