#include "report/consistency.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <limits>

#include "result_rows.hpp"

namespace spmmbench {
namespace {

std::string found_in(const std::function<void(ResultRow&)>& edit) {
  ResultRow row = row_of("k", "fp16", 10);
  edit(row);
  return contradiction_in(row);
}

TEST(Consistency, WhatARunWritesHasNoContradiction) {
  EXPECT_EQ(found_in([](ResultRow&) {}), "");
  EXPECT_EQ(found_in([](ResultRow& row) { row.hot->median_us *= 1.0001; }), "") << "rounded";
  EXPECT_EQ(found_in([](ResultRow& row) {
              row.status = Status::failed;
              row.verify = std::nullopt;
              row.hot = row.cold = std::nullopt;
            }),
            "");
  EXPECT_EQ(found_in([](ResultRow& row) { row.exact.emplace().not_made = "too long"; }), "");
}

TEST(Consistency, AnOkRowWithAFaultIsContradictory) {
  EXPECT_EQ(found_in([](ResultRow& row) { row.verify = std::nullopt; }),
            "is ok without a verification");
  EXPECT_EQ(found_in([](ResultRow& row) { row.verify->error_over_bound = 50; }),
            "is ok with an error of 50 x its bound");
  EXPECT_EQ(found_in([](ResultRow& row) {
              row.verify->error_over_bound = std::numeric_limits<double>::quiet_NaN();
            }),
            "is ok with an error of nan x its bound");
  EXPECT_EQ(found_in([](ResultRow& row) { row.exact.emplace(); }),
            "is ok though its exact test failed");
}

TEST(Consistency, TimesMustBeThoseOfTheSamples) {
  EXPECT_EQ(found_in([](ResultRow& row) { row.hot->median_us = 1; }),
            "has a hot median of 1 us, and samples with one of 10 us");
  EXPECT_EQ(found_in([](ResultRow& row) { row.hot->median_us = 0; }),
            "has a hot median of 0 us, and samples with one of 10 us");
  EXPECT_EQ(found_in([](ResultRow& row) { row.cold->samples_us = {0}; }),
            "has cold samples that are no time above 0");
  EXPECT_EQ(found_in([](ResultRow& row) { row.hot->samples_us.clear(); }),
            "has hot times without samples");
}

TEST(Consistency, StagesTakeFiniteTime) {
  EXPECT_EQ(found_in([](ResultRow& row) { row.stages_ms["build"] = -4; }),
            "has a stage 'build' of -4 ms");
  EXPECT_EQ(found_in([](ResultRow& row) {
              row.stages_ms["build"] = std::numeric_limits<double>::infinity();
            }),
            "has a stage 'build' of inf ms");
}

}  // namespace
}  // namespace spmmbench
