#include "report/baselines.hpp"

#include <algorithm>
#include <limits>

#include "report/identity.hpp"

namespace spmmbench {
namespace {

constexpr std::string_view kDefault = "cusparse_csr_default";
constexpr std::string_view kCpuDefault = "eigen_csr";

void keep_smaller(std::optional<double>& best, double value) {
  best = best ? std::min(*best, value) : value;
}

}  // namespace

Baselines::Key Baselines::key_of(const ResultRow& row, const std::string& precision,
                                 const std::string& c_type) {
  return {identity_of(row.matrix),     row.n, row.layout + operation_of(row), precision, c_type,
          row.device_index.has_value()};
}

void Baselines::add(const ResultRow& row) {
  const std::optional<Cost> cost = cost_of(row);
  if (!cost) return;
  Best& best = best_[key_of(row, row.precision, row.c_type)];
  if (!best.first || cost->total_us(1) < best.first->total_us(1)) {
    best.first = cost;
    best.first_label = label_of(row);
  }
  if (row.reorder != "none") return;
  best.unordered[row.kernel] = *cost;
  if (!row.baseline) return;
  const auto keep = [&](std::optional<Fastest>& hot, std::optional<Fastest>& in_all) {
    keep_faster(hot, Fastest{cost->us, row.kernel});
    if (calls_ > 0) keep_faster(in_all, Fastest{in_all_us(*cost), row.kernel});
  };
  if (row.kernel == kDefault) keep_smaller(best.cusparse_default, cost->us);
  if (row.kernel.starts_with("cusparse_")) keep(best.cusparse, best.cusparse_in_all);
  if (row.kernel == kCpuDefault) keep(best.eigen, best.eigen_in_all);
  if (row.kernel.starts_with("cublas")) keep_smaller(best.cublas, cost->us);
}

void Baselines::keep_faster(std::optional<Fastest>& best, const std::optional<Fastest>& other) {
  if (other && (!best || other->us < best->us)) best = other;
}

void Baselines::forget(const std::string& identity) {
  std::erase_if(best_, [&](const auto& entry) { return std::get<0>(entry.first) == identity; });
}

const Baselines::Best* Baselines::find(const ResultRow& row, const std::string& precision,
                                       const std::string& c_type) const {
  const auto it = best_.find(key_of(row, precision, c_type));
  return it == best_.end() ? nullptr : &it->second;
}

void Baselines::fill(ResultRow& row) const {
  row.speedup = {};
  row.break_even_calls.reset();
  row.break_even_against.reset();
  row.in_all_us.reset();
  if (row.status != Status::ok || !row.hot) return;
  const Cost mine{preprocessing_ms(row), row.hot->median_us};
  if (calls_ > 0) row.in_all_us = in_all_us(mine);
  const auto ratio = [](const std::optional<double>& baseline, double own) {
    return baseline ? std::optional(*baseline / own) : std::nullopt;
  };
  const auto us_of = [](const std::optional<Fastest>& fastest) {
    return fastest ? std::optional(fastest->us) : std::nullopt;
  };
  const Best* fp32 = find(row, "fp32", "fp32");
  const Best* same = find(row, row.precision, row.c_type);
  if (fp32) {
    row.speedup.cusparse_default_fp32 = ratio(fp32->cusparse_default, mine.us);
    row.speedup.eigen_fp32 = ratio(us_of(fp32->eigen), mine.us);
  }
  if (same) {
    row.speedup.cublas = ratio(same->cublas, mine.us);
    row.speedup.eigen = ratio(us_of(same->eigen), mine.us);
    fill_break_even(row, mine, *same);
  }
  std::optional<Fastest> cusparse, in_all;
  // tf32 inputs lie in memory as fp32, so the fp32 algorithms are open to the same caller.
  for (const Best* open : {same, row.precision == "tf32" ? fp32 : nullptr}) {
    if (open == nullptr) continue;
    keep_faster(cusparse, open->cusparse);
    keep_faster(in_all, open->cusparse_in_all);
  }
  row.speedup.cusparse_best = ratio(us_of(cusparse), mine.us);
  const bool over_cusparse = row.speedup.cusparse_default_fp32 || row.speedup.cusparse_best;
  if (!over_cusparse && same) in_all = same->eigen_in_all;
  if (row.in_all_us) row.speedup.best_in_all = ratio(us_of(in_all), *row.in_all_us);
  const std::optional<Fastest> eigen = same ? same->eigen : std::nullopt;
  const std::optional<Fastest>& hot = over_cusparse ? cusparse : eigen;
  if (const std::optional<Fastest>& best = row.in_all_us ? in_all : hot)
    row.speedup.best_is = best->kernel;
}

void Baselines::fill_break_even(ResultRow& row, const Cost& mine, const Best& best) const {
  const auto unordered = best.unordered.find(row.kernel);
  const bool against_itself = row.reorder != "none" && unordered != best.unordered.end();
  if (!against_itself && (!best.first || label_of(row) == best.first_label)) return;
  const Cost& other = against_itself ? unordered->second : *best.first;
  row.break_even_against = against_itself ? row.kernel : best.first_label;
  const double saved_us = other.us - mine.us;
  const double more_ms = std::max(0.0, mine.prepare_ms - other.prepare_ms);
  row.break_even_calls =
      saved_us > 0 ? more_ms * 1e3 / saved_us : std::numeric_limits<double>::infinity();
}

}  // namespace spmmbench
