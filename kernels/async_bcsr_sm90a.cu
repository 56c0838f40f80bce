// async_bcsr: the structured-sparsity kernel of AsyncSparse (arXiv 2604.17834), reconstructed from
// its published description: BCSR blocks by TMA into a ring of stages, WGMMA consumers, registers
// moved from the producer to them. B's tile is fetched once for two unit rows of 64; C leaves by
// TMA.
//
// The device side is in async_bcsr/kernel.cuh; here are the variants, the choice among them and the
// plan. The paper's ablations are options: producer, specialise, stages, grid, cluster.

#include <cuda_runtime.h>
#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <string_view>

#include "async_bcsr/kernel.cuh"
#include "async_bcsr/work.hpp"
#include "common/upload_values.hpp"
#include "format/bcsr.hpp"
#include "format/bcsr_groups.hpp"
#include "gpu/cuda_check.hpp"
#include "gpu/tensor_map.hpp"
#include "spmmbench/error.hpp"
#include "spmmbench/registry.hpp"

namespace spmmbench {
namespace {

namespace bcsr = async_bcsr;
using bcsr::Loader;

constexpr std::int64_t kManyTiles = 16;  // tiles of N from which on one more matters little
// Below this share of nonzeros, pairs of CTAs share too few tiles of A to gain by it, and narrower
// bands of B gain more.
constexpr double kFewNonzeros = 0.125;
// A band of B that stays in L2 beside the streams of A and C, and the widest that gained.
constexpr std::int64_t kBandBytes = std::int64_t{10} << 20;
constexpr std::int64_t kBandColumns = 1024;
constexpr std::int64_t kSmallStored = std::int64_t{1} << 26;  // entries; never refused for fill

// ---- Variants ----------------------------------------------------------------------------------

struct Variant {
  Precision precision;
  Layout layout_b;
  int tile_n;
  Loader loader;
  bool specialised;
  int cluster;
  void (*kernel)(CUtensorMap, CUtensorMap, CUtensorMap, bcsr::Arguments);
  int threads, stage_bytes, staging_bytes, blocks_per_sm;

