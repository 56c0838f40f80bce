// The checker that judges every kernel, itself judged: its verdict on the GPU against the one of
// the plain fp64 loop on the host, on results that are nearly right, and on planted errors.

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "devices.hpp"
#include "gpu/backend.hpp"
#include "shapes.hpp"
#include "spmmbench/random.hpp"
#include "verify/reference.hpp"

namespace spmmbench::test {
namespace {

constexpr ErrorBound kBound{.unit = 0x1p-22, .output_unit = 0x1p-11, .output_absolute = 0x1p-25};

void set_element(const DenseView& view, std::int64_t row, std::int64_t col, double value) {
  const std::int64_t at =
      view.layout == Layout::row_major ? row * view.ld + col : col * view.ld + row;
  store_element(view.type, view.data, at, value);
}

// A product on the host, with B and C in host memory, and the same on a device for `check`.
class Product {
 public:
  Product(CsrMatrix a, std::int64_t n, Precision precision, Layout layout, ElementType c_type)
      : a_(std::move(a)), host_(*find_device(DeviceKind::host)) {
    for (float& value : a_.values) value = round_to(precision, value);
    if (precision == Precision::fp64)
      for (const float value : a_.values) a_.values64.push_back(value * (1 + 0x1p-30));
    b_ = make_dense_view(a_.cols, n, layout, storage_type(precision));
    c_ = make_dense_view(a_.rows, n, layout, c_type);
    b_memory_ = host_.allocate(b_.bytes());
    c_memory_ = host_.allocate(c_.bytes());
    b_.data = b_memory_.data();
    c_.data = c_memory_.data();
    host_.fill_uniform(b_, 5, precision);
    for (std::int64_t row = 0; row < a_.rows; ++row)
      for (std::int64_t col = 0; col < n; ++col) {
        double sum = 0;
        for (std::int64_t e = a_.row_ptr[row]; e < a_.row_ptr[row + 1]; ++e)
          sum += a_.value(e) * element_at(b_, a_.col_idx[e], col);
        // Off by up to a few roundings, so that the largest error is a matter of comparison.
        const double noise = 1 + 1e-4 * uniform_at(3, row, col);
        set_element(c_, row, col, sum * noise);
      }
  }

  const DenseView& c() const { return c_; }
  const CsrMatrix& a() const { return a_; }

  // On a GPU `memory_share` decides into how many bands the reference is cut.
  Verdict check_on(Device& device, double memory_share = 0.25) {
    const Buffer b_copy = device.allocate(b_.bytes());
    const Buffer c_copy = device.allocate(c_.bytes());
    device.upload(b_copy.data(), b_.data, b_.bytes());
    device.upload(c_copy.data(), c_.data, c_.bytes());
    DenseView b = b_;
    DenseView c = c_;
    b.data = b_copy.data();
    c.data = c_copy.data();
    if (device.info().kind == DeviceKind::host)
      return make_reference(a_, {}, b, device)->check(c, kBound);
    std::shared_ptr<void> copy;
    const auto reference = make_cuda_reference(a_, {}, b, device, memory_share, &copy);
    const Verdict first = reference->check(c, kBound);
    const auto of_copy = make_cuda_reference(a_, {}, b, device, memory_share, &copy);
    EXPECT_EQ(of_copy->check(c, kBound).error_over_bound, first.error_over_bound);
    reference->release_memory();
    const Verdict second = reference->check(c, kBound);
    EXPECT_EQ(first.error_over_bound, second.error_over_bound);
    return second;
  }

