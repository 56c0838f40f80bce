#include "plugin/plugin_kernel.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "core/dense_bytes.hpp"
#include "plugin/description.hpp"
#include "plugin/plugin.hpp"
#include "plugin/plugin_structs.hpp"
#include "spmmbench/error.hpp"
#include "spmmbench/scalars.hpp"

namespace spmmbench {
namespace {

// A size, a time or a share.
bool is_amount(double value) { return std::isfinite(value) && value >= 0; }

// Calls a function of a library. Its status becomes an exception of this program; exceptions of its
// own are caught.
class Calls {
 public:
  explicit Calls(const spmmbench_library& library) : library_(&library) {}

  template <class Function>
  void operator()(const char* name, const Function& function) const {
    check(name, contained(name, function));
  }

  // Calls a function that returns no status.
  template <class Function>
  static void contain(const Function& function) noexcept {
    function();  // an exception here ends the process
  }

  std::string last_error(const char* name) const {
    const std::string said = text(library_->last_error());
    return fmt::format("{}: {}", name, said.empty() ? "failed and gave no reason" : said);
  }

 private:
  template <class Function>
  static spmmbench_status contained(const char* name, const Function& function) {
    try {
      return function();
    } catch (const std::exception& error) {
      throw Error(fmt::format("{}: threw a C++ exception: {}", name, text(error.what())));
    } catch (...) {
      throw Error(fmt::format("{}: threw a C++ exception", name));
    }
  }

  void check(const char* name, spmmbench_status status) const {
    switch (status) {
      case SPMMBENCH_OK: return;
      case SPMMBENCH_UNSUPPORTED: {
        const std::string why = text(library_->last_error());
        throw Unsupported(why.empty() ? fmt::format("{}: gave no reason", name) : why);
      }
      case SPMMBENCH_DEVICE_LOST: throw DeviceError(last_error(name), true);
      case SPMMBENCH_OUT_OF_MEMORY: throw OutOfMemory("out of memory: " + last_error(name));
      case SPMMBENCH_INVALID:
      case SPMMBENCH_FAILED: throw Error(last_error(name));
      default: throw Error(fmt::format("{}: status {} is none of plugin.h", name, status));
    }
  }

  const spmmbench_library* library_;
};

// The time of a call by stage: the stages that the library reports, and the remaining time as
// "build".
class Stages {
 public:
  explicit Stages(StageTimer& stages) : stages_(stages) {}
  Stages(const Stages&) = delete;
  Stages& operator=(const Stages&) = delete;
  ~Stages() {
    const double all = std::chrono::duration<double, std::milli>(Clock::now() - start_).count();
    stages_.add("build", std::max(0.0, all - reported_ms_));
  }
  const spmmbench_stages* c() const { return &c_; }

  // Throws Error where the library reported a time that is none.
  void check() const {
    if (!fault_.empty()) throw Error(fault_);
  }

 private:
  using Clock = std::chrono::steady_clock;

  static void add(void* context, const char* stage, double milliseconds) {
    auto& self = *static_cast<Stages*>(context);
    const std::string name = text(stage);
    constexpr std::size_t kMostStages = 64;  // of a row
    if (!is_word(name) || !is_amount(milliseconds)) {
      self.fault_ = fmt::format(
          "stage '{:.64}': {:g} ms: expected a name, and a finite time that is not negative", name,
          milliseconds);
      return;
    }
    if (self.stages_.stages_ms().size() >= kMostStages) {
      self.fault_ = fmt::format("more than {} stages", kMostStages);
      return;
    }
    // Loading is the program's own stage, and no part of a preparation.
    self.stages_.add(name == "load" ? "build" : name, milliseconds);
    self.reported_ms_ += milliseconds;
  }

