#include "plugin/plugin_check.hpp"

#include <fmt/format.h>
#include <malloc.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <memory>
#include <numeric>
#include <utility>

#include "core/contains.hpp"
#include "spmmbench/error.hpp"
#include "spmmbench/random.hpp"
#include "spmmbench/scalars.hpp"

namespace spmmbench {
namespace {

constexpr std::size_t kMostFailures = 10;
constexpr std::size_t kGuardBytes = 4096;  // before and behind B and C
constexpr unsigned char kGuard = 0xA5, kNan = 0xFF;
constexpr std::int64_t kRows = 37, kCols = 29;  // odd, and more than the rows of common tiles
constexpr std::int64_t kColumnsOfB[] = {1, 7, 8, 16, 33, 64, 128};
constexpr std::int64_t kGapBytes = 64;

struct Sample {
  std::string name;
  CsrMatrix a;
  std::vector<std::int32_t> row_ids = {};
};

// On the heap, and in pages of their own.
std::size_t allocated_bytes() {
  const struct mallinfo2 now = mallinfo2();
  return now.uordblks + now.hblkhd;
}

std::int64_t rounded_up(std::int64_t size, std::int64_t multiple) {
  return (size + multiple - 1) / multiple * multiple;
}

// `has(i, j)`: whether there is an entry. Values are 1 and 2, or 1 alone.
template <class Has>
CsrMatrix matrix_of(std::int64_t rows, std::int64_t cols, bool ones, const Has& has) {
  CsrMatrix a;
  a.rows = rows;
  a.cols = cols;
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < cols; ++j) {
      if (!has(i, j)) continue;
      a.col_idx.push_back(static_cast<std::int32_t>(j));
      a.values.push_back(ones || (i + j) % 2 == 0 ? 1.0F : 2.0F);
    }
    a.row_ptr.push_back(static_cast<std::int64_t>(a.col_idx.size()));
  }
  a.values64.assign(a.values.begin(), a.values.end());  // for fp64
  return a;
}

std::vector<Sample> samples_for(const KernelInfo& info) {
  const SizeLimits& sizes = info.sizes;
  std::int64_t rows = rounded_up(kRows, sizes.m_multiple);
  std::int64_t cols = rounded_up(kCols, sizes.k_multiple);
  if (sizes.square) rows = cols = rounded_up(kRows, std::lcm(sizes.m_multiple, sizes.k_multiple));
  const auto scattered = [](std::int64_t i, std::int64_t j) { return (i * 7 + j * 5) % 4 == 0; };
  const auto make = [&](const auto& has) { return matrix_of(rows, cols, info.binary, has); };
  std::vector<Sample> samples = {
      {"scattered", make(scattered)},
      {"empty rows", make([&](auto i, auto j) { return i % 3 == 1 && scattered(i, j); })},
      {"one long row", make([](auto i, auto j) { return i == 5 || (i == 0 && j == 0); })},
      {"no entry", make([](auto, auto) { return false; })}};
  if (info.writes_row_ids) {
    Sample backwards{"rows numbered backwards", samples[0].a};
    for (std::int64_t i = 0; i < rows; ++i)
      backwards.row_ids.push_back(static_cast<std::int32_t>(rows - 1 - i));
    samples.push_back(std::move(backwards));
  }
  return samples;
}

// Entries around the diagonal of a square matrix.
CsrMatrix band_matrix(std::int64_t rows, bool ones) {
  constexpr std::int64_t kAhead = 8;
  CsrMatrix a;
  a.rows = a.cols = rows;
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = std::max<std::int64_t>(i - kAhead, 0); j < std::min(i + kAhead, rows);
         ++j) {
      a.col_idx.push_back(static_cast<std::int32_t>(j));
      a.values.push_back(ones || (i + j) % 2 == 0 ? 1.0F : 2.0F);
    }
    a.row_ptr.push_back(static_cast<std::int64_t>(a.col_idx.size()));
  }
  a.values64.assign(a.values.begin(), a.values.end());  // for fp64
  return a;
}

// The scales in fp8 are powers of two, so that products stay exact.
constexpr float kScaleOfA = 2, kScaleOfB = 4;

float value_of_b(std::int64_t i, std::int64_t j, int which) {
  return static_cast<float>((i * 3 + j * 2 + which) % 3 - 1);
}

