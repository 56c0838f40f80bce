#pragma once
// How far runs of one build differ on a machine: the medians of every case in repeated runs.

#include <iosfwd>
#include <map>
#include <string>
#include <vector>

#include "io/output.hpp"
#include "spmmbench/result.hpp"

namespace spmmbench {

// The keys of the rows of one document, by case_key. A document of version 0.1 may hold a matrix
// twice, as x.mtx and x.csr: the second row of a case is a case of its own.
class ComparisonKeys {
 public:
  std::string next(const ResultRow& row);

 private:
  std::map<std::string, int> rows_;  // so far, by case_key
};

class Calibration {
 public:
  explicit Calibration(RunContext context) : context_(std::move(context)) {}

  void add(const std::string& key, double median_us) { medians_us_[key].push_back(median_us); }

  // The medians in the order measured; empty for a case that was not measured.
  std::vector<double> medians_us(const std::string& key) const;

  // Whether any case has two times: else nothing shows how far runs differ.
  bool shows_spread() const;
  // Four standard deviations of the difference between two runs of a case, all cases together. A
  // fraction: 0.02.
  double resolution() const;
  // Throws Error(not_able_to_tell) with advice when the resolution is coarser than 50 %: nothing
  // that is worth finding shows through runs that differ so much. `path` begins the message.
  void require_usable(const std::string& path) const;

  const RunContext& context() const { return context_; }

  void write(OutputFile& file) const;  // JSON; commits
  static Calibration read(const std::string& path);

 private:
  static Calibration read(const std::string& path, std::istream& file);

  RunContext context_;  // of the runs
  std::map<std::string, std::vector<double>> medians_us_;
};

}  // namespace spmmbench
