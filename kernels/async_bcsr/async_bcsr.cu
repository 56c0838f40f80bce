// async_bcsr: the structured-sparsity kernel of AsyncSparse (arXiv 2604.17834), reconstructed from
// its published description: BCSR blocks by TMA into a ring of stages, WGMMA consumers, registers
// moved from the producer to them. B's tile is fetched once for two unit rows of 64; C leaves by
// TMA.
//
// The device side is in async_bcsr/device.cuh, the variants, the options and the choice among them
// in async_bcsr/choice.cuh; here is the plan. The paper's ablations are options: producer,
// specialise, stages, grid, cluster.

#include <cuda_runtime.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "async_bcsr/choice.cuh"
#include "async_bcsr/device.cuh"
#include "async_bcsr/device_build.hpp"
#include "async_bcsr/format.hpp"
#include "async_bcsr/work.hpp"
#include "common/grid_limit.hpp"
#include "common/resident_csr.hpp"
#include "common/shared_limit.hpp"
#include "format/bcsr.hpp"
#include "gpu/cuda_check.hpp"
#include "gpu/tensor_map.hpp"
#include "gpu/upload_values.hpp"
#include "ptx/sm90a.cuh"
#include "select/features.hpp"
#include "spmmbench/error.hpp"
#include "spmmbench/registry.hpp"
#include "spmmbench/sum_order.hpp"

namespace spmmbench::async_bcsr {
namespace {

namespace bcsr = async_bcsr;

// A band of B that stays in L2 beside the streams of A and C, and the widest that gained.
constexpr std::int64_t kBandBytes = std::int64_t{10} << 20;
constexpr std::int64_t kBandColumns = 1024;
constexpr std::int64_t kSmallStored = std::int64_t{1} << 26;  // entries; never refused for fill

// ---- Plan --------------------------------------------------------------------------------------

constexpr int kTransposeTile = 32;

// out[n][k] = b[k][n]; lines of both are padded; 32 x 8 threads, one 32 x 32 tile per CTA.
__global__ void transpose(DenseView b, DenseView out) {
  __shared__ float tile[kTransposeTile][kTransposeTile + 1];
  const std::int64_t k0 = std::int64_t{blockIdx.x} * kTransposeTile,
                     n0 = std::int64_t{blockIdx.y} * kTransposeTile;
  const auto* const from = static_cast<const float*>(b.data);
  auto* const to = static_cast<float*>(out.data);
  for (int i = threadIdx.y; i < kTransposeTile; i += blockDim.y)
    if (k0 + i < b.rows && n0 + threadIdx.x < b.cols)
      tile[i][threadIdx.x] = from[(k0 + i) * b.ld + n0 + threadIdx.x];
  __syncthreads();
  for (int i = threadIdx.y; i < kTransposeTile; i += blockDim.y)
    if (n0 + i < b.cols && k0 + threadIdx.x < b.rows)
      to[(n0 + i) * out.ld + k0 + threadIdx.x] = tile[threadIdx.x][i];
}

// A in blocks, on the device. It is the same for every shape of B and C.
struct BlockedA {
  BlockedA(const SparseOperand& operand, const Options& o, Device& device, StageTimer& stages)
      : a(operand),
        options(o),
        block(bcsr::block_of(o, operand.precision)),
        scales(operand, device) {
    const ElementType type = storage_type(a.precision);
    const ResidentCsr resident(a, device, stages);
    const auto timed = stages.scope("build");
    built = bcsr::build_blocks(
        resident.view(), block.rows, block.cols, bcsr::step_columns(a.precision),
        bcsr::kGroup(o) == "overlap" ? BcsrGrouping::overlap : BcsrGrouping::consecutive, device);
    const std::array<std::uint64_t, 2> extents{
        static_cast<std::uint64_t>(block.cols),
        built.values.bytes() / (block.cols * bytes_of(type))};
    const std::array<std::uint64_t, 1> strides{block.cols * bytes_of(type)};
    const std::array<std::uint32_t, 2> box{
        static_cast<std::uint32_t>(bcsr::step_columns(a.precision)), bcsr::kUnitRows};
    map = make_tensor_map(built.values.data(), type, extents, strides, box,
                          {.swizzle = CU_TENSOR_MAP_SWIZZLE_128B});
  }