// The value of an element of C before launch_scaled.
float value_of_old_c(std::int64_t i, std::int64_t j) {
  return static_cast<float>((i + j * 2) % 5 - 2);
}

// A number of fp32, after it was stored.
float stored(ElementType type, double value) {
  double memory = 0;
  store_element(type, &memory, 0, value);
  return static_cast<float>(load_element(type, &memory, 0));
}

// A dense matrix in the memory of the device, between guards.
class Guarded {
 public:
  // `tail_lines` behind the last belong to it.
  Guarded(DenseView view, std::int64_t tail_lines, Device& device)
      : view_(view),
        bytes_(static_cast<std::size_t>((view.lines() + tail_lines) * view.ld) *
               bytes_of(view.type)),
        image_(bytes_ + 2 * kGuardBytes, kGuard),
        device_(device),
        memory_(device.allocate(image_.size())) {
    view_.data = memory_.as<unsigned char>() + kGuardBytes;
  }

  const DenseView& view() const { return view_; }

  // Sets all elements; what lies behind lines becomes NaN.
  template <class Value>
  void fill(const Value& value) {
    std::fill_n(image_.begin() + kGuardBytes, bytes_, kNan);
    for (std::int64_t i = 0; i < view_.rows; ++i)
      for (std::int64_t j = 0; j < view_.cols; ++j)
        store_element(view_.type, image_.data() + kGuardBytes, at(i, j), value(i, j));
    upload();
  }
  void fill_with_nan() {
    std::fill_n(image_.begin() + kGuardBytes, bytes_, kNan);
    upload();
  }

  // What the device has of it.
  void download() {
    now_.resize(image_.size());
    device_.download(now_.data(), memory_.data(), now_.size());
  }
  float now(std::int64_t i, std::int64_t j) const {
    return load_element(view_.type, now_.data() + kGuardBytes, at(i, j));
  }
  bool unchanged() const { return now_ == image_; }
  bool guards_unchanged() const {
    const auto same = [this](std::size_t from) {
      return std::memcmp(now_.data() + from, image_.data() + from, kGuardBytes) == 0;
    };
    return same(0) && same(kGuardBytes + bytes_);
  }

 private:
  std::int64_t at(std::int64_t i, std::int64_t j) const {
    return view_.layout == Layout::row_major ? i * view_.ld + j : j * view_.ld + i;
  }
  void upload() { device_.upload(memory_.data(), image_.data(), image_.size()); }

  DenseView view_;
  std::size_t bytes_;  // without the guards
  std::vector<unsigned char> image_, now_;
  Device& device_;
  Buffer memory_;
};

class Checker {
 public:
  // Counts in `out`.
  Checker(const Kernel& kernel, Options options, Device& device, Checked checked, PluginCheck& out)
      : kernel_(kernel),
        options_(std::move(options)),
        info_(info_with(kernel.info(), options_)),
        device_(device),
        checked_(checked),
        out_(out) {}

  void run() {
    for (const Precision precision : info_.precisions)
      for (const Sample& sample : samples_for(info_)) check_sample(sample, precision);
    if (checked_ == Checked::products)
      tally(label() + "device_bytes", [&] { return check_device_bytes(); });
  }

 private:
  std::string label() const {
    std::string text;
    for (const auto& [option, value] : options_.values())
      text += fmt::format("{}={}, ", option, value);
    return text;
  }