  StageTimer& stages_;
  double reported_ms_ = 0;
  std::string fault_;
  spmmbench_stages c_ = {sizeof(spmmbench_stages), this, add};
  Clock::time_point start_ = Clock::now();
};

// B and C to tune with, in memory of their own: a plan is not to know what it will multiply.
class Scratch {
 public:
  // Makes none where memory does not suffice, or the ld are not known.
  Scratch(const SparseOperand& a, const Shape& shape, std::int64_t c_row_multiple, Device& device)
      : b_view_(make_b_view(a.k(), shape.n, shape.layout, storage_type(a.precision))),
        c_view_(make_dense_view(a.m(), shape.n, shape.layout, shape.c_type)) {
    if (shape.ld_b == 0 || shape.ld_c == 0) return;
    constexpr std::uint64_t kSeed = 0;  // of values that no product has
    b_view_.ld = shape.ld_b;
    c_view_.ld = shape.ld_c;
    DenseView padded_c = c_view_;
    if (shape.layout == Layout::row_major)
      padded_c.rows += (c_row_multiple - a.m() % c_row_multiple) % c_row_multiple;
    if (saturated_bytes(b_view_) + saturated_bytes(padded_c) > device.free_bytes()) return;
    b_memory_ = device.allocate(b_view_.bytes());
    c_memory_ = device.allocate(padded_c.bytes());
    b_view_.data = b_memory_.data();
    c_view_.data = c_memory_.data();
    device.fill_uniform(b_view_, kSeed, a.precision);
    device.fill_bytes(c_memory_.data(), 0, c_memory_.bytes());
    device.synchronize();
    b_ = dense_of_c(b_view_);
    c_ = dense_of_c(c_view_);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  void offer(spmmbench_shape& shape, Stream stream) const {
    if (!b_) return;
    shape.b = &*b_;
    shape.c = &*c_;
    shape.stream = stream.handle;
  }

 private:
  DenseView b_view_, c_view_;
  Buffer b_memory_, c_memory_;
  std::optional<spmmbench_dense> b_, c_;
};

class PluginPlan : public Plan {
 public:
  using Settle = decltype(spmmbench_kernel::settle);

  PluginPlan(const Calls& calls, const spmmbench_kernel& kernel, Settle settle,
             spmmbench_plan* plan, bool packed, std::size_t bytes_of_a, Device& device)
      : calls_(calls),
        plan_(plan),
        kernel_(kernel),
        settle_(settle),
        packed_(packed),
        bytes_of_a_(bytes_of_a),
        device_(device) {}
  PluginPlan(const PluginPlan&) = delete;
  PluginPlan& operator=(const PluginPlan&) = delete;
  ~PluginPlan() override {
    Calls::contain([&] { kernel_.destroy_plan(plan_); });
  }

  void inspect_b(const DenseView& b, StageTimer& stages) override {
    if (kernel_.inspect_b == nullptr) return;
    const Stages timed(stages);
    const spmmbench_dense dense = dense_of_c(b);
    calls_("inspect_b", [&] { return kernel_.inspect_b(plan_, &dense, timed.c()); });
    timed.check();
  }

  void settle(StageTimer& stages) override {
    if (settle_ == nullptr) return;
    const Stages timed(stages);
    calls_("settle", [&] { return settle_(plan_, timed.c()); });
    timed.check();
  }

  void launch(const DenseView& b, const DenseView& c, Stream stream) override {
    require_aligned(b, c);
    if ((kernel_.flags & SPMMBENCH_ADDS_TO_C) != 0) device_.fill_bytes(c.data, 0, c.bytes());
    const spmmbench_dense dense_b = dense_of_c(b), dense_c = dense_of_c(c);
    calls_("launch", [&] { return kernel_.launch(plan_, &dense_b, &dense_c, stream.handle); });
  }

