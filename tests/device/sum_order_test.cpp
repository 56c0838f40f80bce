// The order of sums that a plan states (spmmbench/sum_order.hpp): every element of C is predicted
// from it to the bit, for every kernel that states one. Where sums are added as they come, it is
// one of those that the orders give.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <iostream>
#include <memory>
#include <numeric>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "core/block_scales.hpp"
#include "devices.hpp"
#include "spmmbench/random.hpp"
#include "spmmbench/registry.hpp"
#include "spmmbench/sum_order.hpp"
#include "verify/predicted_sum.hpp"

namespace spmmbench::test::sum_orders {
namespace {

constexpr std::int64_t kRows = 1'000, kColumns = 700, kN = 1'000;  // 10^6 elements of C

struct Case {
  const Kernel* kernel;
  Precision precision;
  Layout layout;
  std::int64_t n;  // of a launch: kN, or 1 for each column of B
  Options options = {};
};

Options options_of(std::initializer_list<std::pair<const char*, const char*>> values) {
  Options out;
  for (const auto& [key, value] : values) out.set(key, value);
  return out;
}

// Beside the defaults: windows of 32 rows, windows that are cut over up to six CTAs of two warps,
// short rows on the CUDA cores, sums of fp8 that are not promoted.
std::vector<Options> options_to_try(const KernelInfo& info, Precision precision) {
  const auto has = [&](const std::string& name) {
    return std::ranges::find(info.options, name, &OptionSpec::name) != info.options.end();
  };
  std::vector<Options> out = {{}};
  if (has("part")) {
    out.push_back(options_of({{"window", "32"}}));
    const Options cut = options_of(
        {{"order", "natural"}, {"warps", "2"}, {"cta_tiles", "1"}, {"whole", "2"}, {"part", "2"}});
    if (!has("reduce")) out.push_back(cut);
    for (const char* reduce : {"fixup", "atomic"}) {
      if (!has("reduce")) break;
      out.push_back(cut);
      out.back().set("reduce", reduce);
    }
  }
  if (has("tau_nnz")) out.push_back(options_of({{"tau_nnz", "32"}, {"tau_delta", "32"}}));
  for (const Variant& variant : info.variants)
    if (is_scaled(precision) && variant.promoted_columns)
      out.push_back(options_of({{variant.option.c_str(), variant.value.c_str()}}));
  return out;
}

std::vector<Case> cases() {
  std::vector<Case> out;
  for (const Kernel* kernel : Registry<Kernel>::instance().sorted()) {
    const KernelInfo& info = kernel->info();
    if (info.accumulation != Accumulation::fp32_tensor_core || !info.purpose.empty() ||
        info.baseline)
      continue;
    for (const Precision precision : info.precisions) {
      if (precision == Precision::fp64) continue;
      for (const Options& options : options_to_try(info, precision))
        for (const Layout layout : info.layouts) {
          out.push_back({kernel, precision, layout, kN, options});
          if (layout == Layout::col_major) out.push_back({kernel, precision, layout, 1, options});
        }
    }
  }
  return out;
}

std::string name_of(const Case& c) {
  std::string name = c.kernel->info().name + "__" + std::string(to_string(c.precision)) +
                     (c.layout == Layout::row_major ? "__row" : "__col") +
                     (c.n == 1 ? "__vector" : "");
  for (const auto& [key, value] : c.options.values()) name += "__" + key + "_" + value;
  return name;
}
void PrintTo(const Case& c, std::ostream* out) { *out << name_of(c); }  // found by GoogleTest

// Rows of 0 to some 60 nonzeros, near one another in blocks, every eighth row with few of them,
// and values of several binades.
CsrMatrix matrix(Precision precision) {
  CsrMatrix a{kRows, kColumns, {0}, {}, {}};
  for (std::int64_t i = 0; i < kRows; ++i) {
    for (std::int64_t k = 0; k < kColumns; ++k) {
      const bool in_block = hash_position(1, i / 64, k / 32) % 4 == 0;
      const std::uint64_t hash = hash_position(2, i, k);
      const bool is_left_out = hash % (i % 8 == 3 ? 16 : 4) != 0;
      if (!in_block || is_left_out) continue;
      const float small = hash / 16 % 8 == 0 ? 0x1p-9F : 1.0F;
      a.col_idx.push_back(static_cast<std::int32_t>(k));
      a.values.push_back(
          static_cast<float>(round_to(precision, small * uniform_in(precision, 3, i, k))));
    }
    a.row_ptr.push_back(static_cast<std::int64_t>(a.col_idx.size()));
  }
  if (has_block_scales(precision))
    for (const float power : exact_block_scales(scales_of_a(kRows, kColumns), 5))
      a.block_scales.push_back(0.3F * power);
  return a;
}

// Of the blocks of B, with n columns a launch; none at other precisions. Columns that launches have
// to themselves share them.
std::vector<float> scales_of(Precision precision, std::int64_t n) {
  if (!has_block_scales(precision)) return {};
  return drawn_block_scales(kColumns, n, 6, precision);
}

// Columns [first, first + n) of a view.
DenseView columns_of(DenseView view, std::int64_t first, std::int64_t n) {
  const std::int64_t apart = view.layout == Layout::row_major ? 1 : view.ld;
  view.data = static_cast<unsigned char*>(view.data) + first * apart * bytes_of(view.type);
  view.cols = n;
  return view;
}

class SumOrderTest : public testing::TestWithParam<Case> {};

TEST_P(SumOrderTest, PredictsEveryElementOfCToTheBit) {
  SPMMBENCH_TEST_DEVICE(device, DeviceKind::cuda);
  const auto& [kernel, precision, layout, n, options] = GetParam();
  const CsrMatrix a = matrix(precision);
  Problem problem;
  problem.a = &a;
  problem.precision = precision;
  problem.n = n;
  problem.options = options;
  problem.layout = layout;
  const std::unique_ptr<RowOrders> orders = make_row_orders(a, {"none", {}});
  problem.orders = orders.get();
  const Support support = check_support(*kernel, problem, device.info());
  if (!support.ok) GTEST_SKIP() << support.reason;
  const KernelInfo info = info_with(kernel->info(), options);
  StageTimer stages;
  const auto prepared = kernel->prepare(problem.operand(), problem.options, device, stages);
  const auto plan = prepared->bind(problem.shape(), stages);
  auto* const sums = dynamic_cast<OrderedSums*>(plan.get());
  if (sums == nullptr) GTEST_SKIP() << "states no order";

  DenseView b = make_b_view(kColumns, kN, layout, storage_type(precision));
  DenseView c = make_dense_view(kRows, kN, layout, ElementType::f32);
  const Buffer b_memory = device.allocate(b.bytes()), c_memory = device.allocate(c.bytes());
  b.data = b_memory.data();
  c.data = c_memory.data();
  device.fill_uniform(b, 4, precision);
  const std::vector<float> of_b = scales_of(precision, n);
  const Buffer scales = device.upload(of_b);
  b.block_scales = scales.as<float>();
  for (std::int64_t j = 0; j < kN; j += n)
    plan->launch(columns_of(b, j, n), columns_of(c, j, n), device.stream());
  device.synchronize();
  std::vector<unsigned char> host_b(b.bytes());
  std::vector<float> host_c(c.bytes() / sizeof(float));
  device.download(host_b.data(), b.data, b.bytes());
  device.download(host_c.data(), c.data, c.bytes());

  const auto place = [](const DenseView& view, std::int64_t i, std::int64_t j) {
    return view.layout == Layout::row_major ? i * view.ld + j : j * view.ld + i;
  };
  const std::int64_t same_order = n == 1 ? kN : 8;  // columns: an instruction has eight or more
  std::vector<std::int64_t> copied(kRows / 2);  // at once; what is needed of the others, one by one
  std::iota(copied.begin(), copied.end(), 0);
  sums->will_ask(copied);
  std::vector<std::optional<SumOrder>> orders_of_c;
  for (std::int64_t i = 0; i < kRows; ++i)
    for (std::int64_t j = 0; j < kN; j += same_order) orders_of_c.push_back(sums->sum_order(i, j));
  std::int64_t equal = 0, of_several = 0;
#pragma omp parallel for reduction(+ : equal, of_several) schedule(dynamic, 8)
  for (std::int64_t i = 0; i < kRows; ++i)
    for (std::int64_t j = 0; j < kN; ++j) {
      const std::optional<SumOrder>& order = orders_of_c[(i * kN + j) / same_order];
      if (!order) continue;
      std::function<float(std::int64_t)> scale_of_blocks;
      if (has_block_scales(precision))
        scale_of_blocks = [&, i = i, j = j](std::int64_t k) {
          return block_scale(a, i, k) * of_b[scale_at_b(k, j % n, n)];
        };
      const std::vector<float> predicted = predicted_sums(
          *order, info, precision, a,
          [&](std::int64_t k) { return load_element(b.type, host_b.data(), place(b, k, j)); },
          a.scale * b.scale, scale_of_blocks);
      const auto is_in_c = [&](float sum) { return same_bits(host_c[place(c, i, j)], sum); };
      equal += std::ranges::any_of(predicted, is_in_c) ? 1 : 0;
      of_several += predicted.size() > 1 ? 1 : 0;
    }
  EXPECT_EQ(equal, kRows * kN);
  std::cout << "  " << equal << " equal to the bit, " << of_several
            << " of them to one of several\n";
}

INSTANTIATE_TEST_SUITE_P(registry, SumOrderTest, testing::ValuesIn(cases()),
                         [](const auto& info) { return name_of(info.param); });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(SumOrderTest);

}  // namespace
}  // namespace spmmbench::test::sum_orders