  void check_sample(const Sample& sample, Precision precision) {
    CsrMatrix csr = sample.a;
    if (is_scaled(precision)) csr.scale = kScaleOfA;
    SparseOperand a{.a = &csr, .row_ids = sample.row_ids, .precision = precision};
    const std::unique_ptr<RowOrders> orders = make_row_orders(csr, Spec{"none", {}});
    a.orders = orders.get();
    const auto where = [&](const std::string& shape) {
      return fmt::format("{}{}, A {} x {} ({}){}", label(), to_string(precision), sample.a.rows,
                         sample.a.cols, sample.name, shape);
    };
    std::unique_ptr<Prepared> prepared;
    const auto prepare = [&] {
      const Support support = check_operand(kernel_, a, options_, device_.info());
      if (!support.ok) throw Unsupported(support.reason);
      StageTimer stages;
      prepared = kernel_.prepare(a, options_, device_, stages);
    };
    for (const Layout layout : info_.layouts)
      for (const ElementType c_type : written_types(info_))
        for (const std::int64_t n : kColumnsOfB) {
          if (!writes(info_, precision, c_type)) continue;
          const Shape shape{.n = n, .c_type = c_type, .layout = layout};
          const std::string text =
              where(fmt::format(", N = {}, {}-major, C in {}", n,
                                layout == Layout::row_major ? "row" : "column", to_string(c_type)));
          for (const bool gap : {false, true}) {
            if (gap && info_.form.packed) continue;
            tally(text + (gap ? ", a gap behind lines" : ""), [&] {
              require_support(a, shape);
              if (!prepared) prepare();
              return check_shape(*prepared, a, shape, gap);
            });
          }
        }
    if (!prepared) return;
    tally(where(", two plans at a time"), [&] { return check_two_plans(*prepared, a); });
    if (info_.takes_values && !info_.inspects_b && !info_.binary)
      tally(where(", other values of A"), [&] { return check_other_values(*prepared, a, csr); });
    prepared.reset();
    if (device_.info().kind == DeviceKind::host || checked_ == Checked::host_code)
      tally(where(", prepared and freed many times"), [&] { return check_frees(a); });
  }

  // Counts a case, which returns what is wrong or nothing.
  template <class Case>
  void tally(const std::string& text, const Case& one) {
    if (out_.failures.size() == kMostFailures) return;
    std::string fault;
    try {
      fault = one();
    } catch (const Unsupported& refusal) {
      ++out_.skipped;
      out_.reason = refusal.what();
      return;
    } catch (const std::exception& error) {
      fault = error.what();
    }
    if (fault.empty()) ++out_.passed;
    else out_.failures.push_back(fmt::format("{}: {}", text, fault));
  }

  void require_support(const SparseOperand& a, const Shape& shape) const {
    const Support support = check_support(kernel_, Problem{a, shape, options_}, device_.info());
    if (!support.ok) throw Unsupported(support.reason);
  }

  // B and C of a plan, and the plan.
  struct Bound {
    Guarded b, c;
    std::unique_ptr<Plan> plan;
  };

  // B and C without memory. Sets the ld of the shape.
  std::pair<DenseView, DenseView> views_of(const SparseOperand& a, Shape& shape, bool gap) const {
    const auto placed = [&](DenseView view) {
      if (info_.form.packed) view.ld = view.line_length();
      if (gap) view.ld += kGapBytes / static_cast<std::int64_t>(bytes_of(view.type));
      return view;
    };
    DenseView b = placed(make_b_view(a.k(), shape.n, shape.layout, storage_type(a.precision)));
    if (is_scaled(a.precision)) b.scale = kScaleOfB;
    const DenseView c = placed(make_dense_view(a.m(), shape.n, shape.layout, shape.c_type));
    shape.ld_b = b.ld;
    shape.ld_c = c.ld;
    return {b, c};
  }

  // Without a plan.
  Bound place(const SparseOperand& a, Shape& shape, bool gap) const {
    const auto [b, c] = views_of(a, shape, gap);
    const std::int64_t tail_lines = rounded_up(a.m(), info_.form.c_row_multiple) - a.m();
    return {{b, 0, device_}, {c, tail_lines, device_}, nullptr};
  }

  Bound bind(Prepared& prepared, const SparseOperand& a, Shape shape, bool gap) const {
    Bound bound = place(a, shape, gap);
    StageTimer stages;
    bound.plan = prepared.bind(shape, stages);
    return bound;
  }

  // Launches with the B called `which`; what is wrong with the outcome.
  std::string launch(Bound& bound, const SparseOperand& a, int which, bool is_first) const {
    const auto b = [which](std::int64_t i, std::int64_t j) { return value_of_b(i, j, which); };
    bound.b.fill(b);
    bound.c.fill_with_nan();
    StageTimer stages;
    if (is_first) bound.plan->inspect_b(bound.b.view(), stages);
    device_.synchronize();
    bound.plan->launch(bound.b.view(), bound.c.view(), device_.stream());
    if (std::string fault = fault_in(bound, a, b, {}); !fault.empty()) return fault;
    auto* const scaling = dynamic_cast<ScalingPlan*>(bound.plan.get());
    if (scaling == nullptr) return {};
    constexpr Scalars kScalars{2, -0.5};
    bound.c.fill(value_of_old_c);
    device_.synchronize();
    scaling->launch_scaled(bound.b.view(), bound.c.view(), kScalars, device_.stream());
    const std::string fault = fault_in(bound, a, b, kScalars);
    return fault.empty() ? "" : "launch_scaled: " + fault;
  }

