// How many rows of B return from memory, counted on the device.

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "../../kernels/window/column_reuse.hpp"
#include "../../kernels/window/device_column_reuse.hpp"
#include "../../kernels/window/device_survey.hpp"
#include "devices.hpp"
#include "gpu/csr_on_device.hpp"
#include "shapes.hpp"
#include "spmmbench/registry.hpp"

namespace spmmbench::test {
namespace {

TEST(ColumnReuse, IsCountedAsOnTheHost) {
  SPMMBENCH_TEST_DEVICE(device, DeviceKind::cuda);
  for (const NamedShape& shape : all_shapes()) {
    SCOPED_TRACE(shape.name);
    const CsrMatrix& matrix = shape.matrix;
    const CsrOnDevice a(matrix, Precision::fp32, device);
    const Permutation natural,
        random = Registry<Reordering>::instance().at("random").compute(matrix, {});
    const Buffer rows = device.upload(random);
    for (const std::int64_t kept : {1, 100, 25'000})
      EXPECT_EQ(new_column_shares(a.view(), {nullptr, rows.as<std::int32_t>()}, kept, device),
                new_column_shares(matrix, {&natural, &random}, kept));
  }
}

TEST(ColumnReuse, IsCountedOnceForAllKernels) {
  SPMMBENCH_TEST_DEVICE(device, DeviceKind::cuda);
  for (const NamedShape& shape : all_shapes()) {
    SCOPED_TRACE(shape.name);
    const CsrMatrix& matrix = shape.matrix;
    const CsrOnDevice a(matrix, Precision::fp32, device);
    const DeviceCsr view = a.view();
    const auto host = make_row_orders(matrix, Spec::parse("natural"));
    SharedOrders shared(host.get());
    const SparseOperand operand{.a = &matrix, .orders = &shared, .on_device = &view};
    StageTimer stages;
    for (const std::int64_t kept : {1, 100}) {
      ResidentOrders of_one(&shared, device), of_other(&shared, device);
      const auto natural =
          DeviceSurvey(operand, of_one, device).returned({"natural"}, kept, stages);
      const double natural_ms = shared.returned().at({"natural", kept}).cost.total_ms();
      const auto both =
          DeviceSurvey(operand, of_other, device).returned({"degree", "natural"}, kept, stages);
      const auto again =
          DeviceSurvey(operand, of_one, device).returned({"natural", "degree"}, kept, stages);
      const Permutation as_it_is,
          by_degree = Registry<Reordering>::instance().at("degree").compute(matrix, {});
      const auto expected = new_column_shares(matrix, {&as_it_is, &by_degree}, kept);
      EXPECT_EQ(natural, std::vector{expected[0]});
      EXPECT_EQ(both, (std::vector{expected[1], expected[0]}));
      EXPECT_EQ(again, expected);
      EXPECT_EQ(shared.returned().at({"natural", kept}).cost.total_ms(), natural_ms);
    }
  }
}

}  // namespace
}  // namespace spmmbench::test
