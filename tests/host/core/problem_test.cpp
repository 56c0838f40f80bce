// A as kernels get it, where it lies on a device and the host has no matrix yet.

#include <gtest/gtest.h>

#include "matrices.hpp"
#include "spmmbench/problem.hpp"

namespace spmmbench {
namespace {

class CountedMatrix final : public LazyCsr {
 public:
  const CsrMatrix& get() override {
    ++reads;
    return matrix_;
  }
  int reads = 0;

 private:
  CsrMatrix matrix_ = testing::shuffled_grid(4);
};

TEST(SparseOperand, OnADeviceKnowsItsSizesWithoutTheMatrixOfTheHost) {
  CountedMatrix lazy;
  const DeviceCsr on_device{.rows = 16, .cols = 17, .nnz = 18};
  SparseOperand a;
  a.a = HostCsr(&lazy);
  a.on_device = &on_device;
  EXPECT_TRUE(a.a.is_lazy());
  EXPECT_EQ(a.m(), 16);
  EXPECT_EQ(a.k(), 17);
  EXPECT_EQ(a.nnz(), 18);
  const auto orders = make_row_orders(a.a, Spec{"none", {}});
  StageTimer stages;
  EXPECT_TRUE(orders->get("natural", stages).empty());
  EXPECT_EQ(lazy.reads, 0);
  EXPECT_EQ(orders->get("degree", stages).size(), 16U);
  EXPECT_EQ(a.a->rows, 16);
  EXPECT_GT(lazy.reads, 0);
}

}  // namespace
}  // namespace spmmbench
