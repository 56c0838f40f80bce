// Every kernel of the registry x every precision, layout and C type it declares, over every shape
// and several N, against the fp64 reference. A new kernel is tested with no edit here.

#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <limits>
#include <map>
#include <numeric>
#include <vector>

#include "../option_values.hpp"
#include "core/block_scales.hpp"
#include "counting_device.hpp"
#include "devices.hpp"
#include "kernel_cases.hpp"
#include "shapes.hpp"
#include "spmmbench/random.hpp"
#include "spmmbench/registry.hpp"
#include "verify/bound.hpp"
#include "verify/reference.hpp"

namespace spmmbench::test {
namespace {

// An optional library that is not installed, or one that is too old.
bool lacks_library(const std::string& reason) {
  return (reason.starts_with("cuSPARSELt") && reason.find("not found") != std::string::npos) ||
         reason.starts_with("needs cuSPARSE");
}

// Nothing but the device, a library, a 16-bit C of another type than the inputs, options that not
// every precision has, a layout that a precision cannot have, or another than the kernel's first
// excuses one that runs no shape at all of what it declares; options and the last are asked over
// all precisions below.
bool may_refuse_everything(const Case& c, const std::string& reason) {
  return reason.starts_with("needs compute capability") || lacks_library(reason) ||
         reason.ends_with("needs column-major B and C") || !c.options.values().empty() ||
         c.layout != c.kernel->info().layouts.front() ||
         (c.c_type != ElementType::f32 && c.c_type != storage_type(c.precision));
}

// A dense matrix between two red zones that no kernel may touch.
class GuardedMatrix {
 public:
  GuardedMatrix(Device& device, DenseView shape)
      : device_(device),
        view_(shape),
        bytes_((shape.bytes() + kAlign - 1) / kAlign * kAlign),
        buffer_(device.allocate(bytes_ + 2 * kZone)) {
    device_.fill_bytes(buffer_.data(), kGuard, buffer_.bytes());
    view_.data = buffer_.as<unsigned char>() + kZone;
  }

  const DenseView& view() const { return view_; }
  void poison() { device_.fill_bytes(view_.data, 0xFF, used_bytes()); }  // NaN in every type

  bool zones_intact() {
    return is_guard(0, kZone) && is_guard(kZone + used_bytes(), buffer_.bytes());
  }

 private:
  static constexpr std::size_t kAlign = 256;
  static constexpr std::size_t kZone = 4096;
  static constexpr unsigned char kGuard = 0xA5;

  // Lines have padding that a kernel may write, but a single column has none.
  std::size_t used_bytes() const {
    const bool is_column = view_.layout == Layout::col_major && view_.cols == 1;
    return is_column ? view_.rows * bytes_of(view_.type) : view_.bytes();
  }
  bool is_guard(std::size_t begin, std::size_t end) {
    std::vector<unsigned char> host(end - begin);
    device_.download(host.data(), buffer_.as<unsigned char>() + begin, host.size());
    return std::all_of(host.begin(), host.end(), [](unsigned char byte) { return byte == kGuard; });
  }

