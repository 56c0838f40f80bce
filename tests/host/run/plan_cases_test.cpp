#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "run/operand_a.hpp"
#include "run/plan.hpp"
#include "run/protocol.hpp"
#include "spmmbench/block_scales.hpp"
#include "spmmbench/error.hpp"
#include "spmmbench/registry.hpp"

namespace spmmbench {
namespace {

TEST(Shard, TheUnionOfAllIsTheWholeAndNoInputIsInTwo) {
  std::vector<std::string> inputs;
  for (int i = 0; i < 11; ++i) inputs.push_back(std::to_string(i));
  for (std::size_t count = 1; count <= 13; ++count) {
    std::multiset<std::string> all;
    for (std::size_t index = 1; index <= count; ++index)
      for (const std::string& input : shard_of(inputs, {index, count})) all.insert(input);
    EXPECT_EQ(all, std::multiset<std::string>(inputs.begin(), inputs.end()));
  }
}

TEST(Shard, ThoseThatLackAreNamed) {
  EXPECT_EQ(missing_shards({"1/3", "2/3"}), "3/3");
  EXPECT_EQ(missing_shards({"2/3", "1/3", "3/3", "2/3"}), "");
  EXPECT_EQ(missing_shards({"1/1", "2/2"}), "1/2") << "each count is a whole of its own";
  EXPECT_EQ(missing_shards({"3/8"}), "1/8, 2/8, 4/8, 5/8 and 3 more");
}

TEST(Shard, OnlyIndicesOfTheCountAreTaken) {
  EXPECT_EQ(parse_shard("2/8").index, 2U);
  for (const char* bad : {"", "/", "0/3", "4/3", "1", "1/", "/2", "a/b", "1/2/3", "-1/2", "1 /2"})
    EXPECT_THROW(parse_shard(bad), Error) << bad;
}

Cases cpu_cases() {
  Cases cases;
  cases.kernels = {"cpu_csr"};
  cases.baselines = false;
  cases.ns = {8, 16};
  cases.precisions = {Precision::fp16, Precision::fp32};
  cases.reorderings = {Spec{"none", {}}, Spec{"degree", {}}};
  return cases;
}

TEST(PlanCases, CrossOrdersPrecisionsAndWidths) {
  const Cases cases = cpu_cases();
  const auto groups = plan_groups(cases, {}, DeviceKind::host);
  const auto planned = plan_cases(cases, groups, cases.ns);
  ASSERT_EQ(planned.size(), 8U);
  EXPECT_EQ(planned[0].reorder->name, "none");
  EXPECT_EQ(planned[7].reorder->name, "degree");
  EXPECT_EQ(planned[0].group, planned[1].group) << "what shares A follows one another";
}

TEST(PlanCases, WithoutNoneOnlyReorderedCasesAreThere) {
  Cases cases = cpu_cases();
  cases.reorderings = {Spec{"degree", {}}};
  const auto groups = plan_groups(cases, {}, DeviceKind::host);
  for (const PlannedCase& planned : plan_cases(cases, groups, {8}))
    EXPECT_EQ(planned.reorder->name, "degree");
}

TEST(PlanCases, ImpliedBaselinesRunInTheOrderOfTheMatrixAlone) {
  if (Registry<Kernel>::instance().find("eigen_csr") == nullptr) GTEST_SKIP() << "built without";
  Cases cases = cpu_cases();
  cases.baselines = true;
  cases.reorderings = {Spec{"degree", {}}};
  const auto groups = plan_groups(cases, {}, DeviceKind::host);
  for (const PlannedCase& planned : plan_cases(cases, groups, {8}))
    EXPECT_EQ(planned.reorder->name, planned.group->implied ? "none" : "degree");
}

TEST(Plan, BaselinesAreImpliedWhereTheyWereNotAskedForNorExcluded) {
  if (Registry<Kernel>::instance().find("eigen_csr") == nullptr) GTEST_SKIP() << "built without";
  Cases cases = cpu_cases();
  cases.baselines = true;
  const auto implied = [&] {
    std::vector<std::string> found;
    for (const PrecisionGroup& group : plan_groups(cases, {}, DeviceKind::host))
      for (const KernelChoice& choice : group.kernels)
        if (group.implied)
          found.push_back(choice.label() + " " + std::string(to_string(group.precision)));
    return found;
  };
  using Names = std::vector<std::string>;
  EXPECT_EQ(implied(), (Names{"eigen_csr fp16", "eigen_csr fp32"})) << "fp32 once";
  cases.precisions = {Precision::fp32};
  EXPECT_EQ(implied(), Names{"eigen_csr fp32"});
  cases.kernels = {"cpu_csr", "eigen_csr"};
  EXPECT_EQ(implied(), Names{}) << "asked for";
  cases.kernels = {"cpu_csr"};
  cases.exclude = {"eigen*"};
  EXPECT_EQ(implied(), Names{});
  cases.exclude.clear();
  cases.c_type = ElementType::f16;
  EXPECT_EQ(implied().back(), "eigen_csr fp32") << "of C in fp32";
  const auto groups = plan_groups(cases, {}, DeviceKind::host);
  EXPECT_TRUE(std::ranges::any_of(groups, [](const PrecisionGroup& group) {
    return group.implied && group.c_type == ElementType::f32;
  }));
}

TEST(Plan, AKernelIsTakenOnceWithEachSetOfOptions) {
  Cases cases = cpu_cases();
  cases.precisions = {Precision::fp32};
  cases.kernels = {"cpu_csr", "cpu*", "auto?tune=0", "auto?tune=1", "auto?tune=0"};
  std::vector<std::string> labels;
  const auto groups = plan_groups(cases, {}, DeviceKind::host);
  for (const KernelChoice& choice : groups.at(0).kernels) labels.push_back(choice.label());
  EXPECT_EQ(std::ranges::count(labels, "cpu_csr"), 1);
  EXPECT_EQ(std::set<std::string>(labels.begin(), labels.end()).size(), labels.size());
}

TEST(Protocol, IsReadBackAsTheOptionsItWasWrittenFrom) {
  Work work{cpu_cases(), {}};
  work.protocol.limits = {.noise = 0.02, .min_samples = 7, .max_samples = 77, .max_seconds = 0.5};
  work.cases.load.prune = "block:64x64:0.9";
  work.cases.load.dims = {30, 40};
  work.cases.load.seed = 9;
  work.cases.b_dims = {40, 5};
  work.cases.b_file = "b.bin";
  work.protocol.isolate = true;
  RunContext context;
  context.protocol = protocol_of(work.cases, work.protocol);
  context.seed = work.cases.load.seed;
  const Work back = work_of(context);
  EXPECT_EQ(protocol_of(back.cases, back.protocol).at("isolated"), "no")
      << "that is where cases run, not how";
  Work expected = work;
  expected.protocol.isolate = false;
  EXPECT_EQ(protocol_of(back.cases, back.protocol), protocol_of(expected.cases, expected.protocol));
  EXPECT_EQ(context.protocol.at("isolated"), "yes");
  EXPECT_EQ(context.protocol.at("prune"), "block:64x64:0.9");
  EXPECT_EQ(back.cases.load.seed, 9U);
  EXPECT_EQ(back.cases.load.dims, work.cases.load.dims);
  EXPECT_EQ(back.cases.b_dims, work.cases.b_dims);
  EXPECT_EQ(back.cases.b_file, "b.bin");
  EXPECT_EQ(back.protocol.limits.max_samples, 77);
  EXPECT_EQ(back.protocol.device, -1) << "no GPU";
  context.device.kind = DeviceKind::cuda;
  context.device.index = 3;
  EXPECT_EQ(work_of(context).protocol.device, 3);
  context.protocol.erase("max_samples");
  EXPECT_THROW(work_of(context), Error);
}

TEST(PlannedRow, ItsCommandNamesWhatDecidesTheResult) {
  Cases cases = cpu_cases();
  cases.load.seed = 7;
  cases.load.prune = "block:64x64:0.9";
  const auto groups = plan_groups(cases, {}, DeviceKind::host);
  const auto planned = plan_cases(cases, groups, {8});
  MatrixSummary matrix;
  matrix.source = "a b's.npy";
  EXPECT_EQ(planned_row(cases, matrix, planned.back()).command,
            "spmmbench run 'a b'\\''s.npy' -n 8 -k cpu_csr --precision fp32 --reorder degree "
            "--seed 7 --prune block:64x64:0.9 --no-baselines");
  cases.layout = Layout::col_major;
  EXPECT_EQ(planned_row(cases, matrix, planned.back()).layout, "col");
}

CsrMatrix sample_matrix() { return {3, 4, {0, 1, 3, 3}, {0, 1, 3}, {0.1F, 3000.0F, -0.25F}}; }

TEST(OperandA, ValuesAreRoundedAndComeBack) {
  const CsrMatrix original = sample_matrix();
  OperandA a(original);
  const Spec none{"none", {}};
  a.select(none, Precision::bf16);
  EXPECT_EQ(a.csr().values[0], round_to(Precision::bf16, 0.1F));
  EXPECT_EQ(a.log2_scale(), 0);
  a.select(none, Precision::fp32);
  EXPECT_EQ(a.csr(), original);
  EXPECT_TRUE(a.row_ids().empty());
}

TEST(OperandA, LargeValuesAreScaledIntoTheRangeOfFp16) {
  OperandA a(sample_matrix());
  a.select({"none", {}}, Precision::fp16);
  EXPECT_EQ(a.log2_scale(), -11);
  EXPECT_EQ(a.csr().values[1], round_to(Precision::fp16, 3000.0F / 2048));
  a.select({"none", {}}, Precision::tf32);
  EXPECT_EQ(a.log2_scale(), 0);
  EXPECT_EQ(a.csr().values[1], 3000.0F);
}

TEST(OperandA, SmallValuesAreScaledIntoTheRangeOfThePrecisionAndZerosAreCounted) {
  CsrMatrix tiny = sample_matrix();
  for (float& value : tiny.values) value = std::ldexp(value, -60);
  OperandA a(tiny);
  a.select({"none", {}}, Precision::fp16);
  EXPECT_EQ(a.log2_scale(), 49);  // 3000 * 2^-60 becomes 1.46
  EXPECT_EQ(a.csr().values[1], round_to(Precision::fp16, 3000.0F / 2048));
  EXPECT_EQ(a.rounded_to_zero(), 0);
  a.select({"none", {}}, Precision::fp32);
  EXPECT_EQ(a.log2_scale(), 0) << "normal numbers of fp32";
  EXPECT_EQ(a.csr(), tiny);

  tiny.values.assign(tiny.values.size(), 1);
  tiny.values[0] = 1e-9F;
  OperandA mixed(tiny);
  mixed.select({"none", {}}, Precision::fp16);
  EXPECT_EQ(mixed.log2_scale(), 0);
  EXPECT_EQ(mixed.rounded_to_zero(), 1);
  mixed.select({"none", {}}, Precision::bf16);
  EXPECT_EQ(mixed.rounded_to_zero(), 0);
}

TEST(OperandA, InFp8HasAScaleInEveryOrderOfRows) {
  CsrMatrix mixed = sample_matrix();
  mixed.values[0] = 0.001F;
  OperandA a(mixed);
  for (const char* const order : {"none", "degree"}) {
    a.select({order, {}}, Precision::fp8_e4m3);
    EXPECT_EQ(a.csr().scale, 3000.0F / 448);
    EXPECT_EQ(*std::max_element(a.csr().values.begin(), a.csr().values.end()), 448);
    EXPECT_EQ(a.rounded_to_zero(), 1) << "0.001 beside 3000";
    EXPECT_EQ(a.log2_scale(), 0);
  }
  a.select({"none", {}}, Precision::fp32);
  EXPECT_EQ(a.csr(), mixed);
  CsrMatrix huge = sample_matrix();
  for (float& value : huge.values) value = std::ldexp(value, 100);
  OperandA of_huge(huge);
  of_huge.select({"none", {}}, Precision::fp8_e4m3);
  EXPECT_EQ(of_huge.log2_scale(), -111);
  EXPECT_EQ(of_huge.csr().scale, 3000.0F / 2048 / 448);
}

TEST(OperandA, WithScalesOfBlocksRoundsEachBlockForItself) {
  CsrMatrix two_blocks{1, 256, {0, 3}, {0, 1, 255}, {3000, 0.001F, 0.004F}};
  OperandA a(two_blocks);
  a.select({"none", {}}, Precision::fp8_e4m3_block);
  EXPECT_EQ(a.csr().scale, 1);
  EXPECT_EQ(a.csr().values, (std::vector<float>{448, 0, 0.625F}));
  EXPECT_EQ(a.csr().block_scales[1], kLeastScale * (3000.0F / 448)) << "not 0.004 / 448";
  EXPECT_EQ(a.rounded_to_zero(), 1) << "0.001 beside 3000";
  a.select({"none", {}}, Precision::fp32);
  EXPECT_EQ(a.csr(), two_blocks);
}

TEST(OperandA, SubnormalAndHugeValuesOfFp32AreScaledExactly) {
  CsrMatrix matrix = sample_matrix();
  for (const double extreme : {1e-42, 3e38}) {
    matrix.values.assign(matrix.values.size(), static_cast<float>(extreme));
    OperandA a(matrix);
    a.select({"none", {}}, Precision::fp32);
    EXPECT_GE(a.csr().values[0], 1);
    EXPECT_LT(a.csr().values[0], 2);
    EXPECT_EQ(std::ldexp(a.csr().values[0], -a.log2_scale()), matrix.values[0]);
    a.select({"degree", {}}, Precision::tf32);
    EXPECT_GE(a.csr().values[0], 1);
  }
}

TEST(OperandA, ReorderedRowsKeepTheirIdsAndTheOriginalStays) {
  const CsrMatrix original = sample_matrix();
  OperandA a(original);
  const Spec degree{"degree", {}};
  for (const Precision precision : {Precision::fp16, Precision::fp32}) {
    a.select(degree, precision);
    ASSERT_EQ(a.row_ids().size(), 3U);
    for (std::int64_t row = 0; row < 3; ++row)
      EXPECT_EQ(a.csr().row_length(row), original.row_length(a.row_ids()[row]));
  }
  a.select({"none", {}}, Precision::fp32);
  EXPECT_EQ(a.csr(), original);
}

TEST(OperandA, ValuesInFp64AreThoseOfTheFileAndThenGoAway) {
  CsrMatrix loaded = sample_matrix();
  loaded.values64 = {0.1, 3000.0000001, -0.25};
  OperandA a(loaded);
  EXPECT_TRUE(a.csr().values64.empty());
  a.select({"none", {}}, Precision::fp64);
  EXPECT_EQ(a.csr(), loaded);
  a.select({"degree", {}}, Precision::fp64);
  for (std::int64_t row = 0, e = 0; row < 3; ++row)
    for (std::int64_t of = loaded.row_ptr[a.row_ids()[row]]; e < a.csr().row_ptr[row + 1];
         ++e, ++of)
      EXPECT_EQ(a.csr().value(e), loaded.value(of));
  a.select({"none", {}}, Precision::fp16);
  EXPECT_TRUE(a.csr().values64.empty());
  a.select({"none", {}}, Precision::fp64, true);
  EXPECT_EQ(a.csr().values64, std::vector<double>(3, 1));
}

TEST(OperandA, WithoutValuesInFp64ThoseOfFp32AreWidened) {
  OperandA a(sample_matrix());
  a.select({"none", {}}, Precision::fp64);
  EXPECT_EQ(a.csr().values64, (std::vector<double>{0.1F, 3000, -0.25}));
}

TEST(OperandA, HugeValuesOfFp64AreScaled) {
  CsrMatrix huge = sample_matrix();
  huge.values64 = {1e300, 1, -1};
  OperandA a(huge);
  a.select({"none", {}}, Precision::fp64);
  EXPECT_GE(a.csr().value(0), 1);
  EXPECT_LT(a.csr().value(0), 2);
  EXPECT_EQ(std::ldexp(a.csr().value(0), -a.log2_scale()), 1e300);
}

TEST(OperandA, AnOrderingThatFailsLeavesTheMatrixAsLoaded) {
  OperandA a(sample_matrix());
  a.select({"none", {}}, Precision::fp16);
  EXPECT_THROW(a.select({"no_such_order", {}}, Precision::fp16), Error);
  EXPECT_EQ(a.csr(), sample_matrix());
}

}  // namespace
}  // namespace spmmbench