  int max_stages(std::size_t shared_per_block) const {
    constexpr int kReserved = 1024;  // by the system, per CTA
    const int block = (static_cast<int>(shared_per_block) + kReserved) / blocks_per_sm - kReserved;
    return std::min((block - bcsr::Ring::bytes(0, staging_bytes, 0)) / stage_bytes,
                    bcsr::kMaxStages);
  }
};

constexpr Precision precision_of(__half) { return Precision::fp16; }
constexpr Precision precision_of(__nv_bfloat16) { return Precision::bf16; }
constexpr Precision precision_of(ptx::Tf32) { return Precision::tf32; }

template <class S>
Variant variant() {
  return {precision_of(typename S::Input{}),
          S::kLayoutB,
          S::kTileN,
          S::kLoader,
          S::kSpecialised,
          S::kCluster,
          bcsr::kernel<S>,
          S::kThreads,
          S::kStageBytes,
          S::kStagingBytes,
          S::kBlocksPerSm};
}

template <class Input, Layout kLayoutB>
void add_shapes(std::vector<Variant>& out) {
  out.push_back(variant<bcsr::Shape<Input, kLayoutB, 64>>());
  out.push_back(variant<bcsr::Shape<Input, kLayoutB, 128>>());
  out.push_back(variant<bcsr::Shape<Input, kLayoutB, 256>>());
  out.push_back(variant<bcsr::Shape<Input, kLayoutB, 256, 2>>());
}

const std::vector<Variant>& variants() {
  static const std::vector<Variant> all = [] {
    std::vector<Variant> out;
    add_shapes<__half, Layout::row_major>(out);
    add_shapes<__half, Layout::col_major>(out);
    add_shapes<__nv_bfloat16, Layout::row_major>(out);
    add_shapes<__nv_bfloat16, Layout::col_major>(out);
    add_shapes<ptx::Tf32, Layout::col_major>(out);
    constexpr Layout kRow = Layout::row_major;
    out.push_back(variant<bcsr::Shape<__half, kRow, 256, 1, Loader::cp_async, true>>());
    out.push_back(variant<bcsr::Shape<__half, kRow, 256, 1, Loader::cp_async, false>>());
    out.push_back(variant<bcsr::Shape<__half, kRow, 256, 1, Loader::tma, false>>());
    return out;
  }();
  return all;
}

// ---- Options -----------------------------------------------------------------------------------

struct Block {
  int rows, cols;
};

constexpr int kMostBlock = 1024;  // rows and columns

// "64" or "128x64"; none for anything else.
std::optional<Block> parse_block(const std::string& text) {
  const auto size = [](std::string_view digits) {
    int value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    const bool whole = error == std::errc{} && end == digits.data() + digits.size();
    return whole && value <= kMostBlock ? value : 0;
  };
  const std::size_t cross = text.find('x');
  const std::string_view all = text;
  const Block block{size(all.substr(0, cross)),
                    size(cross == std::string::npos ? all : all.substr(cross + 1))};
  if (block.rows < 1 || block.cols < 1) return std::nullopt;
  return block;
}

const auto kBlock =
    text_option("block", "64x64",
                {fmt::format("ROWSxCOLUMNS, each from 1 to {}", kMostBlock),
                 [](const std::string& text) { return parse_block(text).has_value(); },
                 {"64", "128x64", "1024x1024"}},
                "stored blocks: multiples of 64x64 (tf32: of 64x32)");
const auto kTileN = auto_choice_option<int>("tile_n", {"64", "128", "256"}, "columns of C per CTA");
const auto kGroup =
    choice_option("group", "overlap", {"overlap", "consecutive"},
                  "unit rows that share A's steps; overlap: those with most common columns");
const auto kStages = auto_integer_option("stages", 1, bcsr::kMaxStages, "stages of the ring");
constexpr int kUsualStages = 4;
const auto kGrid =
    choice_option("grid", "persistent", {"persistent", "static"}, "static: one CTA per block of C");
const auto kSwath = auto_integer_option<std::int64_t>(
    "swath", 1, INT32_MAX, "width of the bands of C taken in turn, in cluster * tile_n columns");
const auto kProducer =
    choice_option("producer", "tma", {"tma", "cp_async"}, "instruction that fills the ring");
const auto kSpecialise = flag_option("specialise", true, "0: consumers issue the loads themselves");
const auto kCluster =
    auto_integer_option("cluster", 1, 2, "2: pairs of CTAs share A's tiles by multicast; 1: none");
const auto kMinFill =
    real_option("min_fill", "0.01", 0, 1, "least share of nonzeros in large blocked matrices");

int step_columns(Precision precision) {
  return bcsr::kLineBytes / static_cast<int>(bytes_of(storage_type(precision)));
}

// B as the kernel reads it: wgmma wants 32-bit operands K-major.
Layout kernel_layout(const Problem& problem) {
  return problem.precision == Precision::tf32 ? Layout::col_major : problem.layout;
}

// Null when there is none.
const Variant* find_variant(const Problem& problem, int tile_n, int cluster) {
  const Options& o = problem.options;
  const Loader loader = kProducer(o) == "tma" ? Loader::tma : Loader::cp_async;
  const bool specialised = kSpecialise(o);
  for (const Variant& v : variants())
    if (v.precision == problem.precision && v.layout_b == kernel_layout(problem) &&
        v.tile_n == tile_n && v.loader == loader && v.specialised == specialised &&
        v.cluster == cluster)
      return &v;
  return nullptr;
}

// The shape asked for, else by N. Null when no variant has the requested combination.
const Variant* choose_variant(const Problem& problem) {
  const Options& o = problem.options;
  const int wide = problem.n > 128 ? 256 : problem.n > 64 ? 128 : 64;
  const int tile_n = kTileN(o).value_or(wide);
  if (const auto cluster = kCluster(o)) return find_variant(problem, tile_n, *cluster);
  // A second tile that lies outside of C costs more than the multicast saves.
  const std::int64_t tiles = (problem.n + tile_n - 1) / tile_n;
  const bool few =
      static_cast<double>(problem.nnz()) <
      kFewNonzeros * static_cast<double>(problem.m()) * static_cast<double>(problem.k());
  const Variant* const pairs =
      !few && (tiles % 2 == 0 || tiles >= kManyTiles) ? find_variant(problem, tile_n, 2) : nullptr;
  return pairs != nullptr ? pairs : find_variant(problem, tile_n, 1);
}

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
      : a(operand), options(o), block(*parse_block(kBlock(o))) {
    const ElementType type = storage_type(a.precision);
    Bcsr bcsr;
    {
      const auto timed = stages.scope("build");
      bcsr = Bcsr::build(*a.a, BcsrPattern::build(*a.a, block.rows, block.cols));
      groups = BcsrGroups::build(
          bcsr.pattern, step_columns(a.precision),
          kGroup(o) == "overlap" ? BcsrGrouping::overlap : BcsrGrouping::consecutive);
      stats = bcsr.pattern.stats(static_cast<int>(bytes_of(type)));
    }
    const auto timed = stages.scope("upload");
    if (bcsr.values.empty()) bcsr.values.resize(block.rows * block.cols);  // for the tensor map
    values = upload_values(device, bcsr.values, type);
    steps = device.upload(bcsr::both_ways(groups.steps));
    const std::array<std::uint64_t, 2> extents{static_cast<std::uint64_t>(block.cols),
                                               bcsr.values.size() / block.cols};
    const std::array<std::uint64_t, 1> strides{block.cols * bytes_of(type)};
    const std::array<std::uint32_t, 2> box{static_cast<std::uint32_t>(step_columns(a.precision)),
                                           bcsr::kUnitRows};
    map = make_tensor_map(values.data(), type, extents, strides, box,
                          {.swizzle = CU_TENSOR_MAP_SWIZZLE_128B});
    device.synchronize();
  }