  Device& device_;
  DenseView view_;
  std::size_t bytes_;
  Buffer buffer_;
};

// Values, and NaN between the lines: no kernel may use what is there.
void fill_b(Device& device, const DenseView& b, Precision precision) {
  device.fill_bytes(b.data, 0xFF, b.bytes());
  device.fill_uniform(b, stream_seed(1, kStreamB), precision);
}

// With values that the precision has; in fp64 fp32 does not have them.
CsrMatrix rounded(CsrMatrix a, const Case& c) {
  const bool binary = c.kernel->info().binary;
  for (float& value : a.values) value = binary ? 1.0F : round_to(c.precision, value);
  if (has_block_scales(c.precision)) {
    a.block_scales = exact_block_scales(scales_of_a(a.rows, a.cols), 5);
    for (float& scale : a.block_scales) scale *= 0.3F;
  } else if (is_scaled(c.precision)) {
    a.scale = 0.3F;
  }
  if (c.precision == Precision::fp64)
    for (const float value : a.values) a.values64.push_back(binary ? 1 : value * (1 + 0x1p-30));
  return a;
}

// Of B: one, or those of its blocks, which the result holds.
Buffer set_scales(Device& device, DenseView& b, Precision precision) {
  if (!has_block_scales(precision)) {
    b.scale = scale_of(precision, 1);
    return {};
  }
  Buffer scales = device.upload(drawn_block_scales(b.rows, b.cols, 6, precision));
  b.block_scales = scales.as<float>();
  return scales;
}

// Made once for each number of rows.
const std::vector<std::int32_t>& random_permutation(std::int64_t rows) {
  static std::map<std::int64_t, std::vector<std::int32_t>> all;
  const auto [at, is_new] = all.try_emplace(rows, rows);
  std::vector<std::int32_t>& ids = at->second;
  if (!is_new) return ids;
  std::iota(ids.begin(), ids.end(), 0);
  std::sort(ids.begin(), ids.end(), [](std::int32_t a, std::int32_t b) {
    return hash_position(7, a, 0) < hash_position(7, b, 0);
  });
  return ids;
}

// A CPU kernel cuts its work in the same way for every type and layout, so one case of each tries
// the large matrices, with two N, and all N, on which the host spends most of its time.
bool tries_all(const Case& c) {
  const KernelInfo& info = c.kernel->info();
  return info.device == DeviceKind::cuda ||
         (c.precision == info.precisions.front() && c.layout == info.layouts.front() &&
          c.c_type == info.c_types.front());
}

constexpr std::int64_t kManyForTheHost = 20'000;

std::int64_t most_nonzeros(const Case& c) {
  return tries_all(c) ? std::numeric_limits<std::int64_t>::max() : kManyForTheHost;
}

std::vector<std::int64_t> widths(const Case& c, std::int64_t nnz) {
  const bool on_host = c.kernel->info().device == DeviceKind::host;
  if (on_host && nnz > kManyForTheHost) return {1, 33};
  if (tries_all(c)) return {1, 7, 8, 15, 31, 33, 64, 128, 200};
  return {1, 8, 15, 33, 128};
}

class KernelTest : public testing::TestWithParam<Case> {
 protected:
  // False when the kernel refuses the problem. `copy`: as of make_reference.
  bool verify(Device& device, const CsrMatrix& a, std::span<const std::int32_t> row_ids,
              std::int64_t n, std::shared_ptr<void>* copy = nullptr) {
    try {
      return launch_twice(device, a, row_ids, n, copy);
    } catch (const DeviceError& error) {
      mark_device_lost(error);
      ADD_FAILURE() << error.what();
      return true;
    }
  }

  // What is held once A is prepared and bound, and the most on the way, against the prediction.
  void compare_memory(Device& real, const CsrMatrix& a, std::int64_t n) {
    constexpr std::size_t kSlack = 64 << 10;  // rounding of small allocations
    const Case& param = GetParam();
    const auto orders = make_row_orders(a, {"none", {}});
    const SparseOperand operand{&a, {}, param.precision, orders.get()};
    const Shape shape{n, param.c_type, param.layout};
    const Problem problem{operand, shape, param.options};
    const Support support = check_support(*param.kernel, problem, real.info());
    if (!support.ok) return;
    DenseView b = make_dense_view(a.cols, n, param.layout, storage_type(param.precision));
    const Buffer b_memory = real.allocate(b.bytes());
    b.data = b_memory.data();
    real.fill_uniform(b, 1, param.precision);
    CountingDevice device(real);
    StageTimer stages;
    const auto prepared = param.kernel->prepare(operand, param.options, device, stages);
    const std::unique_ptr<Plan> plan = prepared->bind(shape, stages);
    plan->inspect_b(b, stages);
    std::cout << "  " << a.nnz() << " nonzeros: predicted " << support.device_bytes << ", held "
              << device.held() << ", reported " << plan->report().device_bytes << ", peak "
              << device.peak() << "\n";
    const std::size_t limit = support.device_bytes + support.device_bytes / 4 + kSlack;
    EXPECT_LE(device.held(), limit);
    // Trials of auto that need more are left out where the memory lacks.
    if (param.kernel->info().name != "auto") {
      EXPECT_LE(device.peak(), limit);
    }
    EXPECT_LE(plan->report().device_bytes, device.held() + kSlack);
  }