  const BcsrGroupIndex& groups() const { return built.groups; }
  FormatStats stats() const {
    return built.sizes.stats(built.totals, static_cast<int>(bytes_of(storage_type(a.precision))));
  }

  SparseOperand a;
  Options options;
  bcsr::Block block;
  ResidentScales scales;  // of blocks of 128 x 128, whatever `block` is
  bcsr::DeviceBlocks built;
  CUtensorMap map{};
};

class AsyncBcsrPlan final : public Plan, public OrderedSums {
 public:
  AsyncBcsrPlan(const BlockedA& a, const Problem& problem, Device& device, StageTimer& stages)
      : a_(a), device_(device), variant_(*bcsr::choose_variant(problem)) {
    const Options& o = problem.options;
    const ElementType type = storage_type(problem.precision);
    const std::int64_t n_tiles =
        (problem.n + variant_.tile_n * variant_.cluster - 1) / (variant_.tile_n * variant_.cluster);
    stages_ = bcsr::kStages(o).value_or(
        std::min(bcsr::kUsualStages, variant_.max_stages(device.info().shared_per_block)));

    shared_bytes_ = bcsr::shared_bytes(variant_.stage_bytes, variant_.staging_bytes, stages_);
    allow_shared_bytes(variant_.kernel, shared_bytes_);

    std::vector<bcsr::Work> work;
    std::vector<std::int32_t> work_ptr;
    {
      const auto timed = stages.scope("build");
      const std::int64_t swath = bcsr::kSwath(o).value_or(default_swath(problem.k(), type));
      work = bcsr::launch_order(a.groups(), n_tiles, swath);
      clusters_ = static_cast<int>(work.size());
      if (bcsr::kGrid(o) == "persistent") {
        clusters_ = std::min(resident_clusters(), clusters_);
        bcsr::Schedule schedule = bcsr::make_schedule(a.groups(), work, variant_.tile_n, clusters_);
        work.swap(schedule.work);
        work_ptr.swap(schedule.work_ptr);
        report_.metrics["model_us"] = schedule.us;
      }
      n_tiles_ = n_tiles;
      backwards_.resize(a.groups().groups() * n_tiles);
      for (const bcsr::Work& block : work)
        backwards_[block.group * n_tiles + block.n_tile] =
            block.begin >= a.groups().step_ptr.back() && block.begin < block.end;
    }
    describe(problem, n_tiles);
    {
      const auto timed = stages.scope("upload");
      work_ = device.upload(work);
      work_ptr_ = device.upload(work_ptr);
      if (problem.layout != variant_.layout_b) {
        b_transposed_ = make_dense_view(problem.k(), problem.n, Layout::col_major, type);
        b_workspace_ = device.allocate(b_transposed_.bytes());
        b_transposed_.data = b_workspace_.data();
      }
      device.synchronize();
    }
    report_.device_bytes +=
        sum_of_bytes(a.built.values, a.built.steps, work_, work_ptr_, b_workspace_) +
        a.scales.bytes();
    arguments_ = {.steps = a.built.steps.as<BcsrStep>(),
                  .work = work_.as<bcsr::Work>(),
                  .work_ptr = work_ptr_.as<std::int32_t>(),
                  .stages = stages_,
                  .bk = a.block.cols,
                  .a_values = a.built.values.data(),
                  .b = {},
                  .b_whole = false,
                  .layout_c = problem.layout,
                  .type_c = problem.c_type,
                  .columns_c = problem.n,
                  .scale = 1,
                  .block_scales = a.scales.data(),
                  .scale_line = static_cast<int>(scale_line_of_a(problem.k())),
                  .map_scales = {}};
  }

