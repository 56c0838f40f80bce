// 4.3e9 nonzeros: more than 2^32, so that a count or an offset in 32 bits anywhere gives a wrong
// row. Prints what each product takes, those of vendors too, which may be wrong here.

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "devices.hpp"
#include "downloaded.hpp"
#include "many_nonzeros.hpp"
#include "spmmbench/error.hpp"
#include "spmmbench/registry.hpp"
#include "spmmbench/spec.hpp"

namespace spmmbench::test {
namespace {

constexpr ManyNonzeros kMatrix{std::int64_t{1} << 20, std::int64_t{1} << 20, 4100};
constexpr std::int64_t kFewColumns = 8;
static_assert(kMatrix.rows * kMatrix.per_row > std::int64_t{UINT32_MAX});

class Unread final : public LazyCsr {
 public:
  const CsrMatrix& get() override { throw Unsupported("reads A on the host"); }
};

// A on the device, B and C.
class ManyNonzerosTest : public testing::TestWithParam<std::string> {
 protected:
  // Rows of C in all parts of A that differ from the product.
  static std::int64_t wrong_rows(Device& device, const DenseView& c) {
    constexpr std::int64_t kStep = 1021;  // rows
    const auto got = downloaded<float>(device, c.data, c.rows * c.ld);
    std::int64_t wrong = 0;
#pragma omp parallel for schedule(dynamic) reduction(+ : wrong)
    for (std::int64_t sample = 0; sample <= c.rows / kStep; ++sample) {
      const std::int64_t row = std::min(sample * kStep, c.rows - 1);
      std::vector<std::int64_t> sums(kFewColumns);
      for (std::int64_t j = 0; j < kMatrix.per_row; ++j)
        for (std::int64_t col = 0; col < kFewColumns; ++col)
          sums[col] += kMatrix.value(row, j) * ManyNonzeros::b(kMatrix.column(row, j), col);
      bool right = true;
      for (std::int64_t col = 0; col < kFewColumns; ++col)
        right = right && got[row * c.ld + col] == static_cast<float>(sums[col]);
      wrong += right ? 0 : 1;
    }
    return wrong;
  }
};

TEST_P(ManyNonzerosTest, AreMultiplied) {
  SPMMBENCH_TEST_DEVICE(device, DeviceKind::cuda);
  const Spec spec = Spec::parse(GetParam());
  const Kernel& kernel = Registry<Kernel>::instance().at(spec.name);
  const auto nnz = static_cast<std::size_t>(kMatrix.nnz());
  constexpr std::size_t kRest = std::size_t{4} << 30;  // bytes
  if (device.free_bytes() < nnz * 6 + kRest) GTEST_SKIP() << "too little device memory";
  try {
    const Buffer row_ptr = device.allocate((kMatrix.rows + 1) * sizeof(std::int64_t));
    const Buffer col_idx = device.allocate(nnz * sizeof(std::int32_t));
    const Buffer values = device.allocate(nnz * bytes_of(ElementType::f16));
    fill_csr(kMatrix, row_ptr.as<std::int64_t>(), col_idx.as<std::int32_t>(), values.data(),
             device.stream());
    const DeviceCsr a{kMatrix.rows,
                      kMatrix.cols,
                      kMatrix.nnz(),
                      row_ptr.as<std::int64_t>(),
                      col_idx.as<std::int32_t>(),
                      values.data(),
                      ElementType::f16};
    Unread on_host;
    SparseOperand operand;
    operand.a = HostCsr(&on_host);
    operand.precision = Precision::fp16;
    operand.on_device = &a;
    const Shape shape{.n = kFewColumns};
    const Support support = check_support(kernel, {operand, shape, spec.options}, device.info());
    if (!support.ok) GTEST_SKIP() << support.reason;
    if (support.device_bytes > device.free_bytes()) GTEST_SKIP() << "too little device memory";

    DenseView b = make_b_view(kMatrix.cols, kFewColumns, Layout::row_major, ElementType::f16);
    std::vector<std::uint16_t> of_b(b.rows * b.ld);
    for (std::int64_t row = 0; row < b.rows; ++row)
      for (std::int64_t col = 0; col < kFewColumns; ++col)
        store_element(ElementType::f16, of_b.data(), row * b.ld + col, ManyNonzeros::b(row, col));
    const Buffer b_memory = device.upload(of_b);
    b.data = b_memory.data();
    DenseView c = make_dense_view(kMatrix.rows, kFewColumns, Layout::row_major, ElementType::f32);
    const Buffer c_memory = device.allocate(c.bytes());
    c.data = c_memory.data();
    device.fill_bytes(c.data, 0xFF, c.bytes());

    StageTimer stages;
    const auto prepared = kernel.prepare(operand, spec.options, device, stages);
    const std::unique_ptr<Plan> plan = prepared->bind(shape, stages);
    plan->launch(b, c, device.stream());
    device.synchronize();
    const std::int64_t wrong = wrong_rows(device, c);
    constexpr int kLaunches = 3;
    const double us = device.time_us([&] { plan->launch(b, c, device.stream()); }, kLaunches);
    std::cout << "  " << GetParam() << ": " << us / kLaunches / 1e3 << " ms, " << wrong
              << " of the sampled rows are wrong\n";
    if (!kernel.info().baseline) {
      EXPECT_EQ(wrong, 0);
    }
  } catch (const Unsupported& refusal) {
    GTEST_SKIP() << refusal.what();
  } catch (const OutOfMemory& error) {
    GTEST_SKIP() << error.what();
  } catch (const DeviceError& error) {
    mark_device_lost(error);
    if (kernel.info().baseline && !error.device_lost()) GTEST_SKIP() << error.what();
    FAIL() << error.what();
  }
}

INSTANTIATE_TEST_SUITE_P(kernels, ManyNonzerosTest,
                         testing::Values("csr_merge", "csr_merge?own_rows=0", "csr_row_split",
                                         "cusparse_csr_default", "cusparse_csr_alg1",
                                         "cusparse_csr_alg2", "cusparse_csr_alg3"),
                         [](const auto& info) {
                           std::string name = info.param;
                           for (char& ch : name)
                             if (std::isalnum(static_cast<unsigned char>(ch)) == 0) ch = '_';
                           return name;
                         });

}  // namespace
}  // namespace spmmbench::test
