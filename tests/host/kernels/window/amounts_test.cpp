#include "window/amounts.hpp"

#include <gtest/gtest.h>

namespace spmmbench {
namespace {

// Eight rows with nonzeros have the columns of sixteen neighbours where every other row is empty.
TEST(WindowAmounts, WindowsAreThoseOfRowsWithNonzeros) {
  MatrixFeatures f;
  f.rows = f.cols = 8000;
  f.nnz = 80'000;
  f.gathered_8 = 1.0, f.gathered_16 = 0.8, f.gathered_32 = 0.7;
  f.stored_8 = 1.2, f.stored_16 = 1.0, f.stored_32 = 0.9;
  const DeviceModel device = {4e6, 9e6, 7e8, 5e7, 132};
  const auto amount = [&](double (*of)(const Product&), double empty) {
    f.empty_rows = empty;
    return of(Product(f, Shape{.n = 64}, Precision::fp16, device));
  };
  EXPECT_EQ(amount(window::gather_window, 0.1), amount(window::gather_window, 0));
  EXPECT_EQ(amount(window::filled_rows, 0.1), amount(amounts::rows, 0));
  EXPECT_DOUBLE_EQ(amount(window::filled_rows, 0.5), amount(amounts::rows, 0) / 2);
  EXPECT_DOUBLE_EQ(amount(window::gather_window, 0.5), 0.8 * amount(window::gather_window, 0));
  EXPECT_LT(amount(window::tiles, 0.5), amount(window::tiles, 0));
}

}  // namespace
}  // namespace spmmbench