  void launch(const DenseView& b, const DenseView& c, Stream stream) override {
    auto* const cuda_stream = static_cast<cudaStream_t>(stream.handle);
    DenseView kernel_b = b;
    if (b.layout != variant_.layout_b) {
      kernel_b = b_transposed_;
      const dim3 grid(static_cast<unsigned>((b.rows + kTransposeTile - 1) / kTransposeTile),
                      static_cast<unsigned>((b.cols + kTransposeTile - 1) / kTransposeTile));
      transpose<<<grid, dim3(kTransposeTile, 8), 0, cuda_stream>>>(b, kernel_b);
      SPMMBENCH_CUDA_LAUNCHED();
    }
    if (kernel_b.data != arguments_.b.data || kernel_b.ld != arguments_.b.ld) {
      set_map_b(kernel_b);
    }
    if ((variant_.sums == bcsr::Sums::scaled) != (b.block_scales != nullptr))
      throw Error("A and B have scales of blocks, or neither has");
    if (b.block_scales != scales_of_b_) set_map_scales(b);
    arguments_.b = bcsr::Lines(kernel_b);
    if (c.data != c_.data || c.ld != c_.ld) {
      map_c_ = tile_store::map_of(c);
      c_ = c;
    }
    arguments_.layout_c = c.layout;
    arguments_.type_c = c.type;
    arguments_.columns_c = c.cols;
    arguments_.scale = a_.a.scale() * b.scale;

    std::array<cudaLaunchAttribute, 2> attributes;
    const cudaLaunchConfig_t config = configure(clusters_, cuda_stream, attributes);
    SPMMBENCH_CUDA(
        cudaLaunchKernelEx(&config, variant_.kernel, a_.map, map_b_, map_c_, arguments_));
  }

  PlanReport report() const override { return report_; }

  // All steps at once: a copy takes some 10 us whatever it brings.
  void will_ask(std::span<const std::int64_t> /*rows*/) override {
    constexpr std::size_t kMostBytes = std::size_t{64} << 20;
    if (steps_.empty() && a_.built.steps.bytes() <= kMostBytes)
      steps_ = read_steps(0, a_.groups().step_ptr.back());
  }

  // The steps of the row's group, forwards or backwards, that have a block of the row; in each the
  // columns of one instruction after the other.
  std::optional<SumOrder> sum_order(std::int64_t row, std::int64_t column) override {
    const BcsrGroupIndex& groups = a_.groups();
    const CsrMatrix& a = *a_.a.a;
    const std::int64_t place =
        std::ranges::find(groups.unit_row, row / bcsr::kUnitRows) - groups.unit_row.begin();
    const std::int64_t group = place / groups.kHeight, member = place % groups.kHeight;
    const std::int64_t first = groups.step_ptr[group], end = groups.step_ptr[group + 1];
    std::vector<BcsrStep> steps = steps_.empty()
                                      ? read_steps(first, end)
                                      : std::vector(steps_.begin() + first, steps_.begin() + end);
    if (backwards_[group * n_tiles_ + column / (variant_.tile_n * variant_.cluster)] != 0)
      std::ranges::reverse(steps);
    const int step_columns = bcsr::step_columns(a_.a.precision);
    const int of_instruction = step_columns * bcsr::kMmaBytes / bcsr::kLineBytes;
    const bool promotes = variant_.sums != bcsr::Sums::whole;
    SumOrder order;
    for (const BcsrStep& step : steps) {
      if (step.a_row[member] < 0) continue;
      const auto begin = a.col_idx.begin();
      auto at = std::lower_bound(begin + a.row_ptr[row], begin + a.row_ptr[row + 1], step.k);
      for (int k = step.k; k < step.k + step_columns; k += of_instruction) {
        for (; at != begin + a.row_ptr[row + 1] && *at < k + of_instruction; ++at)
          order.entries.push_back(at - begin);
        order.instructions.push_back(order.entries.size());
      }
      if (promotes) order.parts.push_back(order.instructions.size());
    }
    if (!promotes) order.parts.push_back(order.instructions.size());
    return order;
  }

