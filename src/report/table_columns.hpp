#pragma once
// The columns that the table can show: the default ones, and every field of the CSV.

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "spmmbench/result.hpp"

namespace spmmbench {

struct TableColumn {
  std::string key;      // for --columns and --sort
  std::string header;   // one line
  std::string meaning;  // what `show --legend` says of it; empty: a field of the CSV
  bool left_aligned = false;
  std::function<std::string(const ResultRow&)> text;  // never empty
  // What rows are sorted by; empty: absent, or no number.
  std::function<std::optional<double>(const ResultRow&)> number;
  bool rare = false;  // shown only where a row has it
};

// All columns of the table, in the order shown.
const std::vector<TableColumn>& default_columns();
// Keys of default columns, the first to leave out where the terminal is too narrow at the end.
// `kernel`, `in` and `hot` always stay.
const std::vector<std::string>& columns_by_importance();

// A default column or a field of the CSV. Throws Error that suggests a name.
TableColumn table_column(std::string_view key);
std::string table_column_help();  // the keys of the default columns, separated by commas
// What the default columns and the signs beside them mean: a line each of at most `width` columns
// (0: any), or a Markdown table.
std::string format_legend(bool markdown, std::size_t width);

// What the columns x_dflt and x_best of a row are over: Eigen where there is no cuSPARSE, as in a
// run without a GPU.
enum class Reference { none, eigen, cusparse };
Reference reference_of(const ResultRow& row);
// The speed-ups of these columns. With --calls the second counts preparation.
std::optional<double> over_default(const ResultRow& row);
std::optional<double> over_best(const ResultRow& row);

}  // namespace spmmbench
