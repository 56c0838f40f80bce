// async_wcsr: irregular SpMM on tensor cores, after AsyncSparse (arXiv 2604.17834): windows of rows
// whose distinct columns are packed (src/format/wcsr.hpp), rows of B gathered asynchronously ahead
// of the products. window/multiply.cuh is the device code, async_wcsr/multiply_vector.cuh that of
// N = 1; this file chooses, builds and launches.
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
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "async_wcsr/dense_box.cuh"
#include "async_wcsr/empty_rows.cuh"
#include "async_wcsr/multiply_vector.cuh"
#include "common/by_rows.hpp"
#include "common/new_values.hpp"
#include "common/resident_csr.hpp"
#include "core/row_lengths.hpp"
#include "format/wcsr.hpp"
#include "gpu/cuda_check.hpp"
#include "row_order/degree_order.hpp"
#include "row_order/device_orders.hpp"
#include "spmmbench/registry.hpp"
#include "spmmbench/shared_parts.hpp"
#include "window/bound.hpp"
#include "window/choice.hpp"
#include "window/device_build.hpp"
#include "window/device_survey.hpp"
#include "window/device_values.hpp"
#include "window/hub_columns.hpp"
#include "window/multiply.cuh"

namespace spmmbench::async_wcsr {
namespace {

// Narrow stages of tall windows hold few bytes, so four of them leave as many warps as three: 0.97
// to 0.99 of the time (docs/decisions/window-cuts.md).
template <int kWindowRows, int kRowBytes>
constexpr int kStages = kWindowRows > 8 && kRowBytes < window::kShortRow ? 4 : 3;

// In fp8 columns of B lie in shared memory: 0.94 to 0.96 of the time (docs/decisions/windows.md).
template <class Input>
constexpr bool kOfBytes = window::kInputBytes<Input> == 1;

// kClears: CTAs after those of the windows write the empty rows of C.
template <class Boxes, class C, int kRowBytes, bool kClears>
__global__ void __launch_bounds__(
    window::kMaxThreads,
    window::min_ctas_per_sm<typename Boxes::Input, Boxes::kWindowRows, kRowBytes>())
    wcsr_kernel(const __grid_constant__ window::Arguments in, const void* boxes,
                const wcsr::EmptyRows empty) {
  extern __shared__ __align__(128) unsigned char shared[];
  if (kClears && blockIdx.x >= empty.first_cta) wcsr::clear_rows<C>(in, empty);
  else
    window::multiply_spans<Boxes, C, kRowBytes, kStages<Boxes::kWindowRows, kRowBytes>,
                           kOfBytes<typename Boxes::Input>>(in, boxes, shared);
}

// The same for N = 1. More CTAs on an SM would leave fewer tiles of A in flight or spill values
// (docs/decisions/window-cuts.md).
template <int kWindowRows>
constexpr int kVectorCtasPerSm = kWindowRows == 32 ? 7 : 8;
template <class Input, class C, int kWindowRows, bool kClears>
__global__ void __launch_bounds__(window::kMaxThreads, kVectorCtasPerSm<kWindowRows>)
    wcsr_vector_kernel(const __grid_constant__ window::Arguments in, const void* boxes,
                       const wcsr::EmptyRows empty) {
  extern __shared__ __align__(128) unsigned char shared[];
  if (kClears && blockIdx.x >= empty.first_cta) wcsr::clear_rows<C>(in, empty);
  else wcsr::multiply_vector<Input, C, kWindowRows>(in, boxes, shared);
}

using Variant = window::Variant<window::Arguments, const void*, wcsr::EmptyRows>;

// Empty rows are left out of the lowest windows only, where they cost most, and only the kernels of
// these are compiled twice.
constexpr int kClearsHeight = 0;  // into kWcsrHeights

struct MakeVariant {
  static constexpr bool kNarrow = true, kFp8 = true, kFp32 = true;
  bool is_vector, clears;

  template <class Input, class C, int kWindowRows, int kRowBytes>
  Variant operator()() const {
    if constexpr (window::kInputBytes<Input> != 1 && !window::kIsFp32<Input>)
      if (is_vector) return of_vector<Input, C, kWindowRows>();
    return of_tile<Input, C, kWindowRows, kRowBytes>();
  }

 private:
  template <class Input, class C, int kWindowRows>
  Variant of_vector() const {
    constexpr int kSumVectors = wcsr::VectorSums<Input, kWindowRows>::kVectors;
    auto kernel = wcsr_vector_kernel<Input, C, kWindowRows, false>;
    if constexpr (kWindowRows == kWcsrHeights[kClearsHeight])
      if (clears) kernel = wcsr_vector_kernel<Input, C, kWindowRows, true>;
    constexpr int kSumBytes = kSumVectors * 32 * static_cast<int>(sizeof(float4));  // of a warp
    return {kernel, window::kInputBytes<Input>, 1, kSumBytes, kSumVectors};
  }

