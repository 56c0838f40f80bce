#pragma once
// What a machine's own unsteadiness is worth: how far the medians of repeated runs of the same case
// lie apart, and the smallest change that a comparison can therefore tell from it.

#include <map>
#include <string>
#include <vector>

#include "spmmbench/result.hpp"

namespace spmmbench {

// A case in any run of any revision: matrix name and hash, N, kernel, precision, C type, layout and
// reordering.
std::string comparison_key(const ResultRow& row);

class Calibration {
 public:
  explicit Calibration(RunContext context) : context_(std::move(context)) {}

  void add(const std::string& key, double median_us) { medians_us_[key].push_back(median_us); }

  // Four standard deviations of the difference between `runs` runs and as many others, from the
  // larger of the case's own spread and all cases' together; at least 0.5 %. A fraction: 0.02.
  double min_effect(const std::string& key, int runs) const;
  double min_effect() const { return min_effect({}, 1); }  // of cases together, one run per side

  const RunContext& context() const { return context_; }

  void write(const std::string& path) const;  // JSON
  static Calibration read(const std::string& path);

 private:
  RunContext context_;  // of the runs
  std::map<std::string, std::vector<double>> medians_us_;
};

}  // namespace spmmbench
