#include "report/two_files.hpp"

#include <fmt/format.h>

#include <filesystem>

#include "io/output.hpp"
#include "spmmbench/error.hpp"

namespace spmmbench {
namespace {

namespace fs = std::filesystem;

// Where the output goes; empty where that cannot be found out.
fs::path place_of(const std::string& output) {
  std::error_code error;
  const fs::path absolute = fs::absolute(output, error);
  return error ? fs::path() : fs::weakly_canonical(absolute, error);
}

}  // namespace

void require_two_files(const std::string& one, const std::string& other) {
  if (one.empty() || other.empty() || is_stream(one) || is_stream(other)) return;
  const fs::path place = place_of(one);
  if (!place.empty() && place == place_of(other))
    throw Error(fmt::format("{} and {}: expected two files to write, got one", one, other));
}

}  // namespace spmmbench
