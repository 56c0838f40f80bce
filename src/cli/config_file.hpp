#pragma once
// The file of --config, held to its form before CLI11 reads it, which skips what it cannot read.

#include <CLI/CLI.hpp>
#include <istream>
#include <vector>

namespace spmmbench {

class ConfigFile final : public CLI::ConfigBase {
 public:
  explicit ConfigFile(const CLI::App& app) : app_(app) {
    comment('\n');  // in no line: CLI11 would look for comments within quotes
  }

  // Throws Error with file and line for a section without its bracket, a key without a value, and a
  // quote or a list without its end. Leaves out flags that are false.
  std::vector<CLI::ConfigItem> from_config(std::istream& input) const override;

 private:
  const CLI::App& app_;  // whose --config names the file
};

}  // namespace spmmbench
