#include "report/baselines.hpp"

#include <algorithm>
#include <limits>

namespace spmmbench {
namespace {

constexpr std::string_view kDefault = "cusparse_csr_default";
constexpr std::string_view kDefaultVector = "cusparse_spmv";  // the same for N = 1
constexpr std::string_view kCpuDefault = "eigen_csr";

void keep_smaller(std::optional<double>& best, double value) {
  best = best ? std::min(*best, value) : value;
}

}  // namespace

Baselines::Key Baselines::key_of(const ResultRow& row, const std::string& precision,
                                 const std::string& c_type) {
  return {row.matrix.source, row.n, row.layout, precision, c_type};
}

void Baselines::add(const ResultRow& row) {
  if (!row.baseline || row.status != Status::ok || !row.hot || row.reorder != "none") return;
  Best& best = best_[key_of(row, row.precision, row.c_type)];
  if (row.kernel == kDefault) keep_smaller(best.cusparse_default, row.hot->median_us);
  if (row.kernel == kDefault || row.kernel == kDefaultVector)
    keep_smaller(best.cusparse_plain, row.hot->median_us);
  if (row.kernel.starts_with("cusparse_")) keep_smaller(best.cusparse, row.hot->median_us);
  if (row.kernel == kCpuDefault) keep_smaller(best.eigen, row.hot->median_us);
  if (row.kernel.starts_with("cublas_")) keep_smaller(best.cublas, row.hot->median_us);
}

const Baselines::Best* Baselines::find(const ResultRow& row, const std::string& precision,
                                       const std::string& c_type) const {
  const auto it = best_.find(key_of(row, precision, c_type));
  return it == best_.end() ? nullptr : &it->second;
}

void Baselines::fill(ResultRow& row) const {
  row.speedup = {};
  row.break_even_calls.reset();
  if (row.status != Status::ok || !row.hot) return;
  const double mine = row.hot->median_us;
  const auto ratio = [mine](const std::optional<double>& baseline) {
    return baseline ? std::optional(*baseline / mine) : std::nullopt;
  };
  const Best* fp32 = find(row, "fp32", "fp32");
  const Best* same = find(row, row.precision, row.c_type);
  if (fp32) {
    row.speedup.cusparse_default_fp32 = ratio(fp32->cusparse_default);
    row.speedup.eigen_fp32 = ratio(fp32->eigen);
  }
  Best best = same ? *same : Best{};
  // tf32 inputs lie in memory as fp32, so the fp32 algorithms are open to the same caller.
  if (row.precision == "tf32" && fp32) {
    if (fp32->cusparse) keep_smaller(best.cusparse, *fp32->cusparse);
    if (!best.cusparse_plain) best.cusparse_plain = fp32->cusparse_plain;
  }
  row.speedup.cusparse_best = ratio(best.cusparse);
  row.speedup.cublas = ratio(best.cublas);
  row.speedup.eigen = ratio(best.eigen);
  const std::optional<double>& plain = best.cusparse_plain ? best.cusparse_plain : best.eigen;
  if (plain && row.kernel != kDefault && row.kernel != kDefaultVector &&
      row.kernel != kCpuDefault) {
    const double saved_ms = (*plain - mine) / 1e3;
    row.break_even_calls =
        saved_ms > 0 ? preprocessing_ms(row) / saved_ms : std::numeric_limits<double>::infinity();
  }
}

double preprocessing_ms(const ResultRow& row) {
  double total = 0;
  for (const auto& [stage, ms] : row.stages_ms)
    if (stage != "load") total += ms;
  return total;
}

}  // namespace spmmbench
