// rsh: hybrid SpMM of RSH-SpMM (arXiv 2603.08734). Rows that share columns with the rows around
// them go in windows of bitmap-compressed 8 x 8 blocks to the tensor cores (rsh/bitmap_tiles.cuh),
// short isolated rows to the CUDA cores (rsh/residual.cuh), in one launch. Each CTA has one of
// these two roles. Every row of C belongs to one role, so nothing has to be added or cleared
// between them.
//
// Where it differs from the paper's kernel: rows of B and records of A pass through a ring of
// asynchronous copies in shared memory (window/multiply.cuh; the paper loads B straight to
// registers, which then bound the bytes in flight), windows of 16 or 32 rows where the matrix
// shares enough columns over them, and split windows are added up in a workspace.

#include <cuda_runtime.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/resident_csr.hpp"
#include "format/rs_image.hpp"
#include "format/rs_tile.hpp"
#include "gpu/cuda_check.hpp"
#include "gpu/upload_values.hpp"
#include "ptx/griddepcontrol.cuh"
#include "row_order/degree_order.hpp"
#include "row_order/device_orders.hpp"
#include "rsh/bitmap_tiles.cuh"
#include "rsh/device_build.hpp"
#include "rsh/device_partition.hpp"
#include "rsh/residual.cuh"
#include "spmmbench/registry.hpp"
#include "spmmbench/reordering.hpp"
#include "spmmbench/shared_parts.hpp"
#include "window/bound.hpp"
#include "window/choice.hpp"
#include "window/device_survey.hpp"
#include "window/multiply.cuh"

namespace spmmbench {
namespace {

constexpr int kStages = 3;
static_assert(RsImage::kTileColumns == window::kTileColumns);

// CTAs per SM that the registers must allow.
template <int kWindowRows, int kRowBytes>
constexpr int kMinCtasPerSm = kWindowRows == 8 && kRowBytes == 128    ? 7
                              : kWindowRows == 16 && kRowBytes == 256 ? 3
                                                                      : 4;

template <class Tiles, class C, int kRowBytes>
__global__ void __launch_bounds__(window::kMaxThreads, kMinCtasPerSm<Tiles::kWindowRows, kRowBytes>)
    rsh_kernel(const __grid_constant__ window::Arguments in, const rsh::Records records,
               const __grid_constant__ rsh::Residual residual, unsigned span_ctas) {
  extern __shared__ __align__(128) unsigned char shared[];
  if (blockIdx.x < span_ctas) {
    window::multiply_spans<Tiles, C, kRowBytes, kStages>(in, records, shared);
  } else {
    ptx::griddepcontrol_wait();
    ptx::griddepcontrol_launch_dependents();
    rsh::multiply_residual<typename Tiles::Input, C, kRowBytes>(in, residual,
                                                                blockIdx.x - span_ctas);
  }
}

using TileVariant = window::Variant<window::Arguments, rsh::Records, rsh::Residual, unsigned>;
struct Variant : TileVariant {
  int residual_rows = 0;  // of a warp
};

struct MakeVariant {
  static constexpr bool kNarrow = false, kFp8 = false;