  PlanReport report() const override {
    PlanReport out;
    out.device_bytes = bytes_of_a_;
    if (packed_) out.params["packed_rows"] = "1";
    if (kernel_.report == nullptr) return out;
    constexpr std::size_t kMostParams = 64;
    spmmbench_report report = {};
    report.size = sizeof report;
    calls_("report", [&] { return kernel_.report(plan_, &report); });
    const auto require = [](bool holds, const char* expected) {
      if (!holds) throw Error(fmt::format("report: expected {}", expected));
    };
    require(is_amount(report.issued_flops), "issued_flops that are finite and not negative");
    require(report.device_bytes <= INT64_MAX, "device_bytes below 2^63");
    out.device_bytes += report.device_bytes;
    if (report.issued_flops > 0) out.issued_flops = report.issued_flops;
    for (const char* const* at = report.params; at != nullptr && at[0] != nullptr; at += 2) {
      require(at[1] != nullptr, "a value of each param");
      const std::string name = text(at[0]), value = text(at[1]);
      require(is_word(name) && is_line(value), "a name and a value of one line of each param");
      require(out.params.size() < kMostParams, "at most 64 params");
      out.params[name] = value;
    }
    if (report.format != nullptr) {
      require(is_word(text(report.format)), "a format with a name of letters");
      require(std::min({report.format_bytes, report.format_index_bytes, report.stored, report.tiles,
                        report.windows}) >= 0,
              "sizes that are not negative");
      require(is_amount(report.fill), "a fill that is finite and not negative");
      FormatStats& format = out.format.emplace();
      format.name = report.format;
      format.bytes = report.format_bytes;
      format.index_bytes = report.format_index_bytes;
      format.stored = report.stored;
      format.tiles = report.tiles;
      format.windows = report.windows;
      format.fill = report.fill;
    }
    return out;
  }

 protected:
  // Members of a batch lie where the one before ends.
  void require_aligned(const DenseView& b, const DenseView& c) const {
    const std::uintptr_t bytes = std::max(kernel_.data_alignment, 1U);
    for (const void* data : {b.data, c.data})
      if (reinterpret_cast<std::uintptr_t>(data) % bytes != 0)
        throw Unsupported(fmt::format("needs each B and C at a multiple of {} bytes", bytes));
  }

  const Calls& calls_;
  spmmbench_plan* plan_;

 private:
  const spmmbench_kernel& kernel_;
  Settle settle_;
  bool packed_;
  std::size_t bytes_of_a_;
  Device& device_;
};

// The plan of a kernel that takes scalars.
class ScalingPluginPlan final : public PluginPlan, public ScalingPlan {
 public:
  using LaunchScaled = decltype(spmmbench_kernel::launch_scaled);

  template <class... Arguments>
  ScalingPluginPlan(LaunchScaled launch_scaled, Arguments&&... arguments)
      : PluginPlan(std::forward<Arguments>(arguments)...), launch_scaled_(launch_scaled) {}

  void launch_scaled(const DenseView& b, const DenseView& c, const Scalars& scalars,
                     Stream stream) override {
    require_aligned(b, c);
    const spmmbench_dense dense_b = dense_of_c(b), dense_c = dense_of_c(c);
    calls_("launch_scaled", [&] {
      return launch_scaled_(plan_, &dense_b, &dense_c, scalars.alpha, scalars.beta, stream.handle);
    });
  }

 private:
  LaunchScaled launch_scaled_;
};

class PluginPrepared final : public Prepared {
 public:
  PluginPrepared(const spmmbench_library& library, const spmmbench_kernel& kernel,
                 const OperandForm& form, bool tunes, const SparseOperand& a, Device& device)
      : calls_(library),
        kernel_(kernel),
        settle_(described_by(library, kernel).settle),
        launch_scaled_(described_by(library, kernel).launch_scaled),
        replace_values_(described_by(library, kernel).replace_values),
        form_(form),
        tunes_(tunes),
        a_(a),
        device_(device) {}
  PluginPrepared(const PluginPrepared&) = delete;
  PluginPrepared& operator=(const PluginPrepared&) = delete;
  ~PluginPrepared() override {
    if (prepared_ != nullptr) Calls::contain([&] { kernel_.destroy_prepared(prepared_); });
  }