  template <class Input, class C, int kWindowRows, int kRowBytes>
  Variant of_tile() const {
    using Boxes = wcsr::DenseBoxes<Input, kWindowRows>;
    using Shape = window::Shape<Boxes, kRowBytes, kStages<kWindowRows, kRowBytes>>;
    auto kernel = wcsr_kernel<Boxes, C, kRowBytes, false>;
    if constexpr (kWindowRows == kWcsrHeights[kClearsHeight])
      if (clears) kernel = wcsr_kernel<Boxes, C, kRowBytes, true>;
    constexpr int kWarpBytes = Shape::kRingBytes + (kOfBytes<Input> ? window::kColumnBytes : 0);
    return {kernel, kRowBytes, Shape::kFeatures, kWarpBytes, Shape::kSumVectors};
  }
};

// A in windows of one height and order.
struct Windows {
  WcsrShape shape;
  window::Choice choice;
  DeviceWcsr matrix;
  std::int64_t order_bytes = 0;  // of the row order in the format
  Buffer order;                  // row of A at each place; null: natural
  Buffer row_ids;                // row of C at each place; null: the row of A
  Buffer empty_rows;             // of C; the windows have no place for them
  WcsrLines lines;               // with values, once some have been replaced

  const Buffer& rows_of_c() const { return row_ids.data() == nullptr ? order : row_ids; }
};

using SharedWindows = SharedParts<std::pair<std::string, int>, Windows>;  // by order and height

class AsyncWcsrPlan final : public Plan, public OrderedSums {
 public:
  AsyncWcsrPlan(const SparseOperand& a, const Options& options, const Shape& shape,
                SharedWindows::Entry& built, bool cached, Device& device, StageTimer& stages)
      : a_(a), windows_(built.part), scale_(a.scale()), cached_(cached), device_(device) {
    {
      const auto timed = stages.scope("build");
      bound_.emplace(view(), a, options, shape, device,
                     MakeVariant{shape.n == 1, windows_.empty_rows.bytes() > 0});
      const auto empty =
          static_cast<std::int32_t>(windows_.empty_rows.bytes() / sizeof(std::int32_t));
      const std::int64_t c_row_bytes = shape.n * static_cast<std::int64_t>(bytes_of(shape.c_type));
      empty_ = {windows_.empty_rows.as<std::int32_t>(), empty,
                wcsr::empty_rows_per_warp(c_row_bytes), bound_->ctas()};
      empty_ctas_ = wcsr::ctas_of(empty_, bound_->launch_shape());
    }
    if (windows_.matrix.is_under_way()) {
      const auto timed = built.cost.scope("build");
      device.synchronize();
      windows_.matrix.free_input();
    }
    stages.add(built.cost);
    const auto timed = stages.scope("upload");
    bound_->upload(false, device);
    bound_->share_evenly(empty_ctas_, device.info());
    device.synchronize();
    describe(a.nnz());
  }

  void launch(const DenseView& b, const DenseView& c, Stream stream) override {
    bound_->launch(b, c, stream, empty_ctas_, static_cast<const void*>(windows_.matrix.values),
                   empty_);
  }

  PlanReport report() const override { return report_; }

  void will_ask(std::span<const std::int64_t> rows) override {
    bound_->will_ask(a_, rows, device_);
  }
  std::optional<SumOrder> sum_order(std::int64_t row, std::int64_t /*column*/) override {
    return bound_->sum_order(a_, row, device_).value_or(SumOrder{});  // an empty row
  }

 private:
  window::MatrixView view() const {
    return {.sizes = windows_.matrix.sizes,
            .window_ptr_host = &windows_.matrix.window_ptr_host,
            .window_rows = windows_.shape.window_rows,
            .window_ptr = windows_.matrix.window_ptr,
            .col_idx = windows_.matrix.col_idx,
            .row_ids = windows_.rows_of_c().as<std::int32_t>(),
            .places = static_cast<std::int32_t>(windows_.matrix.places),
            .first_tile = windows_.matrix.first_tile,
            .limits = window::kDenseBoxLimits,
            .cached = cached_,
            .scale = scale_};
  }