  template <class Input, class C, int kWindowRows, int kRowBytes>
  Variant operator()() const {
    using Tiles = rsh::BitmapTiles<Input, kWindowRows>;
    using Shape = window::Shape<Tiles, kRowBytes, kStages>;
    return {{rsh_kernel<Tiles, C, kRowBytes>, kRowBytes, Shape::kFeatures, Shape::kRingBytes,
             Shape::kSumVectors},
            rsh::kResidualRowsPerWarp<Input, kRowBytes>};
  }
};

bool is_identity(const std::vector<std::int32_t>& rows) {
  for (std::size_t i = 0; i < rows.size(); ++i)
    if (rows[i] != static_cast<std::int32_t>(i)) return false;
  return true;
}

// Bitmaps are per packed column, values per nonzero. A taller window decodes more per tile and
// holds more registers.
window::FormatCost cost_of(int value_bytes) {
  constexpr double kColumns = RsImage::kTileColumns;
  constexpr window::GatherCost kGathers = {.penalty = {1.0, 1.35, 2.1}};
  return {.bytes_per_column = {RsRecord<8>::kValues / kColumns, RsRecord<16>::kValues / kColumns,
                               RsRecord<32>::kValues / kColumns},
          .bytes_per_nonzero = static_cast<double>(value_bytes),
          .wide = kGathers,
          .narrow = kGathers,
          .vector = kGathers};
}

// Decoding makes a tile slower than a dense box, so warps share windows sooner than in async_wcsr.
constexpr window::MeanLimits kLimits = {.whole = 7.3, .part = 10};

// Residual rows pay where a row of B is one feature tile of 128 bytes: the tensor cores' kernel
// then takes few registers, so that there are enough warps for rows that wait for their loads.
// Below a share of short rows the windows that they leave behind cost more than they save.
int choose_tau_nnz(const SparseOperand& a, std::int64_t row_bytes, Device& device) {
  constexpr int kShort = 2;
  constexpr double kLeastShare = 0.05;
  if (row_bytes > window::kShortRow) return 0;
  const auto count_on_host = [&] {
    const CsrMatrix& matrix = *a.a;
    std::int64_t rows = 0;
    for (std::int64_t row = 0; row < matrix.rows; ++row)
      rows += matrix.row_length(row) > 0 && matrix.row_length(row) <= kShort;
    return rows;
  };
  const std::int64_t rows = a.on_device != nullptr
                                ? rsh::count_short_rows(*a.on_device, kShort, device)
                                : count_on_host();
  return static_cast<double>(rows) >= kLeastShare * static_cast<double>(a.m()) ? kShort : 0;
}

const std::vector<std::string> kSearched = {"match"};
const auto kOrder = window::order_option("search", kSearched);
const auto kFeatureTile =
    window::feature_tile_option({"128", "256"}, "windows of 32 rows take 128");
const auto kReduce = auto_choice_option(
    "reduce", {"fixup", "atomic"},
    "sums of split windows: in a fixed order, or as they come; auto: atomic beyond 8 parts");

// True: the parts of split windows are added in their order, which costs nothing while they are
// few. False: they are added as they come.
bool adds_in_order(const Options& options, const WorkSize& work) {
  constexpr std::int32_t kFewParts = 8;
  if (const auto reduce = kReduce(options)) return *reduce == "fixup";
  return work.most_ctas <= kFewParts;
}

// A in the kernel's image of one order, height and longest residual row.
struct Matrix {
  // From A on the host. Throws the exceptions of the builds.
  Matrix(const SparseOperand& a, const window::Choice& windows, const Options& format_options,
         Device& device, StageTimer& stages)
      : choice(windows), options(format_options) {
    const ElementType type = storage_type(a.precision);
    RsTile host;
    RsImage image;
    {
      const auto timed = stages.scope("build");
      host = choice.row_order->empty()
                 ? RsTile::build(*a.a, options)
                 : RsTile::build(permute_rows(*a.a, *choice.row_order), options);
      image = RsImage::build(host, type);
    }
    const auto timed = stages.scope("upload");
    window_rows = host.window_rows;
    groups = host.windows.back().group;
    residual_entries = static_cast<std::int64_t>(host.residual_value.size());
    stats = host.stats(static_cast<int>(bytes_of(type)));
    upload(a, host, std::move(image), device);
    device.synchronize();
  }

