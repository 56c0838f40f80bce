#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <filesystem>
#include <numeric>

#include "fake_device.hpp"
#include "io/dense_file.hpp"
#include "io_fixtures.hpp"
#include "measure/case.hpp"
#include "measure/planted_case.hpp"
#include "measure/preparation.hpp"
#include "run/failing.hpp"
#include "spmmbench/error.hpp"
#include "verify/reference.hpp"

namespace spmmbench {
namespace {

class RunCase : public ::testing::Test {
 protected:
  bool run(Fault fault, std::int64_t n = 6, ReferenceChecker* other_reference = nullptr) {
    return run(PlantedKernel(fault), n, other_reference);
  }
  bool run(const PlantedKernel& kernel, std::int64_t n = 6,
           ReferenceChecker* other_reference = nullptr) {
    PreparedA prepared;
    return run(kernel, prepared, n, other_reference);
  }

  bool run(const PlantedKernel& kernel, PreparedA& prepared, std::int64_t n,
           ReferenceChecker* other_reference = nullptr) {
    const KernelChoice choice{&kernel, options_};
    const Operands operands = make_operands(a_, n, Precision::fp32, ElementType::f32,
                                            Layout::row_major, nullptr, 1, device_);
    const auto reference = make_reference(a_, {}, operands.b, device_);
    CaseInput input;
    input.choice = &choice;
    input.problem.a = &a_;
    input.problem.n = n;
    input.problem.options = options_;
    input.prepared = &prepared;
    input.device = &device_;
    input.operands = &operands;
    input.reference = other_reference != nullptr ? other_reference : reference.get();
    input.a_checksum = checksum_of_a(input.problem, device_);
    input.bound_us = 5;
    if (found_) input.found = found_;
    ExactOperands exact(a_, {}, nullptr, 1, {.sum_bits = exactly_});
    if (exactly_) input.exact = &exact;
    input.free_memory = [&] { input.reference->release_memory(); };
    if (!save_failing_.empty())
      input.save_wrong = [&](const ResultRow& row, const Problem& problem, const DenseView& b,
                             const Update& update) {
        return save_failing(save_failing_, row, problem, b, operands.c, update, device_);
      };
    row_ = {};
    row_.matrix.sha256 = sha256_;
    return run_case(input, {.noise = 0.01, .min_samples = 5, .max_samples = 5, .max_seconds = 1},
                    row_);
  }

