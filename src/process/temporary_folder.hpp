#pragma once
// A new folder that exists as long as the object, or longer if it is kept.

#include <fmt/format.h>
#include <stdlib.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string>

#include "spmmbench/error.hpp"

namespace spmmbench {

class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::error_code error;
    const std::filesystem::path parent = std::filesystem::temp_directory_path(error);
    if (error)  // only what TMPDIR names can be missing
      throw Error(fmt::format("TMPDIR: {}: expected a folder", getenv("TMPDIR")));
    std::string name = (parent / "spmmbench-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr)
      throw Error(fmt::format("{}: cannot be created: {}", name, strerror(errno)));
    path_ = name;
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() {
    if (kept_) return;
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  void keep() { kept_ = true; }
  std::string file(const std::string& name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
  bool kept_ = false;
};

}  // namespace spmmbench