  SparseOperand a;
  Options options;
  Block block;
  BcsrGroups groups;
  FormatStats stats;
  Buffer values, steps;
  CUtensorMap map{};
};

class AsyncBcsrPlan final : public Plan {
 public:
  AsyncBcsrPlan(const BlockedA& a, const Problem& problem, Device& device, StageTimer& stages)
      : a_(a), variant_(*choose_variant(problem)) {
    const Options& o = problem.options;
    const ElementType type = storage_type(problem.precision);
    const std::int64_t n_tiles =
        (problem.n + variant_.tile_n * variant_.cluster - 1) / (variant_.tile_n * variant_.cluster);
    stages_ = kStages(o).value_or(
        std::min(kUsualStages, variant_.max_stages(device.info().shared_per_block)));

    shared_bytes_ = bcsr::Ring::bytes(variant_.stage_bytes, variant_.staging_bytes, stages_);
    SPMMBENCH_CUDA(cudaFuncSetAttribute(reinterpret_cast<const void*>(variant_.kernel),
                                        cudaFuncAttributeMaxDynamicSharedMemorySize,
                                        shared_bytes_));

    std::vector<bcsr::Work> work;
    std::vector<std::int32_t> work_ptr;
    {
      const auto timed = stages.scope("build");
      const std::int64_t swath = kSwath(o).value_or(default_swath(problem.k(), type));
      work = bcsr::launch_order(a.groups, n_tiles, swath);
      clusters_ = static_cast<int>(work.size());
      if (kGrid(o) == "persistent") {
        clusters_ = std::min(resident_clusters(), clusters_);
        bcsr::Schedule schedule = bcsr::make_schedule(a.groups, work, variant_.tile_n, clusters_);
        work.swap(schedule.work);
        work_ptr.swap(schedule.work_ptr);
        report_.metrics["model_us"] = schedule.us;
      }
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
    for (const Buffer* buffer : std::initializer_list<const Buffer*>{&a.values, &a.steps, &work_,
                                                                     &work_ptr_, &b_workspace_})
      report_.device_bytes += buffer->bytes();
    arguments_ = {.steps = a.steps.as<BcsrStep>(),
                  .work = work_.as<bcsr::Work>(),
                  .work_ptr = work_ptr_.as<std::int32_t>(),
                  .stages = stages_,
                  .bk = a.block.cols,
                  .a_values = a.values.data(),
                  .b = {},
                  .b_whole = false,
                  .layout_c = problem.layout,
                  .type_c = problem.c_type,
                  .columns_c = problem.n};
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
    arguments_.b = bcsr::Lines(kernel_b);
    if (c.data != c_.data || c.ld != c_.ld) {
      map_c_ = make_tensor_map(c, bcsr::kBoxLines,
                               static_cast<std::uint32_t>(bcsr::kLineBytes / bytes_of(c.type)),
                               {.swizzle = CU_TENSOR_MAP_SWIZZLE_128B});
      c_ = c;
    }
    arguments_.layout_c = c.layout;
    arguments_.type_c = c.type;
    arguments_.columns_c = c.cols;

    std::array<cudaLaunchAttribute, 2> attributes;
    const cudaLaunchConfig_t config = configure(clusters_, cuda_stream, attributes);
    SPMMBENCH_CUDA(
        cudaLaunchKernelEx(&config, variant_.kernel, a_.map, map_b_, map_c_, arguments_));
  }

  PlanReport report() const override { return report_; }

 private:
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
  void describe(const Problem& problem, std::int64_t n_tiles) {
    const BcsrGroups& groups = a_.groups;
    report_.format = a_.stats;
    report_.params = {{"block", fmt::format("{}x{}", a_.block.rows, a_.block.cols)},
                      {"tile_n", std::to_string(variant_.tile_n)},
                      {"cluster", std::to_string(variant_.cluster)},
                      {"stages", std::to_string(stages_)}};
    std::int64_t blocks = 0;
    for (std::int64_t g = 0; g < groups.groups(); ++g) blocks += groups.blocks(g);
    const auto columns = static_cast<double>(n_tiles * variant_.cluster * variant_.tile_n);
    const double tile_flops = 2.0 * bcsr::kUnitRows * step_columns(problem.precision) * columns;
    report_.issued_flops = static_cast<double>(blocks) * tile_flops;
    report_.metrics["steps"] = static_cast<double>(groups.steps.size());
    report_.metrics["unit_blocks_per_step"] =
        static_cast<double>(blocks) / std::max<double>(1, static_cast<double>(groups.steps.size()));
    report_.metrics["l2_read_bytes"] =
        static_cast<double>(groups.steps.size()) * bcsr::kLineBytes * columns +
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
  const Variant& variant_;
  int stages_ = 0;
  int clusters_ = 0;
  int shared_bytes_ = 0;
  PlanReport report_;
  Buffer work_, work_ptr_, b_workspace_;
  DenseView b_transposed_;
  DenseView c_;  // of map_c_
  CUtensorMap map_b_{}, map_c_{};
  bcsr::Arguments arguments_{};
};

class AsyncBcsrPrepared final : public Prepared {
 public:
  AsyncBcsrPrepared(const SparseOperand& a, const Options& options, Device& device,
                    StageTimer& stages)
      : a_(a, options, device, stages), device_(device) {}

  std::unique_ptr<Plan> bind(const Shape& shape, StageTimer& stages) override {
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
    info_.precisions = {Precision::tf32, Precision::fp16, Precision::bf16};
    info_.c_types = {ElementType::f32, ElementType::f16, ElementType::bf16};
    info_.layouts = {Layout::row_major, Layout::col_major};
    info_.accumulation = Accumulation::fp32_tensor_core;
    info_.options = {kBlock, kTileN,    kGroup,      kStages,  kGrid,
                     kSwath, kProducer, kSpecialise, kCluster, kMinFill};
  }
  const KernelInfo& info() const override { return info_; }

  Support supports(const Problem& problem, const DeviceInfo& device) const override {
    const Options& o = problem.options;
    const Block block = *parse_block(kBlock(o));
    const int unit_k = step_columns(problem.precision);
    if (block.rows % bcsr::kUnitRows != 0 || block.cols % unit_k != 0)
      return Support::no(fmt::format(
          "wgmma takes 64 rows and 128 bytes of k: blocks of {}x{} are packed in block={}x{}",
          block.rows, block.cols, (block.rows + 63) / 64 * 64,
          (block.cols + unit_k - 1) / unit_k * unit_k));
    const Variant* const variant = choose_variant(problem);
    if (variant == nullptr)
      return Support::no("no variant with this tile_n, producer, specialise and cluster");
    const int max_stages = variant->max_stages(device.shared_per_block);
    if (kStages(o).value_or(1) > max_stages)
      return Support::no(fmt::format("shared memory holds {} stages of {} bytes", max_stages,
                                     variant->stage_bytes));
    const BcsrPattern pattern = BcsrPattern::build(*problem.a, block.rows, block.cols);
    const double fill = pattern.blocks() == 0 ? 1
                                              : static_cast<double>(pattern.nnz) /
                                                    static_cast<double>(pattern.stored());
    if (pattern.stored() > kSmallStored && fill < kMinFill(o))
      return Support::no(fmt::format("{}x{} blocks would be {:.2g} % full (min_fill)", block.rows,
                                     block.cols, 100 * fill));
    if (pattern.blocks() * block.rows > INT32_MAX)
      return Support::no("more than 2^31 rows of stacked blocks");
    const std::int64_t type_bytes = bytes_of(storage_type(problem.precision));
    const std::int64_t steps = pattern.stored() / (bcsr::kUnitRows * unit_k);
    const std::int64_t work = (problem.m() / bcsr::kUnitRows + 1) * (problem.n / 64 + 1);
    // 16 bytes a step, both ways.
    std::int64_t bytes = pattern.stored() * type_bytes + 32 * steps + 32 * work;
    if (kernel_layout(problem) != problem.layout)
      bytes += (problem.k() + 3) / 4 * 4 * problem.n * type_bytes;
    return Support::yes(static_cast<std::size_t>(bytes));
  }

  std::unique_ptr<Prepared> prepare(const SparseOperand& a, const Options& options, Device& device,
                                    StageTimer& stages) const override {
    return std::make_unique<AsyncBcsrPrepared>(a, options, device, stages);
  }

 private:
  KernelInfo info_;
};

SPMMBENCH_REGISTER_KERNEL(AsyncBcsr);

}  // namespace
}  // namespace spmmbench
