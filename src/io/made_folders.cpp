#include "io/made_folders.hpp"

#include <unistd.h>

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

}  // namespace spmmbench