 private:
  CsrMatrix a_;
  Device& host_;
  DenseView b_, c_;
  Buffer b_memory_, c_memory_;
};

CsrMatrix small_matrix() {
  for (const NamedShape& shape : all_shapes())
    if (shape.name == "empty_rows") return shape.matrix;
  return {};
}

class ReferenceTest : public testing::TestWithParam<DeviceKind> {};

TEST_P(ReferenceTest, AgreesWithThePlainLoopOnTheHost) {
  SPMMBENCH_TEST_DEVICE(device, GetParam());
  Device& host = *find_device(DeviceKind::host);
  for (const NamedShape& shape : all_shapes()) {
    if (shape.matrix.nnz() > 50'000) continue;  // the plain loop above is slow
    for (const Precision precision :
         {Precision::fp32, Precision::fp16, Precision::bf16, Precision::fp64})
      for (const Layout layout : {Layout::row_major, Layout::col_major})
        for (const std::int64_t n : {1, 33}) {
          SCOPED_TRACE(shape.name + ", N = " + std::to_string(n));
          Product product(shape.matrix, n, precision, layout, storage_type(precision));
          const Verdict expected = product.check_on(host);
          const Verdict verdict = product.check_on(device);
          EXPECT_EQ(verdict.ok, expected.ok);
          EXPECT_NEAR(verdict.error_over_bound, expected.error_over_bound,
                      1e-6 * expected.error_over_bound);
          EXPECT_EQ(verdict.worst_row, expected.worst_row);
          EXPECT_EQ(verdict.worst_col, expected.worst_col);
          EXPECT_NEAR(verdict.relative_frobenius, expected.relative_frobenius,
                      1e-6 * expected.relative_frobenius);
        }
  }
}

TEST_P(ReferenceTest, KeepsWhatFp64Drops) {
  SPMMBENCH_TEST_DEVICE(device, GetParam());
  // 2^60 + (1 + 2^-52) - 2^60, and as many zeros as all warps of a block sum.
  CsrMatrix a{1, 19, {0, 19}, std::vector<std::int32_t>(19), std::vector<float>(19)};
  a.values64.resize(19);
  for (int k = 0; k < 19; ++k) a.col_idx[k] = k;
  a.values64[0] = 0x1p60;
  a.values64[1] = 1 + 0x1p-52;
  a.values64[18] = -0x1p60;
  const std::vector<double> ones(20, 1), right = {1 + 0x1p-52, 0}, wrong = {1, 0};
  const Buffer b = device.upload(ones), c = device.upload(right), other = device.upload(wrong);
  const DenseView b_view{b.data(), 19, 1, 1, Layout::row_major, ElementType::f64};
  const auto reference = make_reference(a, {}, b_view, device);
  const auto is_equal = [&](const Buffer& memory) {
    return reference->check_equal({memory.data(), 1, 1, 2, Layout::row_major, ElementType::f64}).ok;
  };
  EXPECT_TRUE(is_equal(c));
  EXPECT_FALSE(is_equal(other));
}

TEST(CudaReference, IsTheSameInBandsOfOneRow) {
  SPMMBENCH_TEST_DEVICE(device, DeviceKind::cuda);
  Product product(small_matrix(), 70, Precision::fp16, Layout::row_major, ElementType::f32);
  const Verdict whole = product.check_on(device);
  const Verdict bands = product.check_on(device, 0);
  EXPECT_GT(whole.error_over_bound, 0);
  EXPECT_EQ(whole.error_over_bound, bands.error_over_bound);
  EXPECT_EQ(whole.worst_row, bands.worst_row);
  EXPECT_EQ(whole.worst_col, bands.worst_col);
  EXPECT_NEAR(whole.relative_frobenius, bands.relative_frobenius, 1e-12 * whole.relative_frobenius);
}

TEST_P(ReferenceTest, TheChecksumIsThatOfTheHostAndSeesEveryByte) {
  SPMMBENCH_TEST_DEVICE(device, GetParam());
  Device& host = *find_device(DeviceKind::host);
  for (const auto& [rows, cols] : {std::pair(0, 3), {1, 1}, {7, 5}, {1000, 129}}) {
    DenseView here = make_dense_view(rows, cols, Layout::row_major, ElementType::f16);
    DenseView there = here;
    const Buffer here_memory = host.allocate(here.bytes()), memory = device.allocate(here.bytes());
    here.data = here_memory.data();
    there.data = memory.data();
    host.fill_uniform(here, 5, Precision::fp16);
    device.upload(there.data, here.data, here.bytes());
    for (const std::size_t left_out : {0, 1, 7, 8}) {
      if (here.bytes() < left_out) continue;
      const std::size_t bytes = here.bytes() - left_out;
      const auto first = [bytes](const DenseView& view) {
        return ByteSpan(static_cast<const std::byte*>(view.data), bytes);
      };
      const std::vector<ByteSpan> several(6, first(there));  // more than one launch takes
      const std::uint64_t sum = checksums({{first(here)}}, host).front();
      EXPECT_EQ(checksums(several, device), std::vector<std::uint64_t>(several.size(), sum));
      if (bytes == 0) continue;
      unsigned char* const last = static_cast<unsigned char*>(there.data) + bytes - 1;
      device.fill_bytes(last, 0x55, 1);
      EXPECT_NE(checksums(several, device).front(), sum);
      device.upload(there.data, here.data, here.bytes());
    }
  }
}

TEST_P(ReferenceTest, FindsOneWrongElementAndSaysWhere) {
  SPMMBENCH_TEST_DEVICE(device, GetParam());
  for (const Layout layout : {Layout::row_major, Layout::col_major})
    for (const float wrong :
         {1e6F, std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity()}) {
      Product product(small_matrix(), 70, Precision::fp32, layout, ElementType::f32);
      set_element(product.c(), 102, 69, wrong);
      const Verdict verdict = product.check_on(device);
      EXPECT_FALSE(verdict.ok);
      EXPECT_GT(verdict.error_over_bound, 1);
      EXPECT_EQ(verdict.worst_row, 102);
      EXPECT_EQ(verdict.worst_col, 69);
      if (!std::isfinite(wrong)) {
        EXPECT_TRUE(std::isinf(verdict.error_over_bound));
        EXPECT_TRUE(std::isnan(verdict.relative_frobenius));
      }
    }
}

TEST_P(ReferenceTest, ARowWithoutNonzerosMustBeExactlyZero) {
  SPMMBENCH_TEST_DEVICE(device, GetParam());
  Product product(small_matrix(), 8, Precision::fp16, Layout::row_major, ElementType::f16);
  ASSERT_EQ(product.a().row_length(100), 0);
  set_element(product.c(), 100, 3, 0x1p-24F);
  const Verdict verdict = product.check_on(device);
  EXPECT_FALSE(verdict.ok);
  EXPECT_TRUE(std::isinf(verdict.error_over_bound));
  EXPECT_EQ(verdict.worst_row, 100);
  EXPECT_EQ(verdict.worst_col, 3);
}

INSTANTIATE_TEST_SUITE_P(devices, ReferenceTest,
                         testing::Values(DeviceKind::host, DeviceKind::cuda), [](const auto& info) {
                           return info.param == DeviceKind::host ? "host" : "cuda";
                         });

}  // namespace
}  // namespace spmmbench::test