  void describe(std::int64_t nnz) {
    const DeviceWcsr& matrix = windows_.matrix;
    report_.device_bytes = sum_of_bytes(matrix.memory, windows_.order, windows_.row_ids,
                                        windows_.empty_rows, windows_.lines.memory);
    report_.format =
        wcsr_stats(windows_.shape, nnz, matrix.sizes, matrix.gathered, windows_.order_bytes);
    report_.params["order"] = windows_.choice.order;
    bound_->describe(empty_ctas_, report_);
    const int mma_rows = std::max(16, windows_.shape.window_rows);
    constexpr std::int64_t kMmaFeatures = 16;
    const auto features = std::max(kMmaFeatures, bound_->features());
    report_.issued_flops = 2.0 * static_cast<double>(matrix.tiles()) * window::kTileColumns *
                           mma_rows * static_cast<double>(features);
  }

  const SparseOperand& a_;
  Windows& windows_;
  float scale_;  // of A
  bool cached_;  // as in window::Arguments
  std::optional<window::Bound<Variant>> bound_;
  wcsr::EmptyRows empty_{};
  unsigned empty_ctas_ = 0;
  PlanReport report_;
  Device& device_;
};

const std::vector<std::string> kSearched = {"match"};
const auto kOrder = window::order_option("auto", kSearched);
const auto kBuild =
    choice_option("build", "device", {"host", "device"}, "where the format is built");

// Where the caller has A on the device, all is made there: a few counts come to the host, and the
// number of tiles of each window.
class AsyncWcsrPrepared final : public Prepared, public KeepsForNewValues, public ReadsNewValues {
 public:
  AsyncWcsrPrepared(const SparseOperand& a, const Options& options, Device& device)
      : orders_(a, device),
        a_(with_orders(a, orders_)),
        options_(options),
        device_(device),
        on_device_(kBuild(options) == "device"),
        is_resident_(on_device_ && a.on_device != nullptr) {
    std::unique_ptr<DeviceSurvey> survey;
    if (is_resident_) {
      resident_orders_.emplace(a.orders, device);
      survey = std::make_unique<DeviceSurvey>(a_, *resident_orders_, device);
      survey_ = survey.get();
    }
    chooser_.emplace(a_, options, kOrder, kSearched, window::dense_box_cost(a.precision),
                     device.info(), std::move(survey));
  }

  std::unique_ptr<Plan> bind(const Shape& shape, StageTimer& stages) override {
    return bind_by_rows(a_, shape, device_, stages,
                        [&](const Shape& by_rows) { return bind_rows(by_rows, stages); });
  }

  void take_values(Stream stream) override { read_values(values_of(a_), stream); }
  void read_values(const NewValues& values, Stream stream) override {
    replaced_ = true;
    NewValues left = values;
    windows_.for_each([&](Windows& windows) {
      replace(windows, left, stream);
      left.of_operand = nullptr;  // written
    });
    write_operand(left, stream);
  }
  void free_kept_for_new_values() override {
    windows_.for_each([](Windows& windows) { windows.lines = {}; });
  }

 private:
  std::unique_ptr<Plan> bind_rows(const Shape& shape, StageTimer& stages) {
    if (is_resident_) {
      count_copy(*a_.on_device, stages);
      start_build(shape.n, stages);
    }
    const window::Choice choice = chooser_->choose(shape.n, stages);
    auto& built = windows_.get({choice.order, choice.height_index},
                               [&](StageTimer& cost) { return build(choice, cost); });
    if (started_) survey_->set_follower(nullptr);
    started_.reset();
    return std::make_unique<AsyncWcsrPlan>(a_, options_, shape, built, uses_l1(shape.n, stages),
                                           device_, stages);
  }

  // Whether narrow rows of B come by way of the L1 cache: if all of them fit there, or if all
  // multiprocessors ask for those of the same few columns, so that the part of the L2 cache that
  // holds these is the limit (docs/decisions/locality.md).
  bool uses_l1(std::int64_t n, StageTimer& stages) {
    constexpr double kLeastShare = 0.2;        // of the nonzeros
    constexpr std::int64_t kMostBytes = 8192;  // of the rows of B that should stay in that cache
    const auto value_bytes = static_cast<std::int64_t>(bytes_of(storage_type(a_.precision)));
    if (n == 1 || value_bytes != 2 || n * value_bytes > window::kNarrowRow) return false;
    if (window::fits_l1(make_b_view(a_.k(), n, Layout::row_major, storage_type(a_.precision))))
      return true;
    const HubColumns& hubs = hubs_.get(stages, [this](StageTimer& cost) {
      const auto timed = cost.scope("build");
      return is_resident_ ? find_hub_columns(*a_.on_device, device_) : find_hub_columns(*a_.a);
    });
    return hubs.share >= kLeastShare && hubs.count * n * value_bytes <= kMostBytes;
  }

