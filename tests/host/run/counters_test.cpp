#include <gtest/gtest.h>

#include <algorithm>

#include "run/counters.hpp"
#include "spmmbench/error.hpp"

namespace spmmbench {
namespace {

// ncu 2025.3.1 on an H200, two launches of cusparse_csr_default; columns left out.
constexpr const char* kRecorded =
    R"csv(==WARNING== Note: Running with unmodified GPU clocks. If not controlled otherwise, profiling results may be inconsistent.
==PROF== Connected to process 2278 (./spmmbench)
==PROF== Disconnected from process 2278
"ID","Process ID","Process Name","Kernel Name","Block Size","CC","dram__bytes.sum","gpu__time_duration.sum","lts__t_bytes.sum","lts__t_sectors.sum","lts__t_sectors_lookup_hit.sum","sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed","sm__throughput.avg.pct_of_peak_sustained_elapsed"
"","","","","","","byte","ns","byte","sector","sector","%","%"
"0","2278","spmmbench","void csrmm_alg2_kernel<0, 0, 0, int, ""x"">(T4, const T4 *)","(128, 1, 1)","9.0","28,167,936","60,832","288,103,488","9,003,234","7,889,074","0.35","60.54"
"1","2278","spmmbench","void csrmm_alg2_kernel<0, 0, 0, int, ""x"">(T4, const T4 *)","(128, 1, 1)","9.0","28,408,320","60,896","288,167,936","9,005,248","7,877,861","0.35","60.46"
)csv";

std::string message_of(const std::string& text) {
  try {
    parse_ncu_csv(text);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  return text.replace(text.find(from), from.size(), to);
}

TEST(Counters, ARecordedSampleIsRead) {
  const auto kernels = parse_ncu_csv(kRecorded);
  ASSERT_EQ(kernels.size(), 2U);
  EXPECT_EQ(kernels[0].kernel, "void csrmm_alg2_kernel<0, 0, 0, int, \"x\">(T4, const T4 *)");
  EXPECT_EQ(kernels[0].values.at("dram__bytes.sum"), 28167936);
  EXPECT_EQ(kernels[1].values.at("gpu__time_duration.sum"), 60896);
}

TEST(Counters, BytesAddUpAndUtilisationsAreWeightedByTime) {
  const auto kernel = [](double ns, double sm, double sectors, double hits) {
    return KernelCounters{"k",
                          {{"gpu__time_duration.sum", ns},
                           {"sm__throughput.avg.pct_of_peak_sustained_elapsed", sm},
                           {"sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed", 8},
                           {"dram__bytes.sum", 100},
                           {"lts__t_bytes.sum", 32 * sectors},
                           {"lts__t_sectors.sum", sectors},
                           {"lts__t_sectors_lookup_hit.sum", hits}}};
  };
  const auto combined = combine_counters({kernel(3000, 80, 10, 9), kernel(1000, 40, 30, 1)});
  EXPECT_DOUBLE_EQ(combined.at("profile_kernels"), 2);
  EXPECT_DOUBLE_EQ(combined.at("profile_duration_us"), 4);
  EXPECT_DOUBLE_EQ(combined.at("profile_sm_throughput_pct"), 70);
  EXPECT_DOUBLE_EQ(combined.at("profile_tensor_pipe_pct"), 8);
  EXPECT_DOUBLE_EQ(combined.at("profile_dram_bytes"), 200);
  EXPECT_DOUBLE_EQ(combined.at("profile_l2_bytes"), 1280);
  EXPECT_DOUBLE_EQ(combined.at("profile_l2_hit_pct"), 25);
}

TEST(Counters, TheHitRateIsThatOfNcu) {
  auto kernels = parse_ncu_csv(kRecorded);
  kernels.pop_back();
  EXPECT_NEAR(combine_counters(kernels).at("profile_l2_hit_pct"), 87.62, 0.005);
}

TEST(Counters, WhatNcuComplainsOfIsTheMessage) {
  EXPECT_EQ(message_of("==ERROR== ERR_NVGPUCTRPERM - no permission\n"),
            "ncu: ==ERROR== ERR_NVGPUCTRPERM - no permission");
  EXPECT_EQ(message_of("==WARNING== No kernels were profiled.\n"), "ncu counted no kernel");
  EXPECT_EQ(message_of(replaced(kRecorded, "dram__bytes.sum", "dram__blocks")),
            "ncu gave no dram__bytes.sum");
  EXPECT_EQ(message_of(replaced(kRecorded, "\"ns\"", "\"us\"")),
            "ncu: gpu__time_duration.sum in 'us', expected 'ns'");
  EXPECT_EQ(message_of(replaced(kRecorded, "60,832", "n/a")),
            "ncu: gpu__time_duration.sum: expected a number, got 'n/a'");
}

TEST(Counters, TheCommandCountsTheRangeAndLeavesTheClocksAlone) {
  const auto arguments = ncu_arguments(false);
  EXPECT_EQ(arguments[0], "--profile-from-start");
  EXPECT_NE(std::find(arguments.begin(), arguments.end(), "spmmbench/"), arguments.end());
}

TEST(Counters, TheCachesAreFlushedForAColdLaunchOnly) {
  for (const bool cold : {false, true}) {
    const auto arguments = ncu_arguments(cold);
    const auto at = std::find(arguments.begin(), arguments.end(), "--cache-control");
    ASSERT_LT(at + 1, arguments.end());
    EXPECT_EQ(*(at + 1), cold ? "all" : "none");
  }
}

}  // namespace
}  // namespace spmmbench