  // Plans for several N, all bound before the first of them is launched. Each is launched with
  // lines of B and C that follow each other and with lines that lie farther apart. A plan inspects
  // the first B; the second has no zeros either.
  void launch_side_by_side(Device& device, const CsrMatrix& a,
                           const std::vector<std::int64_t>& widths) {
    const Case& param = GetParam();
    const auto orders = make_row_orders(a, {"none", {}});
    const SparseOperand operand{&a, {}, param.precision, orders.get()};
    const auto shape_of = [&](std::int64_t n) { return Shape{n, param.c_type, param.layout}; };
    StageTimer stages;
    std::unique_ptr<Prepared> prepared;
    std::vector<std::pair<std::int64_t, std::unique_ptr<Plan>>> plans;
    for (const std::int64_t n : widths) {
      const Problem problem{operand, shape_of(n), param.options};
      if (!check_support(*param.kernel, problem, device.info()).ok) continue;
      if (!prepared) prepared = param.kernel->prepare(operand, param.options, device, stages);
      plans.emplace_back(n, prepared->bind(shape_of(n), stages));
    }
    for (const auto& [n, plan] : plans) {
      for (const int space : {0, 64}) {  // elements between lines
        SCOPED_TRACE("N = " + std::to_string(n) + ", " + std::to_string(space) + " between lines");
        launch_spaced(device, a, n, *plan, space, stages);
      }
    }
  }

  std::string refusal_;

 private:
  void launch_spaced(Device& device, const CsrMatrix& a, std::int64_t n, Plan& plan, int space,
                     StageTimer& stages) {
    const Case& param = GetParam();
    const KernelInfo info = info_with(param.kernel->info(), param.options);
    DenseView b = make_b_view(a.cols, n, param.layout, storage_type(param.precision));
    b.ld += space;
    const Buffer scales = set_scales(device, b, param.precision);
    const Buffer b_memory = device.allocate(b.bytes());
    b.data = b_memory.data();
    fill_b(device, b, param.precision);
    DenseView c_shape = make_dense_view(a.rows, n, param.layout, param.c_type);
    c_shape.ld += space;
    GuardedMatrix c(device, c_shape);
    c.poison();
    if (space == 0) plan.inspect_b(b, stages);
    plan.launch(b, c.view(), device.stream());
    device.synchronize();
    EXPECT_TRUE(make_reference(a, {}, b, device)
                    ->check(c.view(), error_bound(info, param.precision, param.c_type))
                    .ok);
  }