  void prepare(const Options& options, StageTimer& stages) {
    // Converting types is not timed: a user of the kernel has A in these types.
    arrays_.emplace(kernel_, a_);
    if (wants_a_on_device(kernel_)) {
      const auto timed = stages.scope("upload");
      arrays_->upload(device_);
    }
    const ProblemOfC problem(*arrays_, options, a_.precision);
    {
      const Stages timed(stages);
      spmmbench_prepared* prepared = nullptr;
      calls_("prepare",
             [&] { return kernel_.prepare(&kernel_, problem.c(), timed.c(), &prepared); });
      prepared_ = prepared;
      timed.check();
    }
    if (prepared_ == nullptr) throw Error("prepare: gave no prepared A");
    if ((kernel_.flags & SPMMBENCH_KEEPS_A) == 0) arrays_.reset();
  }

  std::unique_ptr<Plan> bind(const Shape& shape, StageTimer& stages) override {
    spmmbench_shape c_shape = shape_of_c(shape);
    std::optional<Scratch> scratch;  // its memory is not timed
    if (tunes_) scratch.emplace(a_, shape, form_.c_row_multiple, device_);
    if (scratch) scratch->offer(c_shape, device_.stream());
    const Stages timed(stages);
    spmmbench_plan* plan = nullptr;
    calls_("bind", [&] { return kernel_.bind(prepared_, &c_shape, timed.c(), &plan); });
    if (plan == nullptr) throw Error("bind: gave no plan");
    const std::size_t kept = kept_bytes(kernel_, a_);
    std::unique_ptr<Plan> out;
    if (launch_scaled_ == nullptr)
      out =
          std::make_unique<PluginPlan>(calls_, kernel_, settle_, plan, form_.packed, kept, device_);
    else
      out = std::make_unique<ScalingPluginPlan>(launch_scaled_, calls_, kernel_, settle_, plan,
                                                form_.packed, kept, device_);
    timed.check();
    return out;
  }

  // The library gets them in the type and the memory that it prepared from.
  void take_values(Stream stream) override {
    const ElementType type = value_type_of(kernel_, a_);
    const bool on_device = wants_a_on_device(kernel_);
    std::vector<unsigned char> on_host;
    Buffer copy;
    const void* values = nullptr;
    if (on_device && a_.on_device != nullptr && a_.on_device->value_type == type) {
      values = a_.on_device->values;
    } else {
      on_host = values_on_host(type);
      if (on_device) copy = device_.upload(on_host);
      values = on_device ? copy.data() : on_host.data();
    }
    calls_("replace_values", [&] {
      return replace_values_(prepared_, values, static_cast<std::int32_t>(type),
                             on_device ? SPMMBENCH_CUDA : SPMMBENCH_HOST, stream.handle);
    });
    if (copy.data() != nullptr) device_.synchronize();
  }

 private:
  using ReplaceValues = decltype(spmmbench_kernel::replace_values);

  // From where they have changed, in that type.
  std::vector<unsigned char> values_on_host(ElementType type) const {
    const auto count = static_cast<std::size_t>(a_.nnz());
    std::vector<unsigned char> from;
    ElementType given = ElementType::f32;
    const void* data = nullptr;
    if (kernel_.device == SPMMBENCH_CUDA && a_.on_device != nullptr) {
      given = a_.on_device->value_type;
      from.resize(count * bytes_of(given));
      device_.download(from.data(), a_.on_device->values, from.size());
      data = from.data();
    } else {
      given = type == ElementType::f64 ? type : ElementType::f32;
      data = type == ElementType::f64 ? static_cast<const void*>(a_.a->values64.data())
                                      : a_.a->values.data();
    }
    std::vector<unsigned char> to(count * bytes_of(type));
    for (std::size_t i = 0; i < count; ++i) {
      const auto at = static_cast<std::int64_t>(i);
      store_element(type, to.data(), at, load_element(given, data, at));
    }
    return to;
  }