  Windows build(const window::Choice& choice, StageTimer& cost) {
    Windows out;
    out.shape = {kWcsrHeights[choice.height_index], window::kTileColumns,
                 storage_type(a_.precision)};
    out.choice = choice;
    if (is_resident_) build_resident(choice, out, cost);
    else build_from_host(choice, out, cost);
    out.order_bytes = static_cast<std::int64_t>(out.order.bytes() + out.empty_rows.bytes());
    // The host has the old ones.
    if (replaced_ && !on_device_) replace(out, values_of(a_), device_.stream());
    return out;
  }

  void build_from_host(const window::Choice& choice, Windows& out, StageTimer& cost) {
    std::optional<NonemptyRows> nonempty;
    {
      const auto timed = cost.scope("build");
      if (choice.height_index == kClearsHeight)
        nonempty = leave_out_empty_rows(*a_.a, *choice.row_order);
    }
    const Permutation& order = nonempty ? nonempty->row_order : *choice.row_order;
    out.matrix = on_device_ ? build_wcsr(a_, out.shape, order, device_, cost)
                            : upload_wcsr(*a_.a, out.shape, order, device_, cost);
    const auto timed = cost.scope("upload");
    out.order = device_.upload(order);
    if (!a_.row_ids.empty()) out.row_ids = device_.upload(window::rows_of_c(order, a_.row_ids));
    if (nonempty) out.empty_rows = device_.upload(window::rows_of_c(nonempty->empty, a_.row_ids));
  }

  void build_resident(const window::Choice& choice, Windows& out, StageTimer& cost) {
    const DeviceCsr& csr = *a_.on_device;
    const Buffer* order = &resident_orders_->get(csr, choice.order, cost);
    std::int64_t places = csr.rows;
    DeviceNonemptyRows nonempty;
    {
      const auto timed = cost.scope("build");
      if (choice.height_index == kClearsHeight && csr.nnz > 0 &&
          survey_->empty_share() >= kLeastEmptyShare) {
        nonempty = split_empty_rows(csr, *order, device_);
        order = &nonempty.rows;
        places = nonempty.count;
      }
    }
    out.matrix = build_on_device(choice, out.shape, *order, places, cost);
    // The copies below read memory that is freed when this function ends. So work is not cut on a
    // second stream beside them.
    if (nonempty.rows.data() != nullptr || !a_.row_ids.empty()) out.matrix.first_tile = nullptr;
    const auto timed = cost.scope("build");
    const auto copy = [&](const Buffer& rows, std::int64_t count) {
      Buffer to = device_.allocate(count * sizeof(std::int32_t));
      if (count > 0)
        SPMMBENCH_CUDA(cudaMemcpyAsync(to.data(), rows.data(), to.bytes(), cudaMemcpyDeviceToDevice,
                                       static_cast<cudaStream_t>(device_.stream().handle)));
      return to;
    };
    if (order->data() != nullptr) out.order = copy(*order, places);
    out.empty_rows = copy(nonempty.empty, nonempty.empty_count);
    if (a_.row_ids.empty()) return;
    Buffer row_ids = device_.upload(a_.row_ids);
    const auto of_c = [&](const Buffer& rows, std::int64_t count) {
      return rows_at_places(row_ids.as<std::int32_t>(), rows, count, device_);
    };
    if (nonempty.empty_count > 0) out.empty_rows = of_c(out.empty_rows, nonempty.empty_count);
    out.row_ids = out.order.data() == nullptr ? std::move(row_ids) : of_c(out.order, places);
  }

  DeviceWcsr build_on_device(const window::Choice& choice, const WcsrShape& shape,
                             const Buffer& order, std::int64_t places, StageTimer& cost) {
    const DeviceCsr& csr = *a_.on_device;
    if (places == csr.rows) {
      if (started_ && choice.order == "natural")
        if (auto built = started_->finish(shape.window_rows, cost)) return std::move(*built);
      const std::vector<std::int32_t> distinct =
          survey_->distinct_columns(choice.order, choice.height_index);
      if (!distinct.empty())
        return build_wcsr(csr, shape, order.as<std::int32_t>(), distinct, places, device_, cost);
    }
    return build_wcsr(csr, shape, order.as<std::int32_t>(), places, device_, cost);
  }

