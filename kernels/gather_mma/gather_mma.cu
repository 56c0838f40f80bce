// gather_mma: weights that are mostly zeros times few columns of B (N <= 16), on the tensor cores,
// without ever making A dense. Every step takes 32 nonzeros, 8 each of 4 rows, and the 32 rows of B
// that they need. Rows of B lie in shared memory, ldmatrix gathers them by address, and each column
// of the A operand holds one nonzero, in the row that it belongs to. In fp8 lanes gather rows of B
// and multiply them by their nonzeros, and mma adds up (gather_mma/quads.cuh). So the cost follows
// the nonzeros, not the positions: for each 3 bytes and an eighth of a turn of shared memory, in
// fp8 2 bytes and three quarters of that.
//
// docs/kernels/gather_mma.md has the pictures and what was measured.

#include <cuda_runtime.h>
#include <fmt/format.h>

#include <algorithm>
#include <type_traits>

#include "common/dependent_launch.hpp"
#include "common/grid_limit.hpp"
#include "common/resident_csr.hpp"
#include "common/shared_limit.hpp"
#include "gather_mma/bands.cuh"
#include "gather_mma/device.cuh"
#include "gather_mma/device_build.hpp"
#include "gpu/cuda_check.hpp"
#include "ptx/sm90a.cuh"
#include "spmmbench/registry.hpp"

namespace spmmbench::gather_mma {
namespace {

using Streams = SlotStreams;

// With a smaller share of nonzeros the eight slots of a row are filled too unevenly.
const auto kMinFill =
    real_option("min_fill", "0.02", 0, 1, "least share of nonzeros in large matrices");
constexpr std::int64_t kSmallPositions = std::int64_t{1} << 24;  // never refused for fill
const auto kCopies = auto_integer_option<int>(
    "copies", 1, Streams::kMostCopies, "of B in shared memory, where N is at most 8, or in 8 bits");
const auto kForms = auto_integer_option<int>(
    "forms", 1, 2, "of B in shared memory, in 8 bits where N is at most 8: fp16, and 8 bits too");
const auto kBands = auto_integer_option<std::int64_t>(
    "bands", 1, 1 << 16, "of rows, at most: a cluster each; 1: a second kernel adds all sums");

struct Variant {
  void (*multiply)(gather_mma::Arguments, DenseView);
  void (*multiply_bands)(gather_mma::Arguments, BandArguments, DenseView, DenseView);
};
template <class T, int kPlanes, int kEights>
Variant variant() {
  return {multiply<T, kPlanes, kEights>, multiply_bands<T, kPlanes, kEights>};
}

template <class T>
Variant variant_of_halves(int planes) {
  return planes == 1 ? variant<T, 1, 0>() : variant<T, 2, 0>();
}
Variant variant_of_fp8(int planes, int forms) {
  using T = __nv_fp8_e4m3;
  if (planes > 1) return variant<T, 2, Streams::kQuadSteps>();
  return forms == 1 ? variant<T, 1, 0>() : variant<T, 1, Streams::kQuadSteps / 2>();
}
Variant choose_variant(ElementType type, int planes, int forms) {
  if (type == ElementType::f16) return variant_of_halves<__half>(planes);
  if (type == ElementType::e4m3) return variant_of_fp8(planes, forms);
  return variant_of_halves<__nv_bfloat16>(planes);
}
constexpr int kMostPlanes = 2;

int planes_of(std::int64_t n) { return n <= gather_mma::kPlaneColumns ? 1 : 2; }
int columns_of(std::int64_t n) { return planes_of(n) * gather_mma::kPlaneColumns; }
std::int64_t tiles_of(std::int64_t n) { return (n + columns_of(n) - 1) / columns_of(n); }

int copies_of(ElementType type, int planes, const Options& options) {
  const bool may_have_two = type == ElementType::e4m3 || planes == 1;
  return may_have_two ? kCopies(options).value_or(Streams::kMostCopies) : 1;
}
// Both forms of B take 0.4 us more before the loop and 0.24 ns less in each of its steps, which
// have 32 nonzeros. Half of a second copy of B evens slots less where a row has few nonzeros in a
// chunk (measured on an H200, docs/decisions/scattered-weights.md).
constexpr std::int64_t kManySteps = 4000;    // of a multiprocessor
constexpr std::int64_t kManyNonzeros = 600;  // of a row in a chunk

int forms_of(const SparseOperand& a, int planes, const Options& options, const DeviceInfo& device) {
  if (storage_type(a.precision) != ElementType::e4m3 || planes > 1) return 1;
  const std::int64_t steps = a.nnz() / (std::int64_t{Streams::kLanes} * device.sm_count);
  const std::int64_t rows = std::max<std::int64_t>(1, a.m() * Streams::least_chunks(a.k()));
  const bool are_both_faster = steps >= kManySteps && a.nnz() / rows >= kManyNonzeros;
  return kForms(options).value_or(are_both_faster ? 2 : 1);
}
// How B lies in shared memory (gather_mma/rows_of_b.cuh).
struct ImagesOfB {
  ElementType type;
  int planes, copies, forms;

