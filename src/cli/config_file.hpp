#pragma once
// The file of --config, read as TOML 1.0 by toml++.

#include <CLI/CLI.hpp>
#include <istream>
#include <map>
#include <string>
#include <vector>

namespace spmmbench {

class ConfigFile final : public CLI::ConfigBase {
 public:
  explicit ConfigFile(const CLI::App& app) : app_(app) {}

  // A list for an option that takes one text, separated by commas, is joined by them; a table is a
  // list of KEY=VALUE. Leaves out flags that are false. Throws Error with file and line for what is
  // no TOML, no command or no option, and for a value that the option cannot have.
  std::vector<CLI::ConfigItem> from_config(std::istream& input) const override;

  // A message that begins with the name of an option, with "FILE:LINE: " before it if the file gave
  // that option and the command line did not.
  std::string with_place(const std::string& message) const;

 private:
  const CLI::App& app_;  // whose --config names the file
  // By each name of an option that the file gave: "--n", "-n". CLI11 reads the file as const.
  mutable std::map<std::string, std::string> places_;
};

}  // namespace spmmbench
