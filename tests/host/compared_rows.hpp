#pragma once
// Documents to compare, and their comparison.

#include <string>
#include <vector>

#include "report/comparison.hpp"
#include "timing/quantiles.hpp"

namespace spmmbench {

inline ResultRow row_of(const std::string& kernel, double us) {
  ResultRow row;
  row.matrix = {"m", "m.mtx", std::string(64, 'a'), 10, 10, 20, 2, 0, 2};
  row.n = 128;
  row.kernel = kernel;
  row.precision = "fp16";
  row.c_type = "fp32";
  row.layout = "row";
  row.reorder = "none";
  row.status = Status::ok;
  std::vector<double> samples;
  for (int i = 0; i < 30; ++i) samples.push_back(us * (1 + 0.001 * (i * 7 % 11)));
  row.hot = summarise(samples, 1);
  for (double& sample : samples) sample *= 2;
  row.cold = summarise(samples, 1);
  return row;
}

inline ResultRow broken_row(const std::string& kernel, Status status, const std::string& reason) {
  ResultRow row = row_of(kernel, 1);
  row.status = status;
  row.reason = reason;
  row.hot.reset();
  row.cold.reset();
  return row;
}

inline InputDocument document_of(std::vector<ResultRow> rows) {
  InputDocument input{"x.json", {}};
  input.document.context.device.name = "GPU";
  input.document.context.device.kind = DeviceKind::cuda;
  input.document.context.protocol = {{"noise_limit", "0.01"}};
  input.document.context.git_revision = "abc";
  input.document.rows = std::move(rows);
  input.document.complete = true;
  return input;
}

// Five runs of the same rows, whose levels differ by a tenth of a percent.
inline std::vector<InputDocument> five_runs(const std::vector<ResultRow>& rows) {
  std::vector<InputDocument> runs;
  for (const double level : {1.0, 1.001, 0.999, 1.0005, 0.9995}) {
    runs.push_back(document_of(rows));
    for (ResultRow& row : runs.back().document.rows)
      for (std::optional<Timing>* timing : {&row.hot, &row.cold})
        if (*timing)
          for (double& us : (*timing)->samples_us) us *= level;
  }
  return runs;
}

inline Comparison compare(const std::vector<ResultRow>& base, const std::vector<ResultRow>& fresh,
                          const ComparisonOptions& options = {}) {
  return compare_documents(five_runs(base), five_runs(fresh), options);
}

inline Comparison compare_single_runs(const std::vector<ResultRow>& base,
                                      const std::vector<ResultRow>& fresh,
                                      const ComparisonOptions& options = {}) {
  return compare_documents({document_of(base)}, {document_of(fresh)}, options);
}

}  // namespace spmmbench