  // The second copy has this part of a chunk's columns. With half of them both forms of 3584
  // columns find room, and slots are nearly as even.
  int second_part() const { return forms; }
  // Planes lie as far apart as the largest chunk has them.
  std::int64_t bytes(std::int32_t chunk_cols) const {
    const std::int64_t image = gather_mma::image_bytes(chunk_cols);
    if (type != ElementType::e4m3 && planes > 1) return gather_mma::kPlaneBytes + image;
    return forms * (image + gather_mma::image_bytes(
                                Streams::second_cols_of(chunk_cols, copies, second_part())));
  }
};
ImagesOfB images_of(const SparseOperand& a, int planes, const Options& options,
                    const DeviceInfo& device) {
  const ElementType type = storage_type(a.precision);
  return {type, planes, copies_of(type, planes, options), forms_of(a, planes, options, device)};
}
// As few as the images of B leave room beside them.
std::int64_t chunks_of(std::int64_t cols, const ImagesOfB& images, const DeviceInfo& device) {
  constexpr std::int64_t kOthers = 28 << 10;  // bytes: sums, and what lies beyond the chunk's rows
  const auto room = static_cast<std::int64_t>(device.shared_per_block) - kOthers;
  std::int64_t chunks = Streams::least_chunks(cols);
  for (; chunks > 0; ++chunks) {
    const auto chunk_cols = static_cast<std::int32_t>((cols + chunks - 1) / chunks);
    if (images.bytes(chunk_cols) <= room) break;
  }
  return chunks;
}

// Clusters of this many blocks that run at once, each block alone on its multiprocessor.
std::int64_t resident_clusters(unsigned blocks, const DeviceInfo& device) {
  const auto kernel = multiply_bands<__half, kMostPlanes, 0>;
  const auto shared_bytes = static_cast<int>(device.shared_per_block);
  allow_shared_bytes(kernel, shared_bytes);
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim = {blocks, 1, 1};
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(blocks);
  config.blockDim = dim3(gather_mma::kThreads);
  config.dynamicSmemBytes = static_cast<std::size_t>(shared_bytes);
  config.attrs = &attribute;
  config.numAttrs = 1;
  int clusters = 0;
  SPMMBENCH_CUDA(cudaOccupancyMaxActiveClusters(&clusters, kernel, &config));
  return clusters;
}

// A band for each cluster of as many blocks as there are chunks; one band where a cluster cannot
// have this many, or what a block must hold exceeds its shared memory.
Streams::Cut choose_cut(std::int64_t rows, std::int64_t cols, const ImagesOfB& images,
                        std::int64_t most_bands, const DeviceInfo& device) {
  constexpr std::int64_t kMostCluster = 8;  // on every device with clusters
  const Streams::Cut one{.blocks = device.sm_count,
                         .warps = gather_mma::kWarps,
                         .chunks = chunks_of(cols, images, device),
                         .copies = images.copies,
                         .second_part = images.second_part()};
  if (rows == 0 || cols == 0 || most_bands == 1) return one;
  // Where sums find no room beside the rows of B, one chunk more makes room.
  for (Streams::Cut cut = one; cut.chunks <= std::min(one.chunks + 1, kMostCluster); ++cut.chunks) {
    cut.bands = std::min({most_bands, (rows + Streams::kRows - 1) / Streams::kRows,
                          resident_clusters(static_cast<unsigned>(cut.chunks), device)});
    if (cut.bands < 2) return one;
    Streams sizes;
    sizes.rows = rows;
    sizes.cols = cols;
    sizes.lay_out(cut);
    const std::int64_t pieces =
        (sizes.band_rows + Streams::kRows - 1) / Streams::kRows + gather_mma::kWarps - 1;
    const BandLayout layout = band_layout(images.bytes(sizes.chunk_cols), images.planes, pieces,
                                          sizes.band_rows, sizes.chunks);
    if (static_cast<std::size_t>(layout.bytes) <= device.shared_per_block) return cut;
  }
  return one;
}

// A on the device, the same for every shape with as many planes.
struct Matrix {
  Matrix(const SparseOperand& a, const ImagesOfB& of_b, std::int64_t most_bands, Device& device,
         StageTimer& stages)
      : images(of_b), scale(a.scale()), sm_count(device.info().sm_count) {
    const ResidentCsr csr(a, device, stages);
    const auto timed = stages.scope("build");
    const DeviceCsr view = csr.view();
    streams = gather_mma::build_streams(
        view, choose_cut(view.rows, view.cols, images, most_bands, device.info()), device);
    arguments = {.block_chunk = streams.block_chunk.as<std::int32_t>(),
                 .ranges = streams.ranges.as<Streams::Range>(),
                 .pieces = streams.pieces.as<Streams::Piece>(),
                 .starts = streams.starts.as<Streams::Start>(),
                 .words = streams.words.as<std::uint32_t>(),
                 .piece_count = streams.piece_count,
                 .chunk_cols = streams.chunk_cols,
                 .second_cols = streams.second_cols,
                 .partial = nullptr};
  }