  // From A on the device; `orders` outlives this. Windows hold rows however far apart they are.
  Matrix(const SparseOperand& a, const window::Choice& windows, const Options& format_options,
         ResidentOrders& orders, Device& device, StageTimer& stages)
      : choice(windows), options(format_options) {
    const DeviceCsr& csr = *a.on_device;
    const Buffer& order = orders.get(csr, choice.order, stages);
    rsh::DevicePartition parts;
    {
      const auto timed = stages.scope("build");
      parts = rsh::partition_rows(csr, order, RsTile::partition_options(options), device);
    }
    const WcsrShape shape{kWcsrHeights[choice.height_index], RsImage::kTileColumns,
                          storage_type(a.precision)};
    DeviceWcsr boxes =
        build_wcsr(csr, shape, parts.rows.as<std::int32_t>(), parts.row_count, device, stages);
    const auto timed = stages.scope("build");
    rsh::DeviceRecords made = rsh::build_records(boxes, device);
    window_rows = shape.window_rows;
    groups = made.groups;
    records = std::move(made.records);
    record_ptr = std::move(made.record_ptr);
    const auto copy = [&](const void* from, std::size_t bytes) {
      Buffer to = device.allocate(bytes);
      if (bytes > 0)
        SPMMBENCH_CUDA(cudaMemcpyAsync(to.data(), from, bytes, cudaMemcpyDeviceToDevice,
                                       static_cast<cudaStream_t>(device.stream().handle)));
      return to;
    };
    window_ptr = copy(boxes.window_ptr, (boxes.windows() + 1) * sizeof(std::int32_t));
    col_idx = copy(boxes.col_idx, boxes.tiles() * shape.tile_columns * sizeof(std::int32_t));
    device.synchronize();  // before the sources go
    places = static_cast<std::int32_t>(parts.row_count);
    take_residual(a, std::move(parts), device);
    describe(a, boxes);
    sizes = boxes.sizes;
    window_ptr_host = std::move(boxes.window_ptr_host);
  }

  window::MatrixView view() const {
    return {.sizes = sizes,
            .window_ptr_host = &window_ptr_host,
            .window_rows = window_rows,
            .window_ptr = window_ptr.as<std::int32_t>(),
            .col_idx = col_idx.as<std::int32_t>(),
            .row_ids = row_ids.as<std::int32_t>(),
            .places = places,
            .limits = kLimits};
  }

  window::Choice choice;
  Options options;  // of the format
  int window_rows = 0;
  std::int64_t groups = 0;            // of RsTile::kGroupColumns columns
  std::int64_t residual_entries = 0;  // nonzeros of the residual rows
  FormatStats stats;
  WindowSizes sizes;
  std::vector<std::int32_t> window_ptr_host;  // as in DeviceWcsr
  std::int32_t places = 0;                    // rows of the windows
  Buffer window_ptr, col_idx, record_ptr, records, row_ids, residual_rows, residual_cols,
      residual_values;
  rsh::Residual residual{};

 private:
  // Rows of A become those of C.
  void take_residual(const SparseOperand& a, rsh::DevicePartition parts, Device& device) {
    residual = parts.residual;
    residual_entries = parts.residual_entries;
    row_ids = std::move(parts.rows);
    residual_rows = std::move(parts.residual_rows);
    residual_cols = std::move(parts.residual_cols);
    residual_values = std::move(parts.residual_values);
    if (!a.row_ids.empty()) {
      Buffer of_a = device.upload(a.row_ids);
      const auto of_c = [&](const Buffer& rows, std::int64_t count) {
        return rows_at_places(of_a.as<std::int32_t>(), rows, count, device);
      };
      if (residual.count > 0) residual_rows = of_c(residual_rows, residual.count);
      row_ids = row_ids.data() == nullptr ? std::move(of_a) : of_c(row_ids, places);
    }
    residual.rows = residual_rows.as<std::int32_t>();
    residual.cols = residual_cols.as<std::int32_t>();
    residual.values = residual_values.data();
  }