  Calls calls_;
  const spmmbench_kernel& kernel_;
  PluginPlan::Settle settle_;
  ScalingPluginPlan::LaunchScaled launch_scaled_;
  ReplaceValues replace_values_;
  OperandForm form_;
  bool tunes_;
  SparseOperand a_;
  Device& device_;
  std::optional<OperandArrays> arrays_;
  spmmbench_prepared* prepared_ = nullptr;
};

}  // namespace

PluginKernel::PluginKernel(std::string path, const spmmbench_library& library,
                           const spmmbench_kernel& kernel, double load_ms)
    : path_(std::move(path)), library_(library), kernel_(kernel), load_ms_(load_ms) {
  const spmmbench_kernel described = described_by(library, kernel);
  check_description(described);
  info_.name = fmt::format("{}:{}", plugin_stem(path_), kernel.name);
  info_.summary = text(kernel.summary);
  info_.source = text(kernel.source);
  info_.device = static_cast<DeviceKind>(kernel.device);
  info_.min_compute_capability = kernel.min_compute_capability;
  info_.exact_architecture = kernel.exact_architecture != 0;
  info_.precisions = members(kernel.precisions, kPrecisions);
  info_.c_types = members(kernel.c_types, kElementTypes);
  info_.layouts = members(kernel.layouts, kLayouts);
  info_.accumulation = static_cast<Accumulation>(kernel.accumulation);
  info_.writes_row_ids = (kernel.flags & SPMMBENCH_ROW_IDS) != 0;
  info_.binary = (kernel.flags & SPMMBENCH_BINARY_A) != 0;
  info_.ignores_stream = (kernel.flags & SPMMBENCH_IGNORES_STREAM) != 0;
  info_.adds_to_c = (kernel.flags & SPMMBENCH_ADDS_TO_C) != 0;
  info_.inspects_b = kernel.inspect_b != nullptr;
  info_.takes_values = described.replace_values != nullptr;
  info_.a_memory = members(kernel.a_memory, kDeviceKinds);
  info_.flags = flags_of(described);
  info_.sizes = sizes_of(described);
  info_.form.packed = (described.flags & SPMMBENCH_PACKED_ROWS) != 0;
  info_.form.c_row_multiple = std::max<std::int64_t>(described.c_row_multiple, 1);
  tunes_ = (described.flags & SPMMBENCH_TUNES) != 0;
  for (std::size_t i = 0; i < described.option_count; ++i)
    info_.options.push_back(option_of(*described.options[i]));
  for (std::size_t i = 0; i < described.variant_count; ++i)
    info_.variants.push_back(variant_of(*described.variants[i]));
}

Support PluginKernel::supports(const Problem& problem, const DeviceInfo&) const {
  if (problem.nnz() > INT32_MAX && !has(kernel_.row_ptr_types, SPMMBENCH_I64))
    return Support::no("has 32-bit offsets: needs fewer than 2^31 nonzeros");
  const std::size_t kept = kept_bytes(kernel_, problem);
  if (kernel_.supports == nullptr) return Support::yes(kept);
  const OperandArrays arrays(kernel_, problem);
  const ProblemOfC c_problem(arrays, problem.options, problem.precision);
  const spmmbench_shape shape = shape_of_c(problem);
  std::uint64_t bytes = 0;
  try {
    Calls{library_}("supports",
                    [&] { return kernel_.supports(&kernel_, c_problem.c(), &shape, &bytes); });
  } catch (const Unsupported& refusal) {
    return Support::no(refusal.what());
  }
  return Support::yes(kept + std::min<std::uint64_t>(bytes, INT64_MAX));
}

std::unique_ptr<Prepared> PluginKernel::prepare(const SparseOperand& a, const Options& options,
                                                Device& device, StageTimer& stages) const {
  // Loading code and libraries takes less; a library that prepares meanwhile may take more.
  constexpr double kLongLoadMs = 20;
  if (load_ms_ > kLongLoadMs) stages.add("library", load_ms_);
  auto out = std::make_unique<PluginPrepared>(library_, kernel_, info_.form, tunes_, a, device);
  out->prepare(options, stages);
  return out;
}

}  // namespace spmmbench