  std::size_t bytes() const {
    return sum_of_bytes(streams.block_chunk, streams.ranges, streams.pieces, streams.starts,
                        streams.words, streams.part_ptr, streams.parts, streams.row_parts);
  }
  bool in_bands() const { return streams.bands > 1; }

  ImagesOfB images;
  float scale;
  int sm_count;
  gather_mma::DeviceStreams streams;
  gather_mma::Arguments arguments{};
};

class GatherMmaPlan final : public Plan {
 public:
  GatherMmaPlan(const Matrix& a, std::int64_t n, Device& device)
      : a_(a),
        variant_(choose_variant(a.images.type, a.images.planes, a.images.forms)),
        n_(n),
        arguments_(a.arguments) {
    if (a.in_bands()) {
      const auto& s = a.streams;
      bands_ = {.row_parts = s.row_parts.as<RowParts>(),
                .band_rows = static_cast<std::int32_t>(s.band_rows),
                .own_rows = static_cast<std::int32_t>((s.band_rows + s.chunks - 1) / s.chunks),
                .at = band_layout(a.images.bytes(s.chunk_cols), a.images.planes, s.most_pieces,
                                  s.band_rows, s.chunks),
                .scale = 1};
      allow_shared_bytes(variant_.multiply_bands, bands_.at.bytes);
      return;
    }
    allow_shared_bytes(variant_.multiply, shared_bytes());
    partial_ = device.allocate(tiles_of(n) * a.arguments.piece_count * Streams::kRows *
                               columns_of(n) * sizeof(float));
    arguments_.partial = partial_.as<float>();
  }

