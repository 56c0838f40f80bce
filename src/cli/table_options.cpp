#include "cli/table_options.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <limits>

#include "cli/lists.hpp"
#include "report/table_columns.hpp"
#include "report/terminal.hpp"

namespace spmmbench {

void add_table_options(CLI::App& command, TableOptions& in) {
  command
      .add_option("--columns", in.columns,
                  fmt::format("Columns of the table: some of {}, or any field of the CSV; "
                              "default: as many as fit",
                              table_column_help()))
      ->type_name(kListType);
  command.add_option("--sort", in.sort,
                     "Column to sort rows by, COLUMN or COLUMN:desc; default: the fastest first");
  command
      .add_option(
          "--calls", in.calls,
          "Spread preparation over this many calls, and count it in the answer, the order, the "
          "star and x best; 0: rank by the time of a call alone")
      ->check(integer_up_to(std::numeric_limits<std::int64_t>::max()));
  command.add_flag(
      "--why", in.why,
      "After the rows, why auto picked its kernel, and which kernels were skipped and why");
  command
      .add_option("--color", in.color,
                  "auto (on a terminal, unless NO_COLOR is set), always or never")
      ->capture_default_str();
}

TableStyle resolve(const TableOptions& in) {
  TableStyle style;
  style.width = terminal_width(STDOUT_FILENO);
  style.color = use_color(parse_color(in.color), STDOUT_FILENO);
  if (!in.columns.empty()) style.columns = split_list(in.columns, "--columns");
  style.sort = in.sort;
  style.calls = in.calls.value_or(0);
  style.why = in.why;
  check_style(style);
  return style;
}

}  // namespace spmmbench