  // What is wrong with what a launch has left.
  template <class ValueOfB>
  std::string fault_in(Bound& bound, const SparseOperand& a, const ValueOfB& b,
                       const Scalars& scalars) const {
    const CsrMatrix& csr = *a.a;
    const DenseView& c = bound.c.view();
    device_.wait_idle();
    bound.b.download();
    bound.c.download();
    const std::int64_t computed = checked_ == Checked::products ? csr.rows : 0;
    for (std::int64_t row = 0; row < computed; ++row) {
      const std::int64_t i = a.row_ids.empty() ? row : a.row_ids[row];
      for (std::int64_t j = 0; j < c.cols; ++j) {
        float sum = 0;
        for (std::int64_t e = csr.row_ptr[row]; e < csr.row_ptr[row + 1]; ++e)
          sum += csr.values[e] * b(csr.col_idx[e], j);
        sum *= csr.scale * bound.b.view().scale;
        if (!scalars.plain())
          sum = stored(c.type, scalars.alpha * sum + scalars.beta * value_of_old_c(i, j));
        if (const float got = bound.c.now(i, j); !(got == sum))
          return fmt::format("C({}, {}) is {:g}, expected {:g}", i, j, got, sum);
      }
    }
    if (!bound.c.guards_unchanged()) return "wrote outside of C";
    return bound.b.unchanged() ? "" : "wrote to B";
  }

  std::string check_shape(Prepared& prepared, const SparseOperand& a, const Shape& shape,
                          bool gap) const {
    Bound bound = bind(prepared, a, shape, gap);
    if (std::string fault = launch(bound, a, 0, true); !fault.empty()) return fault;
    if (info_.inspects_b) return {};  // for the B that it has seen
    const std::string fault = launch(bound, a, 1, false);
    return fault.empty() ? "" : "second launch, with another B: " + fault;
  }

  // A shape for each N to try that the kernel takes.
  std::vector<Shape> shapes_of(const SparseOperand& a) const {
    Shape shape{.c_type = type_of_c(a.precision, info_.c_types.front()),
                .layout = info_.layouts.front()};
    std::vector<Shape> taken;
    for (const std::int64_t n : kColumnsOfB) {
      shape.n = n;
      if (check_support(kernel_, Problem{a, shape, options_}, device_.info()).ok)
        taken.push_back(shape);
    }
    return taken;
  }

  // Changes the values of `csr`, which are those of A.
  std::string check_other_values(Prepared& prepared, const SparseOperand& a, CsrMatrix& csr) const {
    const std::vector<Shape> shapes = shapes_of(a);
    if (shapes.empty()) return {};
    Bound bound = bind(prepared, a, shapes.back(), false);
    if (std::string fault = launch(bound, a, 0, true); !fault.empty()) return fault;
    for (float& value : csr.values) value = 3 - value;  // 1 and 2
    csr.values64.assign(csr.values.begin(), csr.values.end());
    prepared.take_values(device_.stream());
    const std::string fault = launch(bound, a, 1, false);
    return fault.empty() ? "" : "after replace_values: " + fault;
  }

  std::string check_two_plans(Prepared& prepared, const SparseOperand& a) const {
    const std::vector<Shape> taken = shapes_of(a);
    if (taken.empty()) return {};
    const Shape& shape = taken.front();
    auto first = std::make_unique<Bound>(bind(prepared, a, shape, false));
    auto again = std::make_unique<Bound>(bind(prepared, a, shape, false));
    Bound other = bind(prepared, a, taken.back(), false);
    for (Bound* const bound : {first.get(), &other, again.get()})
      if (std::string fault = launch(*bound, a, 0, true); !fault.empty()) return fault;
    first.reset();
    if (info_.inspects_b) return {};
    const std::string fault = launch(*again, a, 1, false);
    return fault.empty() ? "" : "after the other plan was destroyed: " + fault;
  }