 private:
  std::vector<BcsrStep> read_steps(std::int64_t first, std::int64_t end) const {
    std::vector<BcsrStep> steps(end - first);
    device_.download(steps.data(), a_.built.steps.as<BcsrStep>() + first,
                     steps.size() * sizeof(BcsrStep));
    return steps;
  }
  // Row-major: pieces of 64 columns are the third dimension, so that one box brings a whole tile in
  // the order wgmma reads it. It needs lines that end with a piece: what is read behind column N
  // only reaches columns of C that are clipped. Else a box per piece.
  void set_map_b(const DenseView& b) {
    const auto piece = static_cast<std::uint32_t>(bcsr::kLineBytes / bytes_of(b.type));
    const TensorMapOptions options{.swizzle = CU_TENSOR_MAP_SWIZZLE_128B};
    if (b.layout == Layout::col_major) {
      map_b_ = make_tensor_map(b, variant_.tile_n, piece, options);
      return;
    }
    const std::int64_t pieces = (b.cols + piece - 1) / piece;
    arguments_.b_whole = pieces * piece <= b.ld;
    const std::array<std::uint64_t, 3> extents{
        arguments_.b_whole ? piece : static_cast<std::uint64_t>(b.cols),
        static_cast<std::uint64_t>(b.rows),
        arguments_.b_whole ? static_cast<std::uint64_t>(pieces) : 1};
    const std::array<std::uint64_t, 2> strides{b.ld * bytes_of(b.type), bcsr::kLineBytes};
    const std::array<std::uint32_t, 3> box{
        piece, piece, arguments_.b_whole ? static_cast<std::uint32_t>(variant_.tile_n) / piece : 1};
    map_b_ = make_tensor_map(b.data, b.type, extents, strides, box, options);
  }
  void set_map_scales(const DenseView& b) {
    const std::array<std::uint64_t, 2> extents{static_cast<std::uint64_t>(b.cols),
                                               static_cast<std::uint64_t>(scaled_blocks(b.rows))};
    const std::array<std::uint64_t, 1> strides{scale_line_of_b(b.cols) * sizeof(float)};
    const std::array<std::uint32_t, 2> box{static_cast<std::uint32_t>(variant_.tile_n), 1};
    arguments_.map_scales =
        make_tensor_map(b.block_scales, ElementType::f32, extents, strides, box);
    scales_of_b_ = b.block_scales;
  }
  void describe(const Problem& problem, std::int64_t n_tiles) {
    const BcsrGroupIndex& groups = a_.groups();
    report_.format = a_.stats();
    report_.params = {{"block", fmt::format("{}x{}", a_.block.rows, a_.block.cols)},
                      {"tile_n", std::to_string(variant_.tile_n)},
                      {"cluster", std::to_string(variant_.cluster)},
                      {"stages", std::to_string(stages_)}};
    std::int64_t blocks = 0;
    for (std::int64_t g = 0; g < groups.groups(); ++g) blocks += groups.blocks(g);
    const auto columns = static_cast<double>(n_tiles * variant_.cluster * variant_.tile_n);
    const double tile_flops =
        2.0 * bcsr::kUnitRows * bcsr::step_columns(problem.precision) * columns;
    report_.issued_flops = static_cast<double>(blocks) * tile_flops;
    report_.metrics["steps"] = static_cast<double>(groups.step_ptr.back());
    report_.metrics["unit_blocks_per_step"] =
        static_cast<double>(blocks) /
        std::max<double>(1, static_cast<double>(groups.step_ptr.back()));
    report_.metrics["l2_read_bytes"] =
        static_cast<double>(groups.step_ptr.back()) * bcsr::kLineBytes * columns +
        static_cast<double>(blocks) * bcsr::kTileBytes * static_cast<double>(n_tiles);
  }

  std::int64_t default_swath(std::int64_t k, ElementType type) const {
    const std::int64_t columns =
        std::min(kBandColumns, kBandBytes / (k * static_cast<std::int64_t>(bytes_of(type))));
    return std::max<std::int64_t>(1, columns / (variant_.tile_n * variant_.cluster));
  }
  cudaLaunchConfig_t configure(int clusters, cudaStream_t stream,
                               std::array<cudaLaunchAttribute, 2>& attributes) const {
    attributes[0].id = cudaLaunchAttributeClusterDimension;
    attributes[0].val.clusterDim = {static_cast<unsigned>(variant_.cluster), 1, 1};
    // CTAs start while the stream's previous kernel ends; they wait before they touch B or C.
    attributes[1].id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attributes[1].val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t config{};
    config.gridDim = dim3(static_cast<unsigned>(clusters * variant_.cluster));
    config.blockDim = dim3(static_cast<unsigned>(variant_.threads));
    config.dynamicSmemBytes = static_cast<std::size_t>(shared_bytes_);
    config.stream = stream;
    config.attrs = attributes.data();
    config.numAttrs = attributes.size();
    return config;
  }
  // As many as run at once: a persistent grid must not have a second wave.
  int resident_clusters() const {
    std::array<cudaLaunchAttribute, 2> attributes;
    const cudaLaunchConfig_t config = configure(1, nullptr, attributes);
    int clusters = 0;
    SPMMBENCH_CUDA(cudaOccupancyMaxActiveClusters(&clusters, variant_.kernel, &config));
    return clusters;
  }