  // As RsTile::stats.
  void describe(const SparseOperand& a, const DeviceWcsr& boxes) {
    const auto nnz = static_cast<double>(a.nnz() - residual_entries);
    const std::int32_t residual_count = residual.count - residual.first[1];
    const std::int64_t height = window_rows / RsTile::kBlockRows, blocks = groups * height;
    stats.name = "rs_tile";
    stats.index_bytes = static_cast<std::int64_t>(sizeof(RsTile::Window) * (boxes.windows() + 1)) +
                        8 * (a.m() / 64 + 1) + 8 * blocks + 4 * boxes.gathered +
                        4 * residual_count + 4 * residual_entries +
                        static_cast<std::int64_t>(sizeof(RsTile::residual_offset));
    stats.bytes = stats.index_bytes +
                  a.nnz() * static_cast<std::int64_t>(bytes_of(storage_type(a.precision)));
    stats.stored = a.nnz();
    stats.tiles = blocks;
    stats.windows = boxes.windows();
    if (blocks > 0) {
      stats.fill = nnz / static_cast<double>(blocks * RsTile::kBlockRows * RsTile::kGroupColumns);
      stats.nnz_per_tile = nnz / static_cast<double>(blocks);
      stats.nnz_per_window = nnz / static_cast<double>(stats.windows);
      stats.window_imbalance = static_cast<double>(boxes.sizes.longest * stats.windows) /
                               static_cast<double>(boxes.tiles());
    }
    stats.extra["residual_nnz_share"] =
        a.nnz() == 0 ? 0 : static_cast<double>(residual_entries) / static_cast<double>(a.nnz());
    stats.extra["residual_rows"] = residual_count;
    stats.extra["gathered_rows_of_b"] = static_cast<double>(boxes.gathered + residual_entries);
  }

  void upload(const SparseOperand& a, const RsTile& host, RsImage image, Device& device) {
    // Row of the format -> row of C.
    const auto row_of_c = [&](std::int32_t row) {
      if (!choice.row_order->empty()) row = (*choice.row_order)[row];
      return a.row_ids.empty() ? row : a.row_ids[row];
    };
    for (std::int32_t& row : image.row_ids)
      if (row != RsImage::kPadding) row = row_of_c(row);
    std::size_t count = image.row_ids.size();
    while (count > 0 && image.row_ids[count - 1] == RsImage::kPadding) --count;
    places = static_cast<std::int32_t>(count);
    image.row_ids.resize(count);
    if (is_identity(image.row_ids)) image.row_ids.clear();
    window_ptr = device.upload(image.window_ptr);
    col_idx = device.upload(image.col_idx);
    record_ptr = device.upload(image.record_ptr);
    records = device.upload(image.records);
    row_ids = device.upload(image.row_ids);
    upload_residual(storage_type(a.precision), host, row_of_c, device);
    window_ptr_host = std::move(image.window_ptr);
    sizes = sizes_of(window_ptr_host);
  }

  // The residual rows of the format, and before them the rows that are in no part of it, which are
  // empty: C is written there too.
  template <class RowOfC>
  void upload_residual(ElementType type, const RsTile& host, const RowOfC& row_of_c,
                       Device& device) {
    std::vector<std::uint64_t> taken = host.row_bits;
    for (const std::int32_t row : host.residual_row)
      taken[row / 64] |= std::uint64_t{1} << (row % 64);
    std::vector<std::int32_t> rows;
    for (std::int64_t row = 0; row < host.rows; ++row)
      if ((taken[row / 64] >> (row % 64) & 1) == 0) rows.push_back(static_cast<std::int32_t>(row));
    const auto empty = static_cast<std::int32_t>(rows.size());
    rows.insert(rows.end(), host.residual_row.begin(), host.residual_row.end());
    for (std::int32_t& row : rows) row = row_of_c(row);
    for (int length = 1; length <= rsh::Residual::kLengths; ++length)
      residual.first[length] = empty + host.residual_offset[length];
    for (int length = 1; length < rsh::Residual::kLengths; ++length)
      residual.entry[length] = static_cast<std::int32_t>(host.residual_start(length));
    residual_rows = device.upload(rows);
    residual_cols = device.upload(host.residual_col);
    residual_values = upload_values(device, host.residual_value, type);
    residual.rows = residual_rows.as<std::int32_t>();
    residual.cols = residual_cols.as<std::int32_t>();
    residual.values = residual_values.data();
    residual.count = static_cast<std::int32_t>(rows.size());
  }
};

using SharedMatrices =
    SharedParts<std::tuple<std::string, int, std::string>, Matrix>;  // by order, height, tau_nnz

class RshPlan final : public Plan {
 public:
  RshPlan(const SparseOperand& a, const Options& options, const Shape& shape, const Matrix& matrix,
          Device& device, StageTimer& stages)
      : a_(matrix) {
    bool ordered = false;
    {
      const auto timed = stages.scope("build");
      bound_.emplace(a_.view(), a, options, shape, device, MakeVariant{});
      ordered = adds_in_order(options, bound_->work_size());
      const int rows_per_cta = bound_->variant().residual_rows * bound_->launch_shape().cut.team;
      residual_ctas_ = static_cast<unsigned>((a_.residual.count + rows_per_cta - 1) / rows_per_cta);
    }
    const auto timed = stages.scope("upload");
    bound_->upload(ordered, device);
    device.synchronize();
    describe(shape.n, ordered);
  }