  void launch(const DenseView& b, const DenseView& c, Stream stream) override {
    if (a_.in_bands()) {
      bands_.scale = a_.scale * b.scale;
      if (a_.streams.chunks == 1)
        return launch_dependent(variant_.multiply_bands, grid(), dim3(gather_mma::kThreads),
                                bands_.at.bytes, stream, true, arguments_, bands_, b, c);
      launch_dependent_clusters(variant_.multiply_bands, static_cast<unsigned>(a_.streams.chunks),
                                grid(), dim3(gather_mma::kThreads), bands_.at.bytes, stream,
                                arguments_, bands_, b, c);
      return;
    }
    if (a_.arguments.piece_count > 0)
      launch_dependent(variant_.multiply, grid(), dim3(gather_mma::kThreads), shared_bytes(),
                       stream, true, arguments_, b);
    add_parts(b, c, stream);
  }

  PlanReport report() const override {
    PlanReport report;
    report.format = a_.streams.stats;
    report.device_bytes = a_.bytes() + partial_.bytes();
    // Each mma multiplies 16 x 16, of which 16 are nonzeros, or in 8 bits 32.
    const double rows_of_mma = a_.images.type == ElementType::e4m3 ? 8 : 16;
    report.issued_flops = 2.0 * rows_of_mma * static_cast<double>(a_.streams.stats.stored) *
                          static_cast<double>(tiles_of(n_) * columns_of(n_));
    report.metrics["pieces"] = static_cast<double>(a_.arguments.piece_count);
    report.metrics["bands"] = static_cast<double>(a_.streams.bands);
    return report;
  }

 private:
  // Shared memory and grid of the kernel `multiply`.
  int shared_bytes() const { return static_cast<int>(a_.images.bytes(arguments_.chunk_cols)); }
  dim3 grid() const {
    return dim3(static_cast<unsigned>(a_.streams.block_count), static_cast<unsigned>(tiles_of(n_)));
  }
  void add_parts(const DenseView& b, const DenseView& c, Stream stream) const {
    // With one tile, a block on every multiprocessor finds room beside `multiply` and waits there.
    const std::int64_t most =
        (tiles_of(n_) == 1 ? 1 : gather_mma::kAddBlocks) * std::int64_t{a_.sm_count};
    const std::int64_t items =
        c.rows * ((c.cols + gather_mma::kPlaneColumns - 1) / gather_mma::kPlaneColumns);
    const int team = team_of(items, most * gather_mma::kAddThreads);
    const std::int64_t blocks =
        std::min(most, (items * team + gather_mma::kAddThreads - 1) / gather_mma::kAddThreads);
    visit_element_type(c.type, [&](auto* tag) {
      launch_dependent(gather_mma::add_parts_by<std::remove_pointer_t<decltype(tag)>>(team),
                       dim3(static_cast<unsigned>(blocks)), dim3(gather_mma::kAddThreads), 0,
                       stream, true, arguments_.partial, arguments_.piece_count, columns_of(n_),
                       a_.streams.part_ptr.as<std::int32_t>(), a_.streams.parts.as<std::int32_t>(),
                       a_.scale * b.scale, c);
    });
  }
  // Lanes for each row of add_parts: as many as its longest row has use for, while the threads
  // have at most one row each.
  int team_of(std::int64_t items, std::int64_t threads) const {
    int team = 1;
    while (team < gather_mma::kMostTeam && 2 * team * items <= threads &&
           team * gather_mma::kAhead < a_.streams.most_parts)
      team *= 2;
    return team;
  }

  const Matrix& a_;
  Variant variant_;
  std::int64_t n_;
  Buffer partial_;  // of one band
  gather_mma::Arguments arguments_;
  BandArguments bands_{};  // of several
};

// A has a form for one plane of B, one for two and one for several tiles, which is made when a
// shape needs it.
class GatherMmaPrepared final : public Prepared {
 public:
  GatherMmaPrepared(const SparseOperand& a, const Options& options, Device& device)
      : a_(a), options_(options), device_(device) {}

