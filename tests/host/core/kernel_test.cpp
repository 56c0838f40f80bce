#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "spmmbench/kernel.hpp"

namespace spmmbench {
namespace {

TEST(InfoWith, AnOptionSaysHowManyProductsTensorCoresAddUp) {
  KernelInfo info;
  info.promoted_columns = 128;
  info.options = {flag_option("promote", true, "")};
  info.variants = {{.option = "promote", .value = "0", .promoted_columns = 0}};
  Options given;
  EXPECT_EQ(info_with(info, given).promoted_columns, 128);
  given.set("promote", "0");
  EXPECT_EQ(info_with(info, given).promoted_columns, 0);
}

KernelInfo info_of(std::vector<Layout> layouts) {
  KernelInfo info;
  info.layouts = std::move(layouts);
  return info;
}

TEST(LayoutFor, AVectorIsContiguousForKernelsThatTakeColumnMajor) {
  const KernelInfo both = info_of({Layout::row_major, Layout::col_major});
  EXPECT_EQ(layout_for(both, Layout::row_major, 1), Layout::col_major);
  EXPECT_EQ(make_dense_view(7, 1, layout_for(both, Layout::row_major, 1), ElementType::f16).ld, 8);
}

TEST(DenseView, RowsOfBThatAreLongerStartAtSectorsOrCacheLines) {
  const auto pitch = [](std::int64_t n, ElementType type) {
    return make_b_view(3, n, Layout::row_major, type).ld;
  };
  EXPECT_EQ(pitch(8, ElementType::f16), 8);
  EXPECT_EQ(pitch(9, ElementType::f16), 16);
  EXPECT_EQ(pitch(17, ElementType::f16), 32);
  EXPECT_EQ(pitch(48, ElementType::f16), 64);
  EXPECT_EQ(pitch(72, ElementType::f16), 80);
  EXPECT_EQ(pitch(96, ElementType::f16), 96);
  EXPECT_EQ(pitch(100, ElementType::f16), 128);
  EXPECT_EQ(pitch(3, ElementType::f32), 4);
  EXPECT_EQ(pitch(9, ElementType::f32), 16);
  EXPECT_EQ(make_b_view(100, 3, Layout::col_major, ElementType::f16).ld, 128);
  EXPECT_EQ(make_dense_view(3, 100, Layout::row_major, ElementType::f16).ld, 104);
}

TEST(LayoutFor, WiderOperandsAndOtherKernelsGetWhatWasAskedFor) {
  const KernelInfo both = info_of({Layout::row_major, Layout::col_major});
  const KernelInfo row = info_of({Layout::row_major});
  EXPECT_EQ(layout_for(both, Layout::row_major, 2), Layout::row_major);
  EXPECT_EQ(layout_for(both, Layout::col_major, 8), Layout::col_major);
  EXPECT_EQ(layout_for(row, Layout::row_major, 1), Layout::row_major);
  EXPECT_EQ(layout_for(row, Layout::col_major, 1), Layout::col_major);
}

}  // namespace
}  // namespace spmmbench