  void launch(const DenseView& b, const DenseView& c, Stream stream) override {
    const rsh::Records records{a_.records.as<uint4>(), a_.record_ptr.as<std::uint32_t>()};
    bound_->launch(b, c, stream, residual_ctas_, records, a_.residual, bound_->ctas());
  }

  PlanReport report() const override { return report_; }

 private:
  void describe(std::int64_t n, bool ordered) {
    report_.device_bytes +=
        sum_of_bytes(a_.window_ptr, a_.col_idx, a_.record_ptr, a_.records, a_.row_ids,
                     a_.residual_rows, a_.residual_cols, a_.residual_values);
    report_.format = a_.stats;
    report_.params = a_.options.values();
    report_.params["order"] = a_.choice.order;
    report_.params["reduce"] = ordered ? "fixup" : "atomic";
    bound_->describe(residual_ctas_, report_);
    const double columns = static_cast<double>(a_.groups) * RsTile::kGroupColumns;
    report_.issued_flops =
        2.0 * (columns * a_.window_rows * static_cast<double>(bound_->features()) +
               static_cast<double>(a_.residual_entries) * static_cast<double>(n));
  }

  const Matrix& a_;
  std::optional<window::Bound<Variant>> bound_;
  unsigned residual_ctas_ = 0;
  PlanReport report_;
};

class RshPrepared final : public Prepared {
 public:
  RshPrepared(const SparseOperand& a, const Options& options, Device& device)
      : orders_(a, device),
        a_(with_orders(a, orders_)),
        options_(options),
        device_(device),
        resident_orders_(a.orders, device),
        chooser_(a_, options, kOrder, kSearched,
                 cost_of(static_cast<int>(bytes_of(storage_type(a.precision)))), device.info(),
                 survey()) {}

  std::unique_ptr<Plan> bind(const Shape& shape, StageTimer& stages) override {
    if (a_.on_device != nullptr) count_copy(*a_.on_device, stages);
    window::Choice choice = chooser_.choose(shape.n, stages);
    const std::string tau_nnz = tau_for(shape.n, stages);
    const auto& built =
        matrices_.get({choice.order, choice.height_index, tau_nnz}, [&](StageTimer& cost) {
          const Options options = format_options(choice, tau_nnz);
          if (builds_on_device(options))
            return Matrix(a_, choice, options, resident_orders_, device_, cost);
          choice.row_order = &a_.orders->get(choice.order, cost);
          return Matrix(a_, choice, options, device_, cost);
        });
    stages.add(built.cost);
    return std::make_unique<RshPlan>(a_, options_, shape, built.part, device_, stages);
  }

