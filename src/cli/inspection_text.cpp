#include "cli/inspection_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "core/numbered.hpp"
#include "io/output.hpp"
#include "report/terminal.hpp"

namespace spmmbench {
namespace {

using Json = nlohmann::ordered_json;

void print_structure(const Json& matrix) {
  const Json &s = matrix["structure"], &length = s["row_length"];
  print("{}  {} x {}, {}{}\n", matrix["name"].get<std::string>(),
        matrix["rows"].get<std::int64_t>(), matrix["cols"].get<std::int64_t>(),
        numbered(matrix["nnz"].get<std::int64_t>(), "nonzero"),
        matrix["pattern"].get<bool>() ? ", pattern only" : "");
  print(
      "  row lengths  min {:.0f}  q1 {:.0f}  median {:.0f}  q3 {:.0f}  p99 {:.0f}  max {:.0f}  "
      "mean {:.2f}  cv {:.2f}\n",
      length["min"].get<double>(), length["q1"].get<double>(), length["median"].get<double>(),
      length["q3"].get<double>(), length["p99"].get<double>(), length["max"].get<double>(),
      length["mean"].get<double>(), length["cv"].get<double>());
  print("  empty rows {}  columns in use {}  bandwidth {}  mean |i-j| {:.0f}  symmetric {}\n\n",
        s["empty_rows"].get<std::int64_t>(), s["referenced_cols"].get<std::int64_t>(),
        s["bandwidth"].get<std::int64_t>(), s["mean_distance"].get<double>(),
        s["symmetric_pattern"].get<bool>() ? "yes" : "no");
}

void print_reorderings(const Json& matrix) {
  print("  {:<20} {:>9} {:>8} {:>9} {:>8} {:>10} {:>6} {:>8} {:>8}\n", "RS-Tile after", "ms",
        "windows", "tiles", "nnz/tile", "nnz/window", "CUDA%", "B rows", "1-sim");
  for (const Json& row : matrix["reorderings"]) {
    const Json& tile = row["rs_tile"];
    print(
        "  {:<20} {:>9.1f} {:>8} {:>9} {:>8.2f} {:>10.1f} {:>6.2f} {:>8.3f} {:>8.3f}\n",
        clip(row["name"].get<std::string>(), 20), row["reorder_ms"].get<double>(),
        tile["windows"].get<std::int64_t>(), tile["tiles"].get<std::int64_t>(),
        tile["nnz_per_tile"].get<double>(), tile["nnz_per_window"].get<double>(),
        100 * tile["residual_nnz_share"].get<double>(),
        tile["gathered_rows_of_b"].get<double>() / std::max<double>(1, matrix["nnz"].get<double>()),
        row["adjacent_cost"].get<double>());
  }
  print(
      "  CUDA%: nonzeros left to CUDA cores; B rows: rows of B that windows fetch, over the "
      "nonzeros;\n"
      "  1-sim: 1 - weighted Jaccard similarity of neighbouring rows, mean\n\n");
}

constexpr const char* kIndexTitle = "index bytes over COO's";
constexpr const char* kFp16Title = "bytes in fp16 over COO's";

// One line per format, one column per reordering; at most six columns side by side.
void print_space(const Json& reorderings, const std::string& key, const std::string& title) {
  constexpr std::size_t kColumns = 6;
  for (std::size_t first = 0; first < reorderings.size(); first += kColumns) {
    const std::size_t last = std::min(first + kColumns, reorderings.size());
    print("  {:<26}", title);
    for (std::size_t i = first; i < last; ++i)
      print(" {:>11}", clip(reorderings[i]["name"].get<std::string>(), 11));
    print("\n");
    for (const auto& [name, stats] : reorderings[first]["formats"].items()) {
      print("  {:<26}", clip(name, 26));
      for (std::size_t i = first; i < last; ++i) {
        const Json& ratio = reorderings[i]["formats"][name][key];
        print(" {:>11}", ratio.is_null() ? "-" : fmt::format("{:.3f}", ratio.get<double>()));
      }
      print("\n");
    }
    print("\n");
  }
}

void print_threshold(const Json& reorderings) {
  for (const Json& row : reorderings) {
    if (!row.contains("threshold")) continue;
    print("  {:<20} {:>8} {:>9} {:>11} {:>7} {:>11} {:>13}\n",
          clip(row["name"].get<std::string>(), 20), "tau_nnz", "nnz/tile", "nnz/window", "CUDA%",
          "CUDA nnz", "CUDA nnz/row");
    for (const Json& step : row["threshold"])
      print("  {:<20} {:>8} {:>9.2f} {:>11.1f} {:>7.2f} {:>11.0f} {:>13.2f}\n", "",
            step["tau_nnz"].get<int>(), step["nnz_per_tile"].get<double>(),
            step["nnz_per_window"].get<double>(), 100 * step["residual_nnz_share"].get<double>(),
            step["residual_nnz"].get<double>(), step["residual_nnz_per_row"].get<double>());
    print("\n");
  }
}

// Adds the numbers of `value` into `sum`, which has the same shape or is null.
void add(Json& sum, const Json& value) {
  if (value.is_number()) {
    sum = (sum.is_null() ? 0.0 : sum.get<double>()) + value.get<double>();
  } else if (value.is_object()) {
    for (const auto& [key, item] : value.items()) add(sum[key], item);
  } else if (value.is_array()) {
    for (std::size_t i = 0; i < value.size(); ++i) add(sum[i], value[i]);
  } else {
    sum = value;
  }
}

void divide(Json& sum, double count) {
  if (sum.is_number()) sum = sum.get<double>() / count;
  if (sum.is_structured())
    for (Json& item : sum) divide(item, count);
}

void print_spaces(const Json& reorderings) {
  print_space(reorderings, "index_over_coo", kIndexTitle);
  print_space(reorderings, "fp16_over_coo", kFp16Title);
  print_threshold(reorderings);
}

}  // namespace

void print_inspection(const Json& matrix) {
  print_structure(matrix);
  print_reorderings(matrix);
  print_spaces(matrix["reorderings"]);
}

void MeanInspection::count(const Json& matrix) {
  if (matrix["nnz"] == 0) return;
  ++count_;
  add(sum_, matrix["reorderings"]);
}

void MeanInspection::print() {
  if (count_ < 2) return;
  divide(sum_, count_);
  spmmbench::print("mean of {} matrices\n", count_);
  print_spaces(sum_);
}

}  // namespace spmmbench