  const BlockedA& a_;
  Device& device_;
  const bcsr::Variant& variant_;
  int stages_ = 0;
  int clusters_ = 0;
  int shared_bytes_ = 0;
  std::int64_t n_tiles_ = 0;
  std::vector<char> backwards_;  // blocks of C, by group and n_tile, whose steps are reversed
  std::vector<BcsrStep> steps_;  // once sum_order will be asked
  PlanReport report_;
  Buffer work_, work_ptr_, b_workspace_;
  DenseView b_transposed_;
  DenseView c_;                         // of map_c_
  const float* scales_of_b_ = nullptr;  // of map_scales
  CUtensorMap map_b_{}, map_c_{};
  bcsr::Arguments arguments_{};
};

class AsyncBcsrPrepared final : public Prepared {
 public:
  AsyncBcsrPrepared(const SparseOperand& a, const Options& options, Device& device,
                    StageTimer& stages)
      : a_(a, options, device, stages), device_(device) {}

  std::unique_ptr<Plan> bind(const spmmbench::Shape& shape, StageTimer& stages) override {
    return std::make_unique<AsyncBcsrPlan>(a_, Problem{a_.a, shape, a_.options}, device_, stages);
  }

 private:
  BlockedA a_;
  Device& device_;
};

// ---- Kernel ------------------------------------------------------------------------------------

class AsyncBcsr final : public Kernel {
 public:
  AsyncBcsr() {
    info_.name = "async_bcsr";
    info_.summary = "dense blocks by TMA and WGMMA, warp-specialised";
    info_.source = "AsyncSparse, arXiv 2604.17834";
    info_.min_compute_capability = 90;
    info_.exact_architecture = true;
    info_.precisions = {Precision::tf32,     Precision::fp16,           Precision::fp8_e4m3,
                        Precision::fp8_e5m2, Precision::fp8_e4m3_block, Precision::bf16};
    info_.c_types = {ElementType::f32, ElementType::f16, ElementType::bf16};
    info_.layouts = {Layout::row_major, Layout::col_major};
    info_.accumulation = Accumulation::fp32_tensor_core;
    info_.promoted_columns = bcsr::step_columns(Precision::fp8_e4m3);
    info_.variants = {{.option = bcsr::kPromote.name, .value = "0", .promoted_columns = 0}};
    info_.prepares_on_device = true;
    info_.options = {bcsr::kBlock,   bcsr::kTileN,   bcsr::kGroup,    bcsr::kStages,
                     bcsr::kGrid,    bcsr::kSwath,   bcsr::kProducer, bcsr::kSpecialise,
                     bcsr::kCluster, bcsr::kPromote, bcsr::kMinFill};
  }
  const KernelInfo& info() const override { return info_; }

