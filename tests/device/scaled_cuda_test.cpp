// C = alpha A B + beta C on a GPU: of kernels that take scalars, and of one that does not. Also of
// the members of row-major batches, by every kernel.

#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <string>
#include <vector>

#include "devices.hpp"
#include "measure/case.hpp"
#include "spmmbench/registry.hpp"
#include "spmmbench/reordering.hpp"
#include "verify/reference.hpp"

namespace spmmbench::test {
namespace {

// Rows of 0 to 12 nonzeros.
CsrMatrix uneven(std::int64_t size) {
  CsrMatrix a{size, size, {0}, {}, {}};
  for (std::int64_t row = 0; row < size; ++row) {
    for (std::int64_t i = 0; i < row % 13; ++i) {
      a.col_idx.push_back(static_cast<std::int32_t>((row + i * 16) % size));
      a.values.push_back(0.25F + static_cast<float>(i % 5) * 0.125F);
    }
    std::sort(a.col_idx.begin() + a.row_ptr.back(), a.col_idx.end());
    a.row_ptr.push_back(static_cast<std::int64_t>(a.values.size()));
  }
  return a;
}

struct Asked {
  std::string kernel;
  Precision precision;
  ElementType c_type;
};

Status expect_right(const Asked& asked, Layout layout, const Scalars& given, Device& device,
                    std::int64_t members = 1, std::int64_t columns = 40) {
  const Spec spec = Spec::parse(asked.kernel);
  const Kernel* const kernel = Registry<Kernel>::instance().find(spec.name);
  if (kernel == nullptr) {
    ADD_FAILURE() << asked.kernel;
    return Status::failed;
  }
  const bool binary = kernel->info().binary;
  CsrMatrix a = uneven(208);
  if (binary) std::fill(a.values.begin(), a.values.end(), 1.0F);
  if (asked.precision == Precision::fp64) a.values64 = {a.values.begin(), a.values.end()};
  const KernelChoice choice{kernel, spec.options};
  const std::int64_t n = kernel->info().name.starts_with("cusparse_spmv") ? 1 : columns;
  const Diagonal all = on_diagonal(a, {}, members);
  const Operands operands =
      make_operands(all.a, n, asked.precision, asked.c_type, layout, nullptr, 1, device);
  const auto reference = make_reference(all.a, {}, operands.b, device);
  const auto orders = make_row_orders(a, {"none", {}});
  const Scalars scalars = rounded(given, asked.precision);
  PreparedA prepared;
  CaseInput input;
  input.choice = &choice;
  input.problem.a = &a;
  input.problem.precision = asked.precision;
  input.problem.orders = orders.get();
  input.problem.options = spec.options;
  static_cast<Shape&>(input.problem) = {n, asked.c_type, layout, operands.b.ld, operands.c.ld};
  input.prepared = &prepared;
  input.device = &device;
  input.operands = &operands;
  input.reference = reference.get();
  input.members = members;
  input.diagonal = &all;
  input.update = {scalars.alpha, scalars.beta, drawn_c(asked.c_type, 1)};
  input.a_checksum = checksum_of_a(input.problem, device);
  ExactOperands exact(
      a, {}, nullptr, 1,
      {.binary = binary,
       .sum_bits = exact_sum_bits(kernel->info(), asked.precision, asked.c_type, scalars),
       .precision = asked.precision});
  input.exact = &exact;
  ResultRow row;
  run_case(input, {.noise = 0.1, .min_samples = 3, .max_samples = 3, .max_seconds = 0.1}, row);
  const std::string what = asked.kernel + " " + std::string(to_string(asked.precision)) + " C " +
                           std::string(to_string(asked.c_type)) +
                           (layout == Layout::row_major ? " row" : " col");
  if (row.status != Status::skipped) {  // a layout that the kernel does not take
    EXPECT_EQ(row.status, Status::ok) << what << ": " << row.reason;
  }
  if (row.exact) {
    EXPECT_TRUE(row.exact->passed) << what << ": " << row.exact->not_made;
  }
  return row.status;
}

TEST(ScaledOnDevice, KernelsAreRightWhetherTheyTakeScalarsOrNot) {
  SPMMBENCH_TEST_DEVICE(device, DeviceKind::cuda);
  const Asked all[] = {
      {"cublas_dense", Precision::fp32, ElementType::f32},
      {"cublas_dense", Precision::fp16, ElementType::f16},
      {"cublas_dense", Precision::fp64, ElementType::f64},
      {"cublaslt_dense", Precision::fp8_e4m3, ElementType::f32},
      {"cusparse_csr_default", Precision::fp32, ElementType::f32},
      {"cusparse_csr_alg1", Precision::fp32, ElementType::f32},
      {"cusparse_csr_alg2", Precision::fp16, ElementType::f32},
      {"cusparse_csr_alg3", Precision::fp32, ElementType::f32},
      {"cusparse_csr_alg3", Precision::fp16, ElementType::f16},
      {"cusparse_csr_default", Precision::fp64, ElementType::f64},
      {"cusparse_coo_alg1", Precision::fp32, ElementType::f32},
      {"cusparse_coo_alg2", Precision::fp32, ElementType::f32},
      {"cusparse_coo_alg3", Precision::fp32, ElementType::f32},
      {"cusparse_coo_alg4", Precision::fp32, ElementType::f32},
      {"cusparse_bsr?block=16", Precision::fp32, ElementType::f32},
      {"cusparse_blocked_ell", Precision::fp16, ElementType::f32},
      {"cusparse_spmv", Precision::fp32, ElementType::f32},
      {"cusparse_spmv_coo_alg2", Precision::fp32, ElementType::f32},
      {"csr_row_split", Precision::fp32, ElementType::f32},
      {"csr_merge", Precision::fp64, ElementType::f64},
      {"async_wcsr", Precision::fp16, ElementType::f16},
      {"async_wcsr", Precision::bf16, ElementType::f32},
  };
  for (const Asked& asked : all)
    for (const Layout layout : {Layout::row_major, Layout::col_major})
      for (const Scalars& scalars : {Scalars{1.5, 0.5}, {2, 0}, {1, 1}}) {
        // cuBLAS adds C in 16 bits where both scalars are 1 (docs/decisions/baselines.md).
        const bool adds_in_16_bits = asked.kernel == "cublas_dense" &&
                                     asked.c_type == ElementType::f16 && scalars.alpha == 1;
        if (adds_in_16_bits) continue;
        SCOPED_TRACE(scalars.beta);
        expect_right(asked, layout, scalars, device);
      }
}

class BatchOnDevice : public testing::TestWithParam<std::string> {};

// Rows of 40 columns of 16 bits have a gap behind them.
TEST_P(BatchOnDevice, MembersAreRight) {
  SPMMBENCH_TEST_DEVICE(device, DeviceKind::cuda);
  constexpr std::int64_t kMembers = 3;
  const KernelInfo& info = Registry<Kernel>::instance().at(GetParam()).info();
  int right = 0;
  for (const Precision precision : info.precisions)
    for (const ElementType c_type : written_types(info))
      for (const Scalars& scalars : {Scalars{}, Scalars{1.5, 0.5}})
        for (const std::int64_t n : {40, 64}) {
          if (!writes(info, precision, c_type)) continue;
          const Asked asked{info.name, precision, c_type};
          right +=
              expect_right(asked, Layout::row_major, scalars, device, kMembers, n) == Status::ok;
        }
  std::cout << "  " << right << " cases\n";
}

std::vector<std::string> kernels_of_the_device() {
  std::vector<std::string> names;
  for (const Kernel* kernel : Registry<Kernel>::instance().sorted())
    if (kernel->info().device == DeviceKind::cuda) names.push_back(kernel->info().name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(registry, BatchOnDevice, testing::ValuesIn(kernels_of_the_device()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace spmmbench::test
