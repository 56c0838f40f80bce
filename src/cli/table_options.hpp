#pragma once
// The options for the look of a table, shared by `run` and `show`.

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>

#include "report/table.hpp"

namespace spmmbench {

struct TableOptions {
  std::string columns, sort, color = "auto";
  std::optional<std::int64_t> calls;
  bool why = false;
};

void add_table_options(CLI::App& command, TableOptions& in);
// The style for standard output: terminal or file, width, colour. Throws Error.
TableStyle resolve(const TableOptions& in);

}  // namespace spmmbench