  std::unique_ptr<Plan> bind(const Shape& shape, StageTimer& stages) override {
    const int planes = planes_of(shape.n);
    const bool is_wide = tiles_of(shape.n) > 1;
    Form& form = is_wide ? wide_form_ : forms_[planes - 1];
    // With several tiles bands have not been faster: 3.8 x the time on cora at N = 128.
    if (form.matrix == nullptr)
      form.matrix = std::make_unique<Matrix>(a_, images_of(a_, planes, options_, device_.info()),
                                             kBands(options_).value_or(is_wide ? 1 : INT64_MAX),
                                             device_, form.cost);
    stages.add(form.cost);
    const auto timed = stages.scope("upload");
    return std::make_unique<GatherMmaPlan>(*form.matrix, shape.n, device_);
  }

 private:
  struct Form {
    std::unique_ptr<Matrix> matrix;
    StageTimer cost;
  };

  SparseOperand a_;
  Options options_;
  Device& device_;
  Form forms_[kMostPlanes], wide_form_;
};

class GatherMma final : public Kernel {
 public:
  const KernelInfo& info() const override { return info_; }

  Support supports(const Problem& problem, const DeviceInfo& device) const override {
    if (tiles_of(problem.n) > kMaxGridY)
      return Support::no(fmt::format("N above {}", kMaxGridY * columns_of(problem.n)));
    const ElementType type = storage_type(problem.precision);
    const int planes = planes_of(problem.n);
    const std::int64_t chunks =
        chunks_of(problem.k(), images_of(problem, planes, problem.options, device), device);
    const double positions = static_cast<double>(problem.m()) * static_cast<double>(problem.k());
    const double fill = static_cast<double>(problem.nnz()) / std::max(1.0, positions);
    if (positions > static_cast<double>(kSmallPositions) && fill < kMinFill(problem.options))
      return Support::no(
          fmt::format("{:.2g} % nonzeros, less than min_fill: too few to fill a row's slots evenly",
                      100 * fill));
    // At worst all nonzeros of a row want the same slot, and every one needs a zero on the way.
    const std::int64_t runs = std::min(problem.nnz(), problem.m() * chunks);
    const std::int64_t slots = Streams::kOctet * (problem.nnz() + 2 * runs);
    const std::int64_t warps = std::int64_t{device.sm_count + chunks} * gather_mma::kWarps;
    const std::int64_t pieces = runs / Streams::kRows + chunks + warps;
    return Support::yes(static_cast<std::size_t>(
        (1 + static_cast<std::int64_t>(bytes_of(type))) * slots +
        pieces * Streams::kRows * (4 + 4 * columns_of(problem.n) * tiles_of(problem.n))));
  }

  std::unique_ptr<Prepared> prepare(const SparseOperand& a, const Options& options, Device& device,
                                    StageTimer&) const override {
    return std::make_unique<GatherMmaPrepared>(a, options, device);
  }

 private:
  KernelInfo info_ = {
      .name = "gather_mma",
      .summary = "few columns, mostly zeros: nonzeros times gathered rows of B on tensor cores",
      .source = "spmmbench",
      .min_compute_capability = 90,
      .exact_architecture = true,
      .precisions = {Precision::fp16, Precision::fp8_e4m3, Precision::bf16},
      .c_types = {ElementType::f32, ElementType::f16, ElementType::bf16},
      .layouts = {Layout::row_major, Layout::col_major},
      .accumulation = Accumulation::fp32_tensor_core,
      .promoted_columns = 1,  // fp8 is multiplied as fp16
      .prepares_on_device = true,
      .options = {kMinFill, kCopies, kBands, kForms},
  };
};

SPMMBENCH_REGISTER_KERNEL(GatherMma);

}  // namespace
}  // namespace spmmbench::gather_mma