  // The device goes on from the survey of the first choice, so that the host waits once less. While
  // the host looks at another order, there is nothing else to do for it.
  void start_build(std::int64_t n, StageTimer& stages) {
    const bool may_be_chosen = kOrder(options_) == "auto" && !window::kWindow(options_);
    if (std::exchange(has_chosen_, true) || !may_be_chosen || a_.nnz() == 0) return;
    const auto timed = stages.scope("build");
    const ElementType type = storage_type(a_.precision);
    const auto value_bytes = static_cast<int>(bytes_of(type));
    const window::ChoiceRule rule{.rows = static_cast<double>(a_.m()),
                                  .cols = static_cast<double>(a_.k()),
                                  .nnz = static_cast<double>(a_.nnz()),
                                  .n = n,
                                  .value_bytes = value_bytes,
                                  .sms = static_cast<double>(device_.info().sm_count),
                                  .format = window::dense_box_cost(a_.precision)};
    started_.emplace(*a_.on_device, type, rule, device_);
    survey_->set_follower(&*started_);
  }

  void replace(Windows& windows, const NewValues& values, Stream stream) {
    const DeviceCsr& csr = *a_.on_device;
    if (csr.nnz == 0) return;
    if (windows.lines.memory.data() == nullptr)
      windows.lines =
          find_wcsr_lines(csr, windows.matrix, windows.order.as<std::int32_t>(), device_);
    replace_wcsr_values(values, windows.lines, windows.matrix, stream);
  }

  DeviceOrders orders_;
  SparseOperand a_;
  Options options_;
  Device& device_;
  bool on_device_;    // where windows are built
  bool is_resident_;  // and where all else is made
  bool replaced_ = false;
  std::optional<ResidentOrders> resident_orders_;
  std::optional<window::WindowChooser> chooser_;
  DeviceSurvey* survey_ = nullptr;  // the chooser's, where all is made on the device
  SharedWindows windows_;
  bool has_chosen_ = false;
  std::optional<StartedWcsr> started_;  // while the first choice is made
  SharedPart<HubColumns> hubs_;
};

class AsyncWcsr final : public Kernel {
 public:
  const KernelInfo& info() const override { return info_; }

  Support supports(const Problem& problem, const DeviceInfo&) const override {
    if (problem.nnz() + problem.m() >= std::numeric_limits<std::int32_t>::max())
      return Support::no("nonzeros and rows together above 2^31 - 2");
    if (!window::writes(problem.c_type, problem.precision)) return Support::no(window::kWrites);
    if (problem.n == 1 && window::kFeatureTile(problem.options))
      return Support::no("feature_tile is of no use at N = 1");
    if (is_scaled(problem.precision) && kBuild(problem.options) == "host")
      return Support::no("fp8 is built on the device");
    if (problem.n == 1 && (is_scaled(problem.precision) || problem.precision == Precision::fp32))
      return Support::no("fp8 and fp32 need N above 1");
    const auto value_bytes = static_cast<std::int64_t>(bytes_of(storage_type(problem.precision)));
    const int given = window::kFeatureTile(problem.options).value_or(window::kShortRow);
    const int most_tile = value_bytes == 1 ? window::kNarrowRow : window::kShortRow;
    const int tile = value_bytes == 4 ? window::kShortRow : std::min(given, most_tile);
    const std::int64_t most = window::max_features(static_cast<int>(value_bytes), tile);
    if (problem.n > most) return Support::no(fmt::format("N above {}", most));
    // Windows that share no column, and a half-filled tile at the end of each. Taller ones than of
    // 8 rows are chosen only where they hold less.
    const std::int64_t columns = problem.nnz() + problem.m();
    const std::int64_t window_rows = window::kWindow(problem.options).value_or(8);
    // CSR is there while the format is built.
    const std::int64_t csr = problem.nnz() * (4 + value_bytes);
    return Support::yes(static_cast<std::size_t>(columns * (4 + window_rows * value_bytes) +
                                                 8 * problem.m() + csr) +
                        bytes_by_rows(problem));
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
      .precisions = {Precision::tf32, Precision::fp32, Precision::fp8_e4m3, Precision::fp8_e5m2,
                     Precision::fp16, Precision::bf16},
      .c_types = {ElementType::f32, ElementType::f16, ElementType::bf16},
      .layouts = {Layout::row_major, Layout::col_major},
      .accumulation = Accumulation::fp32_tensor_core,
      .promoted_columns = 1,  // fp8 is multiplied as fp16
      .writes_row_ids = true,
      .takes_values = true,
      .prepares_on_device = true,
      .options = window::options_with(kOrder, window::kFeatureTile, {kBuild}),
  };
};

SPMMBENCH_REGISTER_KERNEL(AsyncWcsr);

}  // namespace
}  // namespace spmmbench::async_wcsr
