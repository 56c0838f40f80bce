#include "cusparselt/library.hpp"

#include <fmt/format.h>
#include <glob.h>

#include <array>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <vector>

#include "core/shared_library.hpp"

namespace spmmbench {
namespace {

constexpr const char* kName = "libcusparseLt.so.0";

std::string environment(const char* variable) {
  const char* const value = std::getenv(variable);
  return value == nullptr ? "" : value;
}

// Where pip puts the library: wheels of version 0.8 have a folder of their own, newer ones share
// cu13.
std::vector<std::string> files_of_wheels() {
  std::vector<std::string> roots = {"/usr/local"};
  if (const std::string home = environment("HOME"); !home.empty())
    roots.insert(roots.begin(), home + "/.local");
  if (const std::string env = environment("VIRTUAL_ENV"); !env.empty())
    roots.insert(roots.begin(), env);
  std::vector<std::string> files;
  for (const std::string& root : roots) {
    const std::string pattern = fmt::format(
        "{}/lib/python3*/{{site,dist}}-packages/nvidia/{{cusparselt,cu13}}/lib/{}", root, kName);
    glob_t found{};
    if (glob(pattern.c_str(), GLOB_BRACE, nullptr, &found) == 0)
      files.insert(files.end(), found.gl_pathv, found.gl_pathv + found.gl_pathc);
    globfree(&found);
  }
  return files;
}

SharedLibrary open_library() {
  // One that is in the process already, such as PyTorch's, is found by its name.
  const std::string named = environment("SPMMBENCH_CUSPARSELT");
  SharedLibrary library(named.empty() ? kName : named);
  if (library.error().empty() || !named.empty()) return library;
  for (const std::string& file : files_of_wheels())
    if (SharedLibrary of_wheel(file); of_wheel.error().empty()) return of_wheel;
  return library;
}

}  // namespace

std::string CusparseLt::version() const {
  std::array<int, 3> part{};
  for (int i = 0; i < 3; ++i) (void)GetProperty(static_cast<libraryPropertyType>(i), &part[i]);
  return fmt::format("{}.{}.{}", part[0], part[1], part[2]);
}

CusparseLtLookup find_cusparselt() {
  static std::mutex mutex;
  const std::scoped_lock lock(mutex);
  static std::optional<CusparseLt> loaded;
  if (loaded) return {&*loaded, {}};
  const SharedLibrary file = open_library();
  if (!file.error().empty()) return {nullptr, fmt::format("cuSPARSELt not found: no {}", kName)};
  CusparseLt library;
  const char* missing = nullptr;
#define SPMMBENCH_LOAD(name)                                                              \
  library.name = reinterpret_cast<decltype(library.name)>(file.find("cusparseLt" #name)); \
  if (library.name == nullptr) missing = "cusparseLt" #name;
  SPMMBENCH_CUSPARSELT_FUNCTIONS(SPMMBENCH_LOAD)
#undef SPMMBENCH_LOAD
  if (missing != nullptr)
    return {nullptr, fmt::format("cuSPARSELt 0.8 or newer not found: {} lacks {}", kName, missing)};
  loaded = library;
  return {&*loaded, {}};
}

}  // namespace spmmbench
