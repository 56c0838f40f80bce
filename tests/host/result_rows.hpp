#pragma once
// Rows as a run would write them, for the tests of src/report.

#include <cstdint>
#include <string>
#include <vector>

#include "report/baselines.hpp"
#include "spmmbench/result.hpp"
#include "timing/quantiles.hpp"

namespace spmmbench {

inline ResultRow row_of(const std::string& kernel, const std::string& precision, double hot_us,
                        bool baseline = false) {
  ResultRow row;
  row.matrix = {"m", "m.mtx", "00ff", 10, 20, 30, 3, 0.5, 9};
  row.n = 128;
  row.kernel = kernel;
  row.baseline = baseline;
  row.precision = precision;
  row.c_type = "fp32";
  row.layout = "row";
  row.reorder = "none";
  row.status = Status::ok;
  row.stages_ms = {{"load", 5}, {"build", 2}, {"upload", 1}};
  row.verify = Verdict{true, 0.25, 1, 2, 1e-8};
  row.hot = summarise({hot_us, hot_us + 1, hot_us - 1}, 10);
  row.cold = summarise({hot_us * 2}, 1);
  row.gflops = 1.5;
  row.bound_us = 1;
  row.of_bound = 1 / hot_us;
  row.command = "spmmbench run m.mtx";
  return row;
}

// With so much preparation, all of it "build".
inline ResultRow prepared(ResultRow row, double ms) {
  row.stages_ms = {{"load", 5}, {"build", ms}};
  return row;
}

inline std::vector<ResultRow> filled(std::vector<ResultRow> rows, std::int64_t calls = 0) {
  Baselines baselines(calls);
  for (const ResultRow& row : rows) baselines.add(row);
  for (ResultRow& row : rows) baselines.fill(row);
  return rows;
}

}  // namespace spmmbench