  FakeDevice device_;
  Options options_;
  std::shared_ptr<FoundInA> found_;  // null: each case has its own
  int exactly_ = 0;                  // bits of the sums of the exact test; 0: without it
  std::string save_failing_, sha256_;
  CsrMatrix a_{3, 4, {0, 2, 3, 3}, {0, 3, 1}, {0.5F, -0.25F, 2.0F}};
  ResultRow row_;
};

TEST_F(RunCase, ARightKernelIsTimedHotAndCold) {
  EXPECT_TRUE(run(Fault::none));
  EXPECT_EQ(row_.status, Status::ok);
  EXPECT_DOUBLE_EQ(row_.hot->median_us, 10);
  EXPECT_EQ(row_.cold->n(), 5);
  EXPECT_DOUBLE_EQ(*row_.of_bound, 0.5);
  EXPECT_DOUBLE_EQ(*row_.gflops, 2.0 * 3 * 6 / 10 / 1e3);
  EXPECT_TRUE(row_.stages_ms.contains("build"));
  EXPECT_GT(row_.hot->launches_per_sample, 1);
  EXPECT_EQ(row_.cold->launches_per_sample, 1);
  EXPECT_DOUBLE_EQ(*row_.bound_us, 5);
  EXPECT_DOUBLE_EQ(*row_.issued_flops, 2.0 * 3 * 6);
  EXPECT_EQ(row_.metrics.at("planted"), 1);
}

TEST_F(RunCase, WhatErrorsMayBeIsFoundOnceForEveryNAndBound) {
  found_ = std::make_shared<FoundInA>();
  for (const std::int64_t n : {6, 7, 6, 7}) {
    found_->values_not_zero.reset();
    EXPECT_TRUE(run(Fault::none, n));
    EXPECT_EQ(row_.status, Status::ok);
    EXPECT_EQ(found_->values_not_zero, a_.nnz());
  }
  ASSERT_EQ(found_->mean_errors.size(), 2U);
  EXPECT_EQ(found_->mean_errors[0].n, 6);
  EXPECT_EQ(found_->mean_errors[1].n, 7);
  found_->mean_errors[0].bound.unit *= 2;  // of another kernel
  EXPECT_TRUE(run(Fault::none, 6));
  EXPECT_EQ(found_->mean_errors.size(), 3U);
}

TEST_F(RunCase, AnErrorIsComparedWithWhatWasFoundBefore) {
  found_ = std::make_shared<FoundInA>();
  EXPECT_TRUE(run(Fault::none));
  const double error = row_.verify->error_over_mean;
  EXPECT_GT(error, 0);
  ASSERT_EQ(found_->mean_errors.size(), 1U);
  found_->mean_errors[0].error *= 2;
  EXPECT_TRUE(run(Fault::none));
  EXPECT_DOUBLE_EQ(row_.verify->error_over_mean, error / 2);
}

TEST_F(RunCase, AIsPreparedOnceForEveryNAndEachRowTellsTheWhole) {
  const PlantedKernel kernel(Fault::none);
  PreparedA prepared;
  for (const std::int64_t n : {6, 7, 9}) {
    EXPECT_TRUE(run(kernel, prepared, n));
    EXPECT_EQ(row_.status, Status::ok);
    EXPECT_EQ(row_.stages_ms.at("build"), prepared.stages.stages_ms().at("build"));
    EXPECT_TRUE(row_.stages_ms.contains("tune")) << "the shape's own part";
  }
  EXPECT_EQ(kernel.prepared(), kShortPreparations);
}

// Of a first preparation that sleeps: still a short one if the machine lets it sleep 30 ms longer.
constexpr double kHeldUpMs = kShortPreparationMs - 30;
constexpr std::chrono::milliseconds kHeldUp(static_cast<int>(kHeldUpMs));

TEST_F(RunCase, OfAShortPreparationTheFastestOfSeveralCounts) {
  const PlantedKernel uneven(Fault::none, kHeldUp);
  EXPECT_TRUE(run(uneven));
  EXPECT_LT(row_.stages_ms.at("build"), kHeldUpMs);
  EXPECT_EQ(uneven.prepared(), kShortPreparations);
}

TEST_F(RunCase, APartForOneNThatMayHaveBeenHeldUpIsMadeAgain) {
  const PlantedKernel uneven(Fault::none, {}, std::chrono::milliseconds(20));
  PreparedA prepared;
  for (const std::int64_t n : {6, 7, 9}) {
    EXPECT_TRUE(run(uneven, prepared, n));
    EXPECT_EQ(row_.status, Status::ok);
    EXPECT_LT(row_.stages_ms.at("tune"), 20);
  }
  EXPECT_EQ(uneven.prepared(), 2 * kShortPreparations - 1) << "A of 7 columns was shared at first";
}

TEST_F(RunCase, APartForOneNThatMayHaveLoadedCodeOfAGpuIsMadeAgain) {
  constexpr std::chrono::milliseconds kLoading(60);  // more than a short preparation takes
  const PlantedKernel loads(Fault::none, {}, kLoading);
  const KernelChoice choice{&loads, options_};
  PreparedA prepared;
  CaseInput input;
  input.choice = &choice;
  input.problem.a = &a_;
  input.prepared = &prepared;
  input.device = &device_;
  device_.device_info.kind = DeviceKind::cuda;
  for (const std::int64_t n : {6, 7, 9}) {
    input.problem.n = n;
    row_ = {};
    make_plan(input, row_);
    EXPECT_LT(row_.stages_ms.at("tune"), kLoading.count()) << "N = " << n;
  }
}

TEST_F(RunCase, ALongPreparationIsMadeOnce) {
  const PlantedKernel slow(Fault::none, std::chrono::milliseconds(60));
  EXPECT_TRUE(run(slow));
  EXPECT_GE(row_.stages_ms.at("build"), kShortPreparationMs);
  EXPECT_EQ(slow.prepared(), 1);
}

TEST_F(RunCase, WrongKernelsAreFoundWhateverTheyDo) {
  for (const Fault fault :
       {Fault::off_by_a_little, Fault::adds_to_c, Fault::leaves_a_row, Fault::wrong_when_timed,
        Fault::leaves_a_column_when_timed, Fault::leaves_an_empty_row, Fault::wrong_the_second_time,
        Fault::wrong_when_hot, Fault::wrong_when_cold, Fault::leaves_a_column_when_cold,
        Fault::every_fourth_works, Fault::works_where_c_is_nan}) {
    SCOPED_TRACE(static_cast<int>(fault));
    EXPECT_TRUE(run(fault));
    EXPECT_EQ(row_.status, Status::wrong);
    EXPECT_FALSE(row_.hot) << "a wrong result has no time";
    EXPECT_GT(row_.verify->error_over_bound, 1);
    EXPECT_FALSE(row_.reason.empty());
  }
}

TEST_F(RunCase, NoColdLaunchFindsTheCOfTheOneBefore) {
  EXPECT_TRUE(run(Fault::wrong_where_a_cold_launch_finds_an_old_c));
  EXPECT_EQ(row_.status, Status::ok) << row_.reason;
}

TEST_F(RunCase, TheLargestErrorOfAllLaunchesIsReported) {
  a_ = {1, 8, {0, 8}, {0, 1, 2, 3, 4, 5, 6, 7}, std::vector<float>(8, 0.5F)};
  run(Fault::none);
  const double usual = row_.verify->error_over_bound;
  run(Fault::off_at_first);
  EXPECT_EQ(row_.status, Status::ok);
  EXPECT_GT(row_.verify->error_over_bound, usual);
}

TEST_F(RunCase, APreparationThatMeasuresIsMadeAsOftenAsOthers) {
  const PlantedKernel kernel(Fault::picks, kHeldUp);
  EXPECT_TRUE(run(kernel));
  EXPECT_LT(row_.stages_ms.at("build"), kHeldUpMs);
  EXPECT_EQ(kernel.prepared(), kShortPreparations);
}

TEST_F(RunCase, APreparationThatTakesWhatTheOneBeforeKeptDoesNotCount) {
  const PlantedKernel kernel(Fault::picks_what_it_kept, kHeldUp);
  EXPECT_TRUE(run(kernel));
  EXPECT_GE(row_.stages_ms.at("build"), kHeldUpMs);
  EXPECT_EQ(kernel.prepared(), 2);
}

TEST_F(RunCase, TheExactTestIsOfTheKernelThatAMeasurementPicked) {
  const PlantedKernel kernel(Fault::picks);
  PreparedA prepared;
  exactly_ = 24;
  EXPECT_TRUE(run(kernel, prepared, 6));
  EXPECT_EQ(row_.status, Status::ok) << row_.reason;
  EXPECT_TRUE(row_.exact->passed);
  EXPECT_EQ(kernel.prepared(), kShortPreparations + 1) << "once for the test";
  EXPECT_EQ(prepared.exact_kernel, "cpu_csr");
  EXPECT_EQ(kernel.told(), "cpu_csr");
}

TEST_F(RunCase, APickIsNotHeardOfAKernelThatCannotBeToldOne) {
  const PlantedKernel kernel(Fault::picks_what_it_kept);
  PreparedA prepared;
  exactly_ = 24;
  EXPECT_TRUE(run(kernel, prepared, 6));
  EXPECT_EQ(row_.status, Status::ok) << row_.reason;
  EXPECT_EQ(prepared.exact_kernel, "planted");
  EXPECT_FALSE(row_.pick);
}

TEST_F(RunCase, TheExactTestHasTheBitsOfTheKernelThatAMeasurementPicked) {
  const PlantedKernel kernel(Fault::picks);
  PreparedA prepared;
  exactly_ = 1;  // of the one that picks, too few for a row of two nonzeros
  EXPECT_TRUE(run(kernel, prepared, 6));
  EXPECT_EQ(row_.status, Status::ok) << row_.reason;
  EXPECT_EQ(row_.exact->not_made, "");
  EXPECT_TRUE(row_.exact->passed);
  EXPECT_EQ(prepared.exact_a, nullptr) << "its A is gone";
  EXPECT_TRUE(run(Fault::none));
  EXPECT_FALSE(row_.exact->passed) << "it is no other kernel that this one picked";
}

TEST_F(RunCase, TheExactTestFindsTheNonzeroThatTheBoundOfALongRowHides) {
  constexpr std::int64_t kLong = 100'000;
  a_ = {1, kLong, {0, kLong}, std::vector<std::int32_t>(kLong), std::vector<float>(kLong, 0.5F)};
  std::iota(a_.col_idx.begin(), a_.col_idx.end(), 0);
  exactly_ = 24;
  run(Fault::none, 2);
  EXPECT_EQ(row_.status, Status::ok);
  EXPECT_TRUE(row_.exact->passed);
  run(Fault::drops_a_nonzero, 2);
  EXPECT_EQ(row_.status, Status::wrong);
  EXPECT_FALSE(row_.exact->passed);
  EXPECT_TRUE(row_.verify->ok) << "the bound alone says " << row_.verify->error_over_bound;
  EXPECT_EQ(row_.reason, "exact test: C(0, 0) differs from the reference");
  EXPECT_FALSE(row_.hot);
}

TEST_F(RunCase, AWrongResultStaysWrongWhereItCannotBeSaved) {
  const test::ScratchFolder folder;
  save_failing_ = folder.write("file", "in the way") + "/saved";
  EXPECT_TRUE(run(Fault::leaves_a_row));
  EXPECT_EQ(row_.status, Status::wrong);
  EXPECT_TRUE(test::contains(row_.reason, "x bound at C(1, ")) << row_.reason;
  EXPECT_TRUE(test::contains(row_.reason, "; could not be saved: " + save_failing_)) << row_.reason;
}

TEST_F(RunCase, WhatTheExactTestAndTheGuardsFindIsSavedToo) {
  const test::ScratchFolder folder;
  save_failing_ = folder.file("exact");
  exactly_ = 24;
  constexpr std::int64_t kLong = 100'000;
  const CsrMatrix small = a_;
  a_ = {1, kLong, {0, kLong}, std::vector<std::int32_t>(kLong), std::vector<float>(kLong, 0.5F)};
  std::iota(a_.col_idx.begin(), a_.col_idx.end(), 0);
  run(Fault::drops_a_nonzero, 2);
  const std::string saved = row_.reason.substr(row_.reason.find(save_failing_));
  EXPECT_EQ(row_.reason, "exact test: C(0, 0) differs from the reference; saved in " + saved);
  const DenseMatrix got = read_npy(saved + "/got.npy"), want = read_npy(saved + "/want.npy");
  EXPECT_EQ(got.values.size(), 2U);
  EXPECT_NE(got.values, want.values);

  save_failing_ = folder.file("guards");
  exactly_ = false;
  a_ = small;
  run(Fault::writes_before_c);
  EXPECT_EQ(row_.status, Status::wrong);
  EXPECT_TRUE(test::contains(row_.reason, "before its begin; saved in " + save_failing_))
      << row_.reason;
}

TEST_F(RunCase, CasesOfTwoMatricesAreSavedInTwoFolders) {
  const test::ScratchFolder folder;
  save_failing_ = folder.path();
  for (const char* sha256 : {"0123456789", "/../../x"}) {
    sha256_ = sha256;
    run(Fault::leaves_a_row);
  }
  const auto entries = std::filesystem::directory_iterator(folder.path());
  EXPECT_EQ(std::distance(begin(entries), end(entries)), 2);
}

TEST_F(RunCase, TheExactTestIsInNoStage) {
  exactly_ = 24;
  const PlantedKernel kernel(Fault::none);
  PreparedA prepared;
  run(kernel, prepared, 2);
  EXPECT_EQ(kernel.prepared(), kShortPreparations + 1);
  EXPECT_EQ(prepared.stages.stages_ms().size(), 1U);
  EXPECT_GT(row_.exact->ms, 0);
}

TEST_F(RunCase, ARowTooLongForTheExactTestAndTheBoundIsNotRanked) {
  constexpr std::int64_t kLong = std::int64_t{1} << 24;
  a_ = {1, 1, {0, kLong}, std::vector<std::int32_t>(kLong, 0), std::vector<float>(kLong, 0)};
  exactly_ = 24;
  run(Fault::none, 1);
  EXPECT_EQ(row_.exact->not_made,
            "a row of 16777216 nonzeros is too long to be exact in sums of 24 bits");
  EXPECT_EQ(row_.status, Status::failed);
  EXPECT_EQ(
      row_.reason,
      "cannot be verified: the error bound of a row of 16777216 nonzeros lets zeros pass, and "
      "the exact test was not made: " +
          row_.exact->not_made);
  EXPECT_FALSE(row_.hot);
}

TEST_F(RunCase, WhatCannotBeComparedIsNeitherRightNorRanked) {
  a_ = {1, 1, {0, 4}, {0, 0, 0, 0}, {3e38F, 3e38F, -3e38F, -3e38F}};
  run(Fault::none);
  EXPECT_GT(row_.verify->incomparable, 0) << "infinity instead of 0, in this order of the sums";
  EXPECT_EQ(row_.status, Status::failed);
  EXPECT_NE(row_.reason.find("cannot be verified"), std::string::npos);
  EXPECT_FALSE(row_.hot);
}

TEST_F(RunCase, AnErrorBeyondTheTypicalOneIsAWarningAndNoFault) {
  run(Fault::none);
  EXPECT_EQ(error_warning(row_), "");
  row_.verify->error_over_typical = 1.5;
  EXPECT_NE(error_warning(row_).find("1.5 x what random rounding leaves"), std::string::npos);
  row_.status = Status::wrong;
  EXPECT_EQ(error_warning(row_), "") << "its reason says more";
}

TEST_F(RunCase, AnExceptionEndsOneCaseOnly) {
  EXPECT_TRUE(run(Fault::throws));
  EXPECT_EQ(row_.status, Status::failed);
  EXPECT_EQ(row_.reason, "cannot build");
}

TEST_F(RunCase, ATimeBelowThatOfItsProductsIsWrong) {
  device_.launch_us = {1e-9};
  EXPECT_TRUE(run(Fault::none));
  EXPECT_EQ(row_.status, Status::wrong);
  EXPECT_TRUE(row_.reason.starts_with("takes 1e-09 us, and its products alone take "))
      << row_.reason;
  EXPECT_FALSE(row_.hot);
  a_.values = {0, 0, 0};
  EXPECT_TRUE(run(Fault::none));
  EXPECT_EQ(row_.status, Status::ok) << "products with zeros may be left out";
}

TEST_F(RunCase, ALostDeviceIsReported) {
  EXPECT_FALSE(run(Fault::loses_the_device));
  EXPECT_EQ(row_.status, Status::failed);
}

TEST_F(RunCase, AnErrorThatLeavesTheDeviceUsableIsNoLoss) {
  EXPECT_TRUE(run(Fault::fails_on_the_device));
  EXPECT_EQ(row_.status, Status::failed);
  EXPECT_EQ(row_.reason, "too large");
}

TEST_F(RunCase, WhatAKernelDoesNotSupportIsSkippedWithItsReason) {
  EXPECT_TRUE(run(Fault::none, 101));
  EXPECT_EQ(row_.status, Status::skipped);
  EXPECT_EQ(row_.reason, "N is too large");
}

TEST_F(RunCase, PredictedMemoryBeyondTheDeviceIsSkippedBeforeBuilding) {
  EXPECT_TRUE(run(Fault::none, 99));
  EXPECT_EQ(row_.status, Status::skipped);
  EXPECT_TRUE(row_.reason.starts_with("out of host memory: needs ")) << row_.reason;
  device_.device_info.kind = DeviceKind::cuda;
  EXPECT_EQ(out_of_memory(device_, std::size_t{3} << 30),
            "out of device memory: needs 3.00 GiB, 1.00 GiB free");
  EXPECT_TRUE(row_.stages_ms.empty());
}

TEST_F(RunCase, TheReferenceGivesItsMemoryBackOnlyWhereAKernelDoesNotFit) {
  class Reference final : public ReferenceChecker {
   public:
    Verdict check(const DenseView&, const ErrorBound&) override { return {.ok = true}; }
    Verdict check_equal(const DenseView&) override { return {.ok = true}; }
    void release_memory() override { ++releases; }
    int releases = 0;
  } reference;
  run(Fault::none, 6, &reference);
  EXPECT_EQ(reference.releases, 0);
  run(Fault::none, 99, &reference);
  EXPECT_EQ(reference.releases, 1);
}

TEST_F(RunCase, AnUnknownOptionFailsTheCase) {
  options_.set("colour", "blue");
  EXPECT_TRUE(run(Fault::none));
  EXPECT_EQ(row_.status, Status::failed);
}

TEST(Operands, BFromAFileIsRoundedAndItsPaddingIsNan) {
  FakeDevice device;
  const CsrMatrix a{1, 2, {0, 1}, {0}, {1}};
  const DenseMatrix b{2, 3, {1 + 0x1p-20F, 2, 3, 4, 5, 6}};
  const Operands operands =
      make_operands(a, 3, Precision::tf32, ElementType::f32, Layout::row_major, &b, 1, device);
  const auto* data = static_cast<const float*>(operands.b.data);
  EXPECT_EQ(data[0], 1.0F);
  EXPECT_EQ(data[operands.b.ld + 2], 6.0F);
  EXPECT_TRUE(std::isnan(data[3]));
}

TEST(CompulsoryBytes, CountReferencedRowsOfBOnly) {
  const CsrMatrix a{2, 5, {0, 2, 3}, {0, 3, 3}, {1, 1, 1}};
  EXPECT_DOUBLE_EQ(compulsory_bytes(a, 8, Precision::fp16, ElementType::f32),
                   3 * 6 + 3 * 4 + 2 * 8 * 2 + 2 * 8 * 4);
  EXPECT_EQ(count_referenced_columns(a), 2);
  EXPECT_EQ(compulsory_bytes(a, 8, Precision::fp16, ElementType::f32, false, 2),
            compulsory_bytes(a, 8, Precision::fp16, ElementType::f32));
  EXPECT_DOUBLE_EQ(compulsory_bytes(a, 8, Precision::tf32, ElementType::f16),
                   3 * 8 + 3 * 4 + 2 * 8 * 4 + 2 * 8 * 2);
}

}  // namespace
}  // namespace spmmbench