 private:
  std::string tau_for(std::int64_t n, StageTimer& stages) const {
    if (const auto given = RsTile::kTauNnz(options_)) return fmt::format("{}", *given);
    const auto timed = stages.scope("build");
    const auto value_bytes = static_cast<std::int64_t>(bytes_of(storage_type(a_.precision)));
    return fmt::format("{}", choose_tau_nnz(a_, n * value_bytes, device_));
  }
  // Windows that begin at any row are found on the host.
  bool builds_on_device(const Options& options) const {
    return a_.on_device != nullptr && RsTile::kMembers(options) == "collected";
  }
  std::unique_ptr<window::Survey> survey() {
    if (a_.on_device == nullptr) return nullptr;
    return std::make_unique<DeviceSurvey>(a_, resident_orders_, device_);
  }
  Options format_options(const window::Choice& choice, const std::string& tau_nnz) const {
    Options out;
    for (const OptionSpec& option :
         std::initializer_list<OptionSpec>{RsTile::kRule, RsTile::kMembers, RsTile::kTauDelta})
      if (options_.has(option.name)) out.set(option.name, options_.get(option.name, ""));
    out.set(RsTile::kWindow.name, fmt::format("{}", kWcsrHeights[choice.height_index]));
    out.set(RsTile::kTauNnz.name, tau_nnz);
    return out;
  }

  DeviceOrders orders_;
  SparseOperand a_;
  Options options_;
  Device& device_;
  ResidentOrders resident_orders_;
  window::WindowChooser chooser_;
  SharedMatrices matrices_;
};

class Rsh final : public Kernel {
 public:
  const KernelInfo& info() const override { return info_; }

  Support supports(const Problem& problem, const DeviceInfo&) const override {
    constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
    if (problem.m() > kMost - 32 || problem.nnz() > kMost)
      return Support::no("M above 2^31 - 33 or nonzeros above 2^31 - 1");
    if (!window::writes(problem.c_type, problem.precision)) return Support::no(window::kWrites);
    const int value_bytes = static_cast<int>(bytes_of(storage_type(problem.precision)));
    const std::int64_t most = window::max_features(value_bytes, window::kShortRow);
    if (problem.n > most) return Support::no(fmt::format("N above {}", most));
    // Windows of 8 rows that share no column: per nonzero a column and its share of a record's
    // bitmaps, and a tile that is nearly empty at the end of each window.
    std::int64_t bytes = problem.nnz() * (7 + value_bytes) + problem.m() * 24;
    // Boxes of such windows, from which records are packed on the device.
    if (problem.on_device != nullptr)
      bytes += (problem.nnz() + problem.m()) * (4 + std::int64_t{RsTile::kBlockRows} * value_bytes);
    // The order is found before anything else is there but A.
    if (kOrder(problem.options) == "search" && can_match(problem.m(), problem.k(), problem.nnz())) {
      const std::int64_t a_bytes =
          problem.nnz() * (std::int64_t{sizeof(std::int32_t)} + value_bytes) +
          (problem.m() + 1) * std::int64_t{sizeof(std::int64_t)};
      bytes = std::max(bytes, a_bytes + match_bytes(problem.m(), problem.k(), problem.nnz()));
    }
    return Support::yes(static_cast<std::size_t>(bytes));
  }

  std::unique_ptr<Prepared> prepare(const SparseOperand& a, const Options& options, Device& device,
                                    StageTimer&) const override {
    return std::make_unique<RshPrepared>(a, options, device);
  }

 private:
  KernelInfo info_ = {
      .name = "rsh",
      .summary = "bitmap windows on tensor cores, short rows on CUDA cores, one launch",
      .source = "RSH-SpMM, arXiv 2603.08734",
      .precisions = {Precision::tf32, Precision::fp16, Precision::bf16},
      .c_types = {ElementType::f32, ElementType::f16, ElementType::bf16},
      .accumulation = Accumulation::fp32_tensor_core,
      .writes_row_ids = true,
      .prepares_on_device = true,
      .options = window::options_with(
          kOrder, kFeatureTile,
          {RsTile::kRule, RsTile::kMembers, RsTile::kTauDelta, RsTile::kTauNnz, kReduce}),
  };
};

SPMMBENCH_REGISTER_KERNEL(Rsh);

}  // namespace
}  // namespace spmmbench
