#pragma once
// The options that say what a table looks like; shared by `run` and `show`.

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
// For standard output as it is now. Throws Error.
TableStyle resolve(const TableOptions& in);

}  // namespace spmmbench
