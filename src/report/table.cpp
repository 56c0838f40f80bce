#include "report/table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

namespace spmmbench {
namespace {

bool ranked(const ResultRow& row) { return row.status == Status::ok && !row.binary && row.hot; }

// The fastest correct row of each precision.
std::map<std::string, const ResultRow*> winners(const std::vector<const ResultRow*>& rows) {
  std::map<std::string, const ResultRow*> best;
  for (const ResultRow* row : rows) {
    if (!ranked(*row)) continue;
    const ResultRow*& winner = best[row->precision];
    if (winner == nullptr || row->hot->median_us < winner->hot->median_us) winner = row;
  }
  return best;
}

std::string cell(const std::optional<double>& value, int width, int decimals) {
  if (!value) return fmt::format("{:>{}}", "-", width);
  if (std::isinf(*value)) return fmt::format("{:>{}}", "never", width);
  if (*value >= std::pow(10.0, width - 1 - (decimals > 0 ? decimals + 1 : 0)))
    return fmt::format("{:>{}.{}g}", *value, width, width > 7 ? 3 : 2);
  return fmt::format("{:>{}.{}f}", *value, width, decimals);
}

std::string label_of(const ResultRow& row) {
  return row.reorder == "none" ? row.kernel : row.kernel + " [" + row.reorder + "]";
}

std::string clip(const std::string& text, std::size_t width) {
  return text.size() <= width ? text : text.substr(0, width - 1) + "~";
}

std::vector<std::vector<const ResultRow*>> by_n(std::span<const ResultRow> rows) {
  std::map<std::tuple<std::int64_t, std::string>, std::vector<const ResultRow*>> groups;
  for (const ResultRow& row : rows) groups[{row.n, row.layout}].push_back(&row);
  std::vector<std::vector<const ResultRow*>> ordered;
  for (auto& [key, group] : groups) ordered.push_back(std::move(group));
  return ordered;
}

// Without a GPU Eigen is what speed-ups are told over.
bool over_eigen(const std::vector<const ResultRow*>& rows) {
  return std::any_of(rows.begin(), rows.end(), [](const ResultRow* row) {
    return row->speedup.eigen_fp32 || row->speedup.eigen;
  });
}

const std::optional<double>& over_default(const ResultRow& row) {
  const Speedups& s = row.speedup;
  return s.eigen_fp32 ? s.eigen_fp32 : s.cusparse_default_fp32;
}

const std::optional<double>& over_best(const ResultRow& row) {
  return row.speedup.eigen ? row.speedup.eigen : row.speedup.cusparse_best;
}

std::string block(std::vector<const ResultRow*> rows) {
  const ResultRow& any = *rows.front();
  std::string text = clip(fmt::format("{}: {} x {}, {} nonzeros, N = {}{}", any.matrix.name,
                                      any.matrix.rows, any.matrix.cols, any.matrix.nnz, any.n,
                                      any.layout == "row" ? "" : ", column-major"),
                          kTableWidth);
  const bool cpu = over_eigen(rows);
  text += fmt::format("\n  {:<32} {:<5}{:>9} {:>9} {:>8} {:>6} {:>7} {:>7} {:>8}\n", "kernel", "in",
                      "hot us", "cold us", "GFLOP/s", "bound", cpu ? "x Eig32" : "x dflt",
                      cpu ? "x Eigen" : "x best", "pays at");
  const auto best = winners(rows);
  std::stable_sort(rows.begin(), rows.end(), [](const ResultRow* a, const ResultRow* b) {
    const double inf = INFINITY;
    return (ranked(*a) ? a->hot->median_us : inf) < (ranked(*b) ? b->hot->median_us : inf);
  });
  std::map<std::string, std::string> skipped;  // reason -> kernels
  for (const ResultRow* row : rows) {
    if (row->status == Status::skipped) {
      std::string& names = skipped[row->reason];
      names += (names.empty() ? "" : ", ") + row->kernel;
      continue;
    }
    const auto it = best.find(row->precision);
    const char mark = it != best.end() && it->second == row ? '*' : ' ';
    const std::string name = clip(label_of(*row), 32);
    if (row->status != Status::ok) {
      text += clip(fmt::format("{} {:<32} {:<5} {}: {}", mark, name, row->precision,
                               to_string(row->status), row->reason),
                   kTableWidth) +
              "\n";
      continue;
    }
    text += fmt::format("{} {:<32} {:<5}{} {} {} {} {} {} {}\n", mark, name, row->precision,
                        cell(row->hot->median_us, 9, 1), cell(row->cold->median_us, 9, 1),
                        cell(row->gflops, 8, 0), cell(row->of_bound, 6, 2),
                        cell(over_default(*row), 7, 2), cell(over_best(*row), 7, 2),
                        cell(row->break_even_calls, 8, 0));
  }
  for (const auto& [reason, names] : skipped)
    text += clip(fmt::format("  skipped ({}): {}", reason, names), kTableWidth) + "\n";
  return text;
}

}  // namespace

std::string format_table(std::span<const ResultRow> rows) {
  std::string text;
  for (auto& group : by_n(rows)) text += block(std::move(group)) + "\n";
  return text;
}

void Summary::add(std::span<const ResultRow> rows) {
  ++matrices_;
  for (const auto& group : by_n(rows)) {
    const auto best = winners(group);
    over_eigen_ |= over_eigen(group);
    for (const ResultRow* row : group) {
      Sums& sums = kernels_[row->precision + " " + label_of(*row)];
      sums.wrong += row->status == Status::wrong;
      if (!ranked(*row)) continue;
      ++sums.cases;
      const auto it = best.find(row->precision);
      sums.wins += it != best.end() && it->second == row;
      const auto accumulate = [](const std::optional<double>& value, double& log_sum, int& n) {
        if (!value) return;
        log_sum += std::log(*value);
        ++n;
      };
      accumulate(over_default(*row), sums.log_default, sums.n_default);
      accumulate(over_best(*row), sums.log_best, sums.n_best);
      accumulate(row->of_bound, sums.log_bound, sums.n_bound);
    }
  }
}

std::string Summary::format() const {
  if (matrices_ < 2) return {};
  std::string text = fmt::format(
      "geometric means over {} matrices\n  {:<40} {:>6} {:>5} {:>5} {:>8} {:>8} {:>8}\n", matrices_,
      "precision kernel", "cases", "wins", "wrong", over_eigen_ ? "x Eig32" : "x dflt",
      over_eigen_ ? "x Eigen" : "x best", "bound");
  for (const auto& [name, sums] : kernels_) {
    if (sums.cases == 0 && sums.wrong == 0) continue;
    const auto mean = [](double log_sum, int n) {
      return n == 0 ? std::nullopt : std::optional(std::exp(log_sum / n));
    };
    text += fmt::format("  {:<40} {:>6} {:>5} {:>5} {} {} {}\n", clip(name, 40), sums.cases,
                        sums.wins, sums.wrong, cell(mean(sums.log_default, sums.n_default), 8, 2),
                        cell(mean(sums.log_best, sums.n_best), 8, 2),
                        cell(mean(sums.log_bound, sums.n_bound), 8, 2));
  }
  return text;
}

}  // namespace spmmbench