  std::string check_frees(const SparseOperand& a) const {
    // The allocator keeps what is freed first, so that some stretches may seem to hold more.
    constexpr int kWarmUp = 4, kTimes = 16, kStretches = 4;
    constexpr std::size_t kLeast = 16;  // bytes of what is allocated once in every preparation
    std::vector<std::size_t> held;      // as each stretch begins
    for (int i = 0; i < kWarmUp + kStretches * kTimes; ++i) {
      if (i >= kWarmUp && (i - kWarmUp) % kTimes == 0) held.push_back(allocated_bytes());
      StageTimer stages;
      const std::unique_ptr<Prepared> prepared = kernel_.prepare(a, options_, device_, stages);
      Shape shape{.c_type = type_of_c(a.precision, info_.c_types.front()),
                  .layout = info_.layouts.front()};
      for (const std::int64_t n : kColumnsOfB) {
        shape.n = n;
        (void)views_of(a, shape, false);
        if (check_support(kernel_, Problem{a, shape, options_}, device_.info()).ok)
          (void)prepared->bind(shape, stages);
      }
    }
    held.push_back(allocated_bytes());
    for (int i = 0; i < kStretches; ++i)
      if (held[i + 1] < held[i] + kTimes * kLeast) return {};
    return fmt::format(
        "holds {} bytes more after each: what does not destroy_plan or "
        "destroy_prepared free?",
        (held.back() - held.front()) / (kStretches * kTimes));
  }

  // Memory in use, of which differences tell something.
  std::size_t held() const {
    if (device_.info().kind == DeviceKind::cuda) return SIZE_MAX - device_.free_bytes();
    return allocated_bytes();
  }

  // The reported bytes against what an A that is large takes.
  std::string check_device_bytes() const {
    const bool on_gpu = device_.info().kind == DeviceKind::cuda;
    // What allocations are rounded up to, and what else a process takes meanwhile: a choice.
    const std::size_t slack = std::size_t{16} << (on_gpu ? 20 : 10);
    const std::int64_t rows = rounded_up(std::int64_t{1} << (on_gpu ? 20 : 12),
                                         std::lcm(info_.sizes.m_multiple, info_.sizes.k_multiple));
    const CsrMatrix csr = band_matrix(rows, info_.binary);
    const std::unique_ptr<RowOrders> orders = make_row_orders(csr, Spec{"none", {}});
    const SparseOperand a{.a = &csr, .precision = info_.precisions.front(), .orders = orders.get()};
    Shape shape{.c_type = type_of_c(a.precision, info_.c_types.front()),
                .layout = info_.layouts.front()};
    const auto is_taken = [&](std::int64_t n) {
      shape.n = n;
      return check_support(kernel_, Problem{a, shape, options_}, device_.info()).ok;
    };
    if (std::none_of(std::begin(kColumnsOfB), std::end(kColumnsOfB), is_taken)) return {};
    std::unique_ptr<Prepared> prepared;  // outlives the plan
    Bound bound = place(a, shape, false);
    const std::size_t before = held();
    StageTimer stages;
    prepared = kernel_.prepare(a, options_, device_, stages);
    bound.plan = prepared->bind(shape, stages);
    const std::size_t now = held(), reported = bound.plan->report().device_bytes;
    const std::size_t taken = now > before ? now - before : 0;
    // A that the program keeps for a kernel counts there too, and 0 is unknown.
    const bool is_all = reported > 0 && !contains(info_.flags, std::string("keeps_a"));
    if (reported <= taken + taken / 8 + slack &&
        (!is_all || taken <= reported + reported / 8 + slack))
      return {};
    return fmt::format("the report says that {} bytes are held, and {} are", reported, taken);
  }

  const Kernel& kernel_;
  Options options_;
  KernelInfo info_;  // with these options
  Device& device_;
  Checked checked_;
  PluginCheck& out_;
};

}  // namespace

PluginCheck check_plugin_kernel(const Kernel& kernel, Device& device, Checked checked) {
  PluginCheck out;
  Checker(kernel, {}, device, checked, out).run();
  for (const Variant& variant : kernel.info().variants) {
    Options options;
    options.set(variant.option, variant.value);
    Checker(kernel, options, device, checked, out).run();
  }
  return out;
}

}  // namespace spmmbench