  // Each launch goes into a poisoned C.
  bool launch_twice(Device& device, const CsrMatrix& a, std::span<const std::int32_t> row_ids,
                    std::int64_t n, std::shared_ptr<void>* copy) {
    const Case& param = GetParam();
    const KernelInfo info = info_with(param.kernel->info(), param.options);
    const auto orders = make_row_orders(a, {"none", {}});
    const SparseOperand operand{&a, row_ids, param.precision, orders.get()};
    const Shape shape{n, param.c_type, param.layout};
    const Problem problem{operand, shape, param.options};
    const Support support = check_support(*param.kernel, problem, device.info());
    if (!support.ok) {
      if (!lacks_library(refusal_)) refusal_ = support.reason;
      return false;
    }
    // The narrowest pitch that kernels must take; vendors' get that of the program.
    const auto make_view = info.baseline ? make_b_view : make_dense_view;
    DenseView b = make_view(a.cols, n, param.layout, storage_type(param.precision));
    const Buffer scales = set_scales(device, b, param.precision);
    const Buffer b_memory = device.allocate(b.bytes());
    b.data = b_memory.data();
    fill_b(device, b, param.precision);
    GuardedMatrix c(device, make_dense_view(a.rows, n, param.layout, param.c_type));
    StageTimer stages;
    const auto prepared = param.kernel->prepare(operand, param.options, device, stages);
    const std::unique_ptr<Plan> plan = prepared->bind(shape, stages);
    plan->inspect_b(b, stages);
    const std::unique_ptr<ReferenceChecker> reference = make_reference(a, row_ids, b, device, copy);
    const ErrorBound bound = error_bound(info, param.precision, param.c_type);
    for (int launch = 1; launch <= 2; ++launch) {
      c.poison();
      plan->launch(b, c.view(), device.stream());
      device.synchronize();
      const Verdict verdict = reference->check(c.view(), bound);
      EXPECT_TRUE(verdict.ok) << "launch " << launch << ": error/bound " << verdict.error_over_bound
                              << " at (" << verdict.worst_row << ", " << verdict.worst_col
                              << "), Frobenius " << verdict.relative_frobenius;
      if (!verdict.ok) return true;
    }
    EXPECT_TRUE(c.zones_intact()) << "wrote outside C";
    return true;
  }
};

TEST_P(KernelTest, MatchesTheFp64ReferenceOnEveryShape) {
  const Case& param = GetParam();
  const KernelInfo& info = param.kernel->info();
  SPMMBENCH_TEST_DEVICE(device, info.device);
  int verified = 0;
  for (const NamedShape& shape : all_shapes()) {
    if (shape.matrix.nnz() > most_nonzeros(param)) continue;
    const CsrMatrix a = rounded(shape.matrix, param);
    const std::vector<std::int32_t>& row_ids = random_permutation(a.rows);
    std::shared_ptr<void> copy, copy_with_ids;  // of A for the references of all N
    for (const std::int64_t n : widths(param, a.nnz())) {
      SCOPED_TRACE(shape.name + ", N = " + std::to_string(n));
      verified += verify(device, a, {}, n, &copy);
      if (info.writes_row_ids) {
        SCOPED_TRACE("with row ids");
        verified += verify(device, a, row_ids, n, &copy_with_ids);
      }
      if (HasFailure()) return;  // the first failing shape says enough
    }
  }
  if (verified > 0) return;
  if (may_refuse_everything(param, refusal_)) GTEST_SKIP() << refusal_;
  FAIL() << "refuses every shape: " << refusal_;
}

// A limit that belongs to the kernel, such as that of its shared memory, must suit all plans.
TEST_P(KernelTest, RunsPlansForSeveralShapesThatExistAtTheSameTime) {
  const Case& param = GetParam();
  const KernelInfo& info = param.kernel->info();
  SPMMBENCH_TEST_DEVICE(device, info.device);
  for (const NamedShape& shape : all_shapes()) {
    if (shape.name != "dense" && shape.name != "two_of_four") continue;
    if (shape.matrix.nnz() > most_nonzeros(param)) continue;
    SCOPED_TRACE(shape.name);
    const CsrMatrix a = rounded(shape.matrix, param);
    try {
      launch_side_by_side(device, a, {128, 192, 100, 64, 8});
    } catch (const DeviceError& error) {
      mark_device_lost(error);
      ADD_FAILURE() << error.what();
    }
    if (HasFailure()) return;
  }
}

// Matrices large enough that rounding up to pages and blocks does not hide what a format takes.
// With default options: those that cut every window into single tiles (part=1, whole=1) take up to
// 8 times what supports() predicts.
TEST_P(KernelTest, HoldsAboutAsMuchMemoryAsItPredicts) {
  const Case& param = GetParam();
  if (!param.options.values().empty()) GTEST_SKIP() << "not with its default options";
  if (param.kernel->info().device == DeviceKind::host) GTEST_SKIP() << "uses A where it lies";
  SPMMBENCH_TEST_DEVICE(device, DeviceKind::cuda);
  for (const NamedShape& shape : all_shapes()) {
    if (shape.name != "power_law" && shape.name != "many_short_rows" && shape.name != "dense" &&
        shape.name != "two_of_four" && shape.name != "mostly_empty_rows")
      continue;
    SCOPED_TRACE(shape.name);
    const CsrMatrix a = rounded(shape.matrix, param);
    compare_memory(device, a, 128);
    if (HasFailure()) return;
  }
}

// One case for each value that a kernel's options are tried with: bounds, choices, examples.
std::vector<Case> option_cases() {
  std::vector<Case> cases;
  for (const Kernel* kernel : Registry<Kernel>::instance().sorted()) {
    const KernelInfo& info = kernel->info();
    for (const OptionSpec& option : info.options)
      for (const std::string& value : allowed_values(option))
        if (value != option.default_value) {
          cases.push_back({kernel, info.precisions.back(), info.layouts.front(),
                           type_of_c(info.precisions.back(), info.c_types.front())});
          cases.back().options.set(option.name, value);
        }
  }
  return cases;
}

class KernelOptionTest : public KernelTest {};

TEST_P(KernelOptionTest, IsRightOrRefusedAtEveryValueThatItDeclares) {
  const Case& param = GetParam();
  SPMMBENCH_TEST_DEVICE(device, param.kernel->info().device);
  int verified = 0;
  for (const NamedShape& shape : all_shapes()) {
    if (shape.name != "tail_rows" && shape.name != "aligned_blocks" &&
        shape.name != "long_row_among_short")
      continue;
    SCOPED_TRACE(shape.name);
    const CsrMatrix a = rounded(shape.matrix, param);
    // Some kernels take a vector, or few columns.
    verified += verify(device, a, {}, 72) || verify(device, a, {}, 1);
    if (HasFailure()) return;
  }
  if (verified == 0) GTEST_SKIP() << refusal_;
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(KernelOptionTest);
INSTANTIATE_TEST_SUITE_P(registry, KernelOptionTest, testing::ValuesIn(option_cases()),
                         [](const auto& info) { return name_of(info.param); });

TEST(Refusals, OfEveryShapeAreFailuresUnlessTheDeviceOrTheTypesAreTheReason) {
  KernelInfo info;
  info.layouts = {Layout::row_major, Layout::col_major};
  class Named final : public Kernel {
   public:
    explicit Named(const KernelInfo& info) : info_(info) {}
    const KernelInfo& info() const override { return info_; }
    Support supports(const Problem&, const DeviceInfo&) const override {
      return Support::no("not today");
    }
    std::unique_ptr<Prepared> prepare(const SparseOperand&, const Options&, Device&,
                                      StageTimer&) const override {
      return nullptr;
    }

   private:
    const KernelInfo& info_;
  } const kernel(info);
  const Case same{&kernel, Precision::fp16, Layout::row_major, ElementType::f16};
  EXPECT_FALSE(may_refuse_everything(same, "not today"));
  EXPECT_TRUE(may_refuse_everything(same, "needs compute capability 9.0"));
  EXPECT_TRUE(may_refuse_everything(same, "cuSPARSELt not found"));
  const Case other{&kernel, Precision::fp16, Layout::col_major, ElementType::f16};
  EXPECT_TRUE(may_refuse_everything(other, "not today"));
  const Case mixed{&kernel, Precision::fp32, Layout::row_major, ElementType::f16};
  EXPECT_TRUE(may_refuse_everything(mixed, "not today"));
}

TEST(KernelVariants, NameOptionsThatTheirKernelsDeclare) {
  for (const Case& c : all_cases())
    EXPECT_NO_THROW(check_options(*c.kernel, c.options)) << name_of(c);
}

// What may_refuse_everything excuses at one precision must run at another: each layout and each
// variant. No device is needed to ask. A vector is the same in both layouts, so kernels of N = 1
// alone may run it in either.
TEST(KernelVariants, RunSomeShapeAtSomePrecision) {
  if (std::getenv("SPMMBENCH_TEST_MAX_NNZ") != nullptr) GTEST_SKIP() << "needs all shapes";
  DeviceInfo gpu;
  gpu.kind = DeviceKind::cuda;
  gpu.compute_capability = 90;
  gpu.sm_count = 132;
  gpu.memory_bytes = std::size_t{140} << 30;
  gpu.shared_per_block = std::size_t{227} << 10;
  DeviceInfo host;
  host.sm_count = 8;
  const std::vector<NamedShape> shapes = all_shapes();
  const auto runs = [&](const Case& c, std::int64_t n) {
    return std::any_of(shapes.begin(), shapes.end(), [&](const NamedShape& shape) {
      const SparseOperand a{&shape.matrix, {}, c.precision};
      const Problem problem{a, {n, c.c_type, c.layout}, c.options};
      const Support support = check_support(
          *c.kernel, problem, c.kernel->info().device == DeviceKind::cuda ? gpu : host);
      return support.ok || lacks_library(support.reason);
    });
  };
  struct Ran {
    std::map<Layout, bool> matrices, vectors;  // N = 128 and 1
  };
  std::map<std::string, Ran> all;  // by kernel and options
  // In a build without CUDA there is nothing that `auto` could pick.
  const bool has_cuda = Registry<Kernel>::instance().find("csr_row_split") != nullptr;
  for (const Case& c : all_cases()) {
    if (c.kernel->info().device == DeviceKind::cuda && !has_cuda) continue;
    Ran& ran = all[Spec{c.kernel->info().name, c.options}.to_string()];
    ran.matrices[c.layout] |= runs(c, 128);
    ran.vectors[c.layout] |= runs(c, 1);
  }
  const auto runs_any = [](const std::map<Layout, bool>& layouts) {
    return std::any_of(layouts.begin(), layouts.end(), [](const auto& one) { return one.second; });
  };
  for (const auto& [name, ran] : all) {
    if (!runs_any(ran.matrices)) {
      EXPECT_TRUE(runs_any(ran.vectors)) << name;
      continue;
    }
    for (const auto& [layout, ok] : ran.matrices)
      EXPECT_TRUE(ok) << name << (layout == Layout::row_major ? ", row" : ", col");
  }
}

INSTANTIATE_TEST_SUITE_P(registry, KernelTest, testing::ValuesIn(all_cases()),
                         [](const auto& info) { return name_of(info.param); });

}  // namespace
}  // namespace spmmbench::test
