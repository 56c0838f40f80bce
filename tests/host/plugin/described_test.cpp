#include "plugin/described.hpp"

#include <gtest/gtest.h>

#include "spmmbench/error.hpp"

namespace spmmbench {
namespace {

// A kernel with one option, whose value 2 changes all that can change.
KernelInfo varied() {
  KernelInfo info;
  info.name = "mine:varied";
  info.device = DeviceKind::host;
  info.precisions = {Precision::fp16};
  info.layouts = {Layout::row_major, Layout::col_major};
  info.adds_to_c = true;
  info.sizes.allowed_n = {8, 16};
  info.options = {choice_option("split", "1", {"1", "2"}, "parts of a sum")};
  info.a_memory = {DeviceKind::host, DeviceKind::cuda};
  info.flags = {"adds_to_c", "keeps_a"};
  info.variants = {{.option = "split",
                    .value = "2",
                    .accumulation = Accumulation::fp16,
                    .c_types = {ElementType::f16},
                    .layouts = {Layout::row_major},
                    .n_multiple = 32,
                    .max_n = 64}};
  return info;
}

TEST(DescribedKernel, WhatAChildTellsOfAKernelIsWhatThisProcessKnows) {
  const KernelInfo told = varied();
  const DescribedKernel kernel("libmine.so", told);
  const auto kernels = read_kernels("libmine.so", describe_kernels({&kernel}));
  ASSERT_EQ(kernels.size(), 1U);
  const KernelInfo& known = kernels[0]->info();
  EXPECT_TRUE(known.adds_to_c);
  EXPECT_EQ(known.a_memory, told.a_memory);
  EXPECT_EQ(known.flags, told.flags);
  EXPECT_EQ(describe_kernels({kernels[0].get()}), describe_kernels({&kernel}));
}

TEST(DescribedKernel, AVariantOfAnUnknownOptionIsRefused) {
  KernelInfo info = varied();
  info.options.clear();
  const DescribedKernel kernel("libmine.so", info);
  EXPECT_THROW(read_kernels("libmine.so", describe_kernels({&kernel})), Error);
}

TEST(Variant, AppliesWhereItsOptionHasItsValue) {
  const KernelInfo info = varied();
  Options options;
  options.set("split", "2");
  const KernelInfo with = info_with(info, options);
  EXPECT_EQ(with.accumulation, Accumulation::fp16);
  EXPECT_EQ(with.c_types, std::vector{ElementType::f16});
  EXPECT_EQ(with.layouts, std::vector{Layout::row_major});
  EXPECT_EQ(with.sizes.text(), "N a multiple of 32, N at most 64");
  options.set("split", "1");
  EXPECT_EQ(info_with(info, options).sizes.text(), "N 8, 16");
}

TEST(Variant, OfTheDefaultAppliesWhereNothingIsSaid) {
  KernelInfo info = varied();
  info.variants[0].value = "1";
  EXPECT_EQ(info_with(info, {}).accumulation, Accumulation::fp16);
}

TEST(Variant, ALaterOneDecidesAndKeepsWhatItDoesNotName) {
  KernelInfo info = varied();
  info.variants.push_back({.option = "split", .value = "2", .max_n = 256});
  Options options;
  options.set("split", "2");
  const KernelInfo with = info_with(info, options);
  EXPECT_EQ(with.sizes.text(), "N a multiple of 32, N at most 256");
  EXPECT_EQ(with.accumulation, Accumulation::fp16);
}

}  // namespace
}  // namespace spmmbench
