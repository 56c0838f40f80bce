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
#include <limits>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "common/resident_csr.hpp"
#include "gpu/cuda_check.hpp"
#include "ptx/griddepcontrol.cuh"
#include "row_order/device_orders.hpp"
#include "rsh/bitmap_tiles.cuh"
#include "rsh/device_partition.hpp"
#include "rsh/format.hpp"
#include "rsh/image.hpp"
#include "rsh/matrix.cuh"
#include "rsh/residual.cuh"
#include "spmmbench/registry.hpp"
#include "spmmbench/reordering.hpp"
#include "spmmbench/shared_parts.hpp"
#include "window/bound.hpp"
#include "window/choice.hpp"
#include "window/device_survey.hpp"
#include "window/multiply.cuh"

namespace spmmbench::rsh {
namespace {

constexpr int kStages = 3;
static_assert(RsImage::kTileColumns == window::kTileColumns);

// CTAs per SM that the registers must allow.
template <class Input, int kWindowRows, int kRowBytes>
constexpr int min_ctas_per_sm() {
  if (window::kInputBytes<Input> == 1)
    return window::min_ctas_per_sm<Input, kWindowRows, kRowBytes>();
  return kWindowRows == 8 && kRowBytes == 128 ? 7 : kWindowRows == 16 && kRowBytes == 256 ? 3 : 4;
}

template <class Tiles, class C, int kRowBytes>
__global__ void __launch_bounds__(
    window::kMaxThreads, min_ctas_per_sm<typename Tiles::Input, Tiles::kWindowRows, kRowBytes>())
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
  static constexpr bool kNarrow = false, kFp8 = true, kFp32 = false;

  template <class Input, class C, int kWindowRows, int kRowBytes>
  Variant operator()() const {
    using Tiles = rsh::BitmapTiles<Input, kWindowRows>;
    using Shape = window::Shape<Tiles, kRowBytes, kStages>;
    return {{rsh_kernel<Tiles, C, kRowBytes>, kRowBytes, Shape::kFeatures, Shape::kRingBytes,
             Shape::kSumVectors},
            rsh::kResidualRowsPerWarp<Input, kRowBytes>};
  }
};

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

using SharedMatrices = SharedParts<std::tuple<std::string, int, std::string>,
                                   rsh::Matrix>;  // by order, height, tau_nnz

class RshPlan final : public Plan, public OrderedSums {
 public:
  RshPlan(const SparseOperand& a, const Options& options, const Shape& shape,
          const rsh::Matrix& matrix, Device& device, StageTimer& stages)
      : operand_(a), a_(matrix), device_(device) {
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

  void will_ask(std::span<const std::int64_t> rows) override {
    bound_->will_ask(operand_, rows, device_);
  }
  // A row that is in no window is residual: its entries in their order.
  std::optional<SumOrder> sum_order(std::int64_t row, std::int64_t /*column*/) override {
    if (auto in_window = bound_->sum_order(operand_, row, device_)) return in_window;
    const CsrMatrix& a = *operand_.a;
    SumOrder order;
    order.entries.resize(a.row_length(row));
    std::iota(order.entries.begin(), order.entries.end(), a.row_ptr[row]);
    order.instructions = {order.entries.size()};
    order.parts = {1};
    order.on_cuda_cores = true;
    return order;
  }

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

  const SparseOperand& operand_;
  const rsh::Matrix& a_;
  Device& device_;
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
            return rsh::Matrix(a_, choice, options, resident_orders_, device_, cost);
          choice.row_order = &a_.orders->get(choice.order, cost);
          return rsh::Matrix(a_, choice, options, device_, cost);
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
    // In fp8 windows of 32 rows take tiles of 64 bytes.
    const std::int64_t most = window::max_features(
        value_bytes, value_bytes == 1 ? window::kNarrowRow : window::kShortRow);
    if (problem.n > most) return Support::no(fmt::format("N above {}", most));
    // Windows of 8 rows that share no column: per nonzero a column and its share of a record's
    // bitmaps, and a tile that is nearly empty at the end of each window.
    std::int64_t bytes = problem.nnz() * (7 + value_bytes) + problem.m() * 24;
    // Boxes of such windows, from which records are packed on the device.
    if (problem.on_device != nullptr)
      bytes += (problem.nnz() + problem.m()) * (4 + std::int64_t{RsTile::kBlockRows} * value_bytes);
    // The order is found before anything else is there but A. Of 16 bits or more, values have room
    // for what that rounds up.
    if (kOrder(problem.options) == "search" && can_match(problem.m(), problem.k(), problem.nnz())) {
      const std::int64_t a_bytes =
          problem.nnz() * (std::int64_t{sizeof(std::int32_t)} + std::max(value_bytes, 2)) +
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
      .precisions = {Precision::tf32, Precision::fp16, Precision::fp8_e4m3, Precision::fp8_e5m2,
                     Precision::bf16},
      .c_types = {ElementType::f32, ElementType::f16, ElementType::bf16},
      .accumulation = Accumulation::fp32_tensor_core,
      .promoted_columns = 1,  // fp8 is multiplied as fp16
      .writes_row_ids = true,
      .prepares_on_device = true,
      .options = window::options_with(
          kOrder, kFeatureTile,
          {RsTile::kRule, RsTile::kMembers, RsTile::kTauDelta, RsTile::kTauNnz, kReduce}),
  };
};

SPMMBENCH_REGISTER_KERNEL(Rsh);

}  // namespace
}  // namespace spmmbench::rsh
