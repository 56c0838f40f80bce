#include "report/limit.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "spmmbench/precision.hpp"

namespace spmmbench {
namespace {

// Twice the shortest time of any product on an H200 (results/h200/narrow.csv), where launches
// follow one another.
constexpr double kLaunchUs = 2.1;
// Gathers of rows from the L2 cache of an H200 over its copy bandwidth: 8.4 to 9.2 over 4.3 TB/s.
constexpr double kGatherOverCopy = 2;
constexpr double kSectorBytes = 32;  // of the L2 cache: the least that is read of a row of B
constexpr double kLeastExplained = 1.0 / 3;  // a choice: less is no explanation

// Rows of B that the kernel reads from the cache; 0 where its format does not say.
double gathered_rows(const ResultRow& row) {
  if (!row.format || row.format->tiles == 0) return static_cast<double>(row.matrix.nnz);
  const auto it = row.format->extra.find("gathered_rows_of_b");
  return it == row.format->extra.end() ? 0 : it->second;
}

}  // namespace

std::optional<double> gb_per_s(const ResultRow& row) {
  if (!row.hot || !(row.hot->median_us > 0) || !row.compulsory_bytes) return std::nullopt;
  return *row.compulsory_bytes / row.hot->median_us / 1e3;
}

std::string limit_of(const ResultRow& row) {
  if (!row.hot || !row.device_index || !row.compulsory_bytes || !row.bound_us) return {};
  if (!(row.hot->median_us > 0) || !(*row.bound_us > 0)) return {};
  if (row.hot->median_us <= kLaunchUs) return "launch";
  const double bytes_per_us = *row.compulsory_bytes / *row.bound_us;
  const auto n = static_cast<double>(row.n) * static_cast<double>(row.batch),
             nnz = static_cast<double>(row.matrix.nnz);
  const auto value_bytes =
      static_cast<double>(bytes_of(storage_type(parse_precision(row.precision))));
  const double c_bytes = static_cast<double>(row.matrix.rows) * n *
                         static_cast<double>(bytes_of(parse_element_type(row.c_type))) *
                         (row.beta == 0 ? 1 : 2);
  double a_bytes = nnz * (sizeof(std::int32_t) + value_bytes), padding_bytes = 0;
  if (row.format) {
    a_bytes = static_cast<double>(row.format->bytes);
    padding_bytes = std::max(0.0, static_cast<double>(row.format->stored) - nnz) * value_bytes;
  }
  const std::array<std::pair<double, const char*>, 4> parts = {{
      {c_bytes / bytes_per_us, "output"},
      {gathered_rows(row) * std::max(n * value_bytes, kSectorBytes) /
           (kGatherOverCopy * bytes_per_us),
       "gathers"},
      {padding_bytes / bytes_per_us, "padding"},
      {(a_bytes - padding_bytes) / bytes_per_us, "A"},
  }};
  const double explained_us =
      std::accumulate(parts.begin(), parts.end(), 0.0,
                      [](double sum, const auto& part) { return sum + part.first; });
  if (explained_us < kLeastExplained * row.hot->median_us) return {};
  return std::max_element(parts.begin(), parts.end())->second;
}

}  // namespace spmmbench
