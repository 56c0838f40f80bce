#include "io/made_folders.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>

#include "spmmbench/error.hpp"

namespace spmmbench {

namespace fs = std::filesystem;

MadeFolders::MadeFolders(const fs::path& folder, std::error_code& error) {
  for (fs::path missing = folder; !missing.empty(); missing = missing.parent_path()) {
    if (fs::exists(missing, error) || error) break;
    made_.push_back(missing);
  }
  fs::create_directories(folder, error);
}

MadeFolders::~MadeFolders() {
  for (const fs::path& folder : made_) ::rmdir(folder.c_str());  // fails where it is not empty
}

MadeFolders require_writable_folder(std::string_view option, const std::string& folder) {
  if (folder.empty()) return {};
  std::error_code error;
  MadeFolders made(folder, error);
  if (!error && ::access(folder.c_str(), W_OK | X_OK) != 0)
    error = {errno, std::generic_category()};
  if (error)
    throw Error(fmt::format("{} {}: cannot be written: {}", option, folder, error.message()));
  return made;
}

}  // namespace spmmbench