  Support supports(const Problem& problem, const DeviceInfo& device) const override {
    if (problem.n > kMostNumberedColumns)
      return Support::no(fmt::format("N above {}", kMostNumberedColumns));
    if (is_scaled(problem.precision) && problem.layout == Layout::row_major)
      return Support::no("wgmma reads 8-bit operands along K: needs column-major B and C");
    const Options& o = problem.options;
    if (has_block_scales(problem.precision) && !bcsr::kPromote(o))
      return Support::no("scales of blocks multiply sums of 128 columns: needs promote=1");
    const bcsr::Block block = bcsr::block_of(o, problem.precision);
    const int unit_k = bcsr::step_columns(problem.precision);
    if (block.rows % bcsr::kUnitRows != 0 || block.cols % unit_k != 0)
      return Support::no(fmt::format(
          "wgmma takes 64 rows and 128 bytes of k: blocks of {}x{} are packed in block={}x{}",
          block.rows, block.cols, (block.rows + 63) / 64 * 64,
          (block.cols + unit_k - 1) / unit_k * unit_k));
    const bcsr::Variant* const variant = bcsr::choose_variant(problem);
    if (variant == nullptr)
      return Support::no("no variant with this tile_n, producer, specialise and cluster");
    const int max_stages = variant->max_stages(device.shared_per_block);
    if (bcsr::kStages(o).value_or(1) > max_stages)
      return Support::no(fmt::format("shared memory holds {} stages of {} bytes", max_stages,
                                     variant->stage_bytes));
    // The last copy to a column of C writes whole 16 bytes, and a single column has no room for
    // that.
    constexpr std::int64_t kCopyBytes = 16;
    const auto column_bytes = problem.m() * static_cast<std::int64_t>(bytes_of(problem.c_type));
    if (problem.layout == Layout::col_major && problem.n == 1 && column_bytes % kCopyBytes != 0)
      return Support::no(fmt::format("writes {} bytes at a time, and a column of C has {}",
                                     kCopyBytes, column_bytes));
    const Filled filled = filled_of(problem, block);
    if (filled.stored > kSmallStored && filled.share < bcsr::kMinFill(o))
      return Support::no(fmt::format("{}x{} blocks would be {:.2g} % full (min_fill)", block.rows,
                                     block.cols, 100 * filled.share));
    if (filled.stored / block.cols > INT32_MAX)
      return Support::no("more than 2^31 rows of stacked blocks");
    const std::int64_t type_bytes = bytes_of(storage_type(problem.precision));
    const std::int64_t steps = filled.stored / (bcsr::kUnitRows * unit_k);
    const std::int64_t work = (problem.m() / bcsr::kUnitRows + 1) * (problem.n / 64 + 1);
    // 16 bytes a step, both ways.
    std::int64_t bytes = filled.stored * type_bytes + 32 * steps + 32 * work +
                         static_cast<std::int64_t>(
                             resident_bytes(problem) +
                             bcsr::scratch_bytes(problem.m(), problem.k(), block.rows, block.cols) +
                             ResidentScales::copied_bytes(problem));
    if (bcsr::kernel_layout(problem) != problem.layout) {
      constexpr std::int64_t kMost = kMaxGridY * kTransposeTile;
      if (problem.n > kMost) return Support::no(fmt::format("row-major with N above {}", kMost));
      bytes += (problem.k() + 3) / 4 * 4 * problem.n * type_bytes;
    }
    return Support::yes(static_cast<std::size_t>(bytes));
  }

  std::unique_ptr<Prepared> prepare(const SparseOperand& a, const Options& options, Device& device,
                                    StageTimer& stages) const override {
    return std::make_unique<AsyncBcsrPrepared>(a, options, device, stages);
  }

 private:
  struct Filled {
    std::int64_t stored = 0;  // entries of all blocks
    double share = 1;         // of nonzeros in them
  };

  // As the caller has estimated it, or else counted, which takes up to a fifth of the preparation.
  static Filled filled_of(const Problem& problem, const bcsr::Block& block) {
    const double nonzeros = static_cast<double>(problem.nnz());
    if (problem.features != nullptr && problem.features->block_fill > 0) {
      const double share = problem.features->block_fill;
      return {static_cast<std::int64_t>(nonzeros / share), share};
    }
    const std::int64_t blocks =
        problem.on_device != nullptr
            ? bcsr::count_blocks(*problem.on_device, block.rows, block.cols)
            : BcsrPattern::build(*problem.a, block.rows, block.cols).blocks();
    const std::int64_t stored = blocks * block.rows * block.cols;
    return {stored, stored == 0 ? 1 : nonzeros / static_cast<double>(stored)};
  }

  KernelInfo info_;
};

SPMMBENCH_REGISTER_KERNEL(AsyncBcsr);

}  // namespace
}  // namespace spmmbench::async_bcsr
