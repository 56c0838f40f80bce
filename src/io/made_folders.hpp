#pragma once
// Folders made for an output. They are removed if the output is not written.

#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace spmmbench {

class MadeFolders {
 public:
  MadeFolders() = default;
  // Makes `folder` and those above it that are missing.
  MadeFolders(const std::filesystem::path& folder, std::error_code& error);
  MadeFolders(MadeFolders&&) = default;
  MadeFolders& operator=(MadeFolders&&) = default;
  ~MadeFolders();  // removes those that it has made and that are empty, unless they are kept

  void keep() { made_.clear(); }

 private:
  std::vector<std::filesystem::path> made_;  // the innermost first
};

// Makes `folder`, the value of `option`, where it is missing; does nothing where it is empty.
// Throws Error where nothing can be written into it.
[[nodiscard]] MadeFolders require_writable_folder(std::string_view option,
                                                  const std::string& folder);

}  // namespace spmmbench
