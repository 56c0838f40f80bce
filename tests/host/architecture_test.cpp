// The rules that keep the program in layers: no CUDA outside src/gpu and kernels, no assembly
// outside kernels/ptx, and no include against the direction in which the data flows. And the rules
// by which tests are found and constants named.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace {

namespace fs = std::filesystem;

const fs::path kRoot = SPMMBENCH_SOURCE_DIR;

// Earlier folders may not include later ones.
const std::vector<std::string> kOrder = {
    "core",  "gpu",     "timing",  "io",    "reorder", "format", "select",  "kernels", "verify",
    "stats", "process", "measure", "multi", "plugin",  "report", "library", "run",     "cli"};

struct Include {
  fs::path file;  // relative to the root
  int line;
  std::string target;
};

bool is_source(const fs::path& path) {
  const std::string extension = path.extension();
  return extension == ".cpp" || extension == ".hpp" || extension == ".cu" || extension == ".cuh" ||
         extension == ".c" || extension == ".h";
}

std::vector<Include> includes_below(const std::string& folder) {
  std::vector<Include> includes;
  for (const auto& entry : fs::recursive_directory_iterator(kRoot / folder)) {
    if (!is_source(entry.path())) continue;
    std::ifstream file(entry.path());
    int number = 0;
    for (std::string line; std::getline(file, line);) {
      ++number;
      const std::size_t at = line.find_first_not_of(" \t");
      if (at == std::string::npos || line.compare(at, 8, "#include") != 0) continue;
      const std::size_t begin = line.find_first_of("<\"");
      const std::size_t end = line.find_first_of(">\"", begin + 1);
      includes.push_back(
          {fs::relative(entry.path(), kRoot), number, line.substr(begin + 1, end - begin - 1)});
    }
  }
  return includes;
}

// "src/io/x.cpp" -> "io", "kernels/x.cu" -> "kernels", "io/x.hpp" -> "io", "window/x.hpp" ->
// "kernels".
std::string layer_of(const fs::path& path) {
  auto part = path.begin();
  if (*part == "src") ++part;
  const bool is_folder = std::next(part) != path.end();
  const bool of_kernels = is_folder && !fs::is_directory(kRoot / "src" / *part) &&
                          fs::is_directory(kRoot / "kernels" / *part);
  return of_kernels ? "kernels" : part->string();
}

bool is_cuda_header(const std::string& target) {
  for (const char* prefix :
       {"cuda", "cublas", "cusparse", "nvtx", "nvml", "cub/", "thrust/", "cooperative_groups"})
    if (target.starts_with(prefix)) return true;
  return false;
}

// A runtime of CUDA on the host, installed for authors of plug-ins: no part of this program.
const fs::path kCudaForPluginAuthors = "include/spmmbench/cuda_on_host.c";

TEST(Architecture, CudaStaysInGpuAndKernels) {
  EXPECT_TRUE(fs::exists(kRoot / kCudaForPluginAuthors));
  for (const std::string folder : {"include", "src", "kernels"})
    for (const Include& include : includes_below(folder)) {
      const std::string layer = layer_of(include.file);
      if (layer == "gpu" || layer == "kernels" || include.file == kCudaForPluginAuthors) continue;
      EXPECT_FALSE(is_cuda_header(include.target))
          << include.file << ":" << include.line << " includes " << include.target;
      EXPECT_NE(include.file.extension(), ".cu") << include.file;
    }
}

TEST(Architecture, IncludesFollowTheDirectionOfTheData) {
  for (const std::string folder : {"src", "kernels"})
    for (const Include& include : includes_below(folder)) {
      const auto target = std::find(kOrder.begin(), kOrder.end(), layer_of(include.target));
      if (target == kOrder.end()) continue;  // spmmbench/, system and library headers
      const auto own = std::find(kOrder.begin(), kOrder.end(), layer_of(include.file));
      ASSERT_NE(own, kOrder.end()) << include.file << " is in no known folder";
      EXPECT_LE(target - kOrder.begin(), own - kOrder.begin())
          << include.file << ":" << include.line << " includes " << include.target;
    }
  EXPECT_EQ(layer_of("common/grid_limit.hpp"), "kernels");
}

std::string text_of(const fs::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Folders of kernels/ that kernels share; earlier ones may not include later ones.
const std::vector<std::string> kShared = {"ptx", "common", "row_order", "window"};

// A kernel that uses the code of another one, which is a variant of it or makes its format.
const std::set<std::pair<std::string, std::string>> kRelatives = {{"block_swiglu", "async_bcsr"},
                                                                  {"cusparse", "async_bcsr"},
                                                                  {"cusparselt", "cusparse"},
                                                                  {"esmm_mma", "esmm"},
                                                                  {"esmm_skip", "esmm"}};

TEST(Architecture, AKernelIncludesItsFolderSharedOnesAndThoseOfItsRelatives) {
  std::set<std::pair<std::string, std::string>> relatives;
  const auto of_shared = [](const std::string& folder) {
    return std::ranges::find(kShared, folder);
  };
  for (const Include& include : includes_below("kernels")) {
    const std::string own = *std::next(include.file.begin()),
                      target = *fs::path(include.target).begin();
    if (own == target || layer_of(include.target) != "kernels") continue;
    if (of_shared(target) != kShared.end())
      EXPECT_LE(of_shared(target) - kShared.begin(), of_shared(own) - kShared.begin())
          << include.file << ":" << include.line << " includes " << include.target;
    else relatives.insert({own, target});
  }
  EXPECT_EQ(relatives, kRelatives);
}

// Their estimates lie beside the kernels, and are found by their registration.
TEST(Architecture, SelectionNamesNoKernel) {
  std::string names;
  for (const auto& entry : fs::directory_iterator(kRoot / "kernels")) {
    const std::string name = entry.path().filename();
    if (name != "auto" && std::ranges::find(kShared, name) == kShared.end())
      names += (names.empty() ? "" : "|") + name;
  }
  const std::regex kernel("\\b(" + names + ")\\b");
  ASSERT_TRUE(std::regex_search("of csr_naive, and", kernel));
  for (const auto& entry : fs::directory_iterator(kRoot / "src/select")) {
    const std::string text = text_of(entry.path());
    std::smatch found;
    EXPECT_FALSE(std::regex_search(text, found, kernel))
        << entry.path() << " names " << found.str();
  }
}

// A format of one kernel alone lies in the kernel's folder, which then is all that was added.
TEST(Architecture, HeadersOfSrcFormatAreNotOfOneKernelAlone) {
  std::map<std::string, std::set<std::string>> users;  // of a header, besides its own source file
  for (const std::string folder : {"src", "kernels"})
    for (const Include& include : includes_below(folder)) {
      if (layer_of(include.target) != "format") continue;
      const bool own = include.file.stem() == fs::path(include.target).stem();
      const bool of_kernel = layer_of(include.file) == "kernels";
      if (!own || of_kernel)
        users[include.target].insert(of_kernel ? include.file.parent_path() : include.file);
    }
  EXPECT_FALSE(users.empty());
  for (const auto& [header, of] : users)
    EXPECT_FALSE(of.size() == 1 && layer_of(*of.begin()) == "kernels")
        << "src/" << header << " is included by " << *of.begin() << " alone";
}

TEST(Architecture, PublicHeadersIncludeOnlyOneAnother) {
  for (const Include& include : includes_below("include")) {
    const bool own = include.target.starts_with("spmmbench/");
    EXPECT_TRUE(own || include.target.find('/') == std::string::npos)
        << include.file << ":" << include.line << " includes " << include.target;
  }
}

TEST(Architecture, InlineAssemblyStaysInKernelsPtx) {
  const std::regex assembly(R"(\b(asm|__asm__)\b\s*(volatile\b|\())");
  int found = 0;  // in kernels/ptx, where some must be: the expression still sees it
  for (const std::string folder : {"kernels", "src", "include"})
    for (const auto& entry : fs::recursive_directory_iterator(kRoot / folder)) {
      if (!is_source(entry.path())) continue;
      const bool allowed = entry.path().parent_path() == kRoot / "kernels" / "ptx";
      std::ifstream file(entry.path());
      int number = 0;
      for (std::string line; std::getline(file, line);) {
        ++number;
        if (line.find("asm") == std::string::npos || !std::regex_search(line, assembly)) continue;
        if (allowed) ++found;
        else ADD_FAILURE() << entry.path() << ":" << number << ": " << line;
      }
    }
  EXPECT_GT(found, 0);
}

struct Constant {
  std::string space, name;
  fs::path file;  // relative to the root
};

// Those that the files of a folder define outside of functions and classes.
std::vector<Constant> constants_below(const std::string& folder) {
  const std::regex opens(R"(^namespace ([\w:]*) ?\{$)"),
      defines("^(inline |static )*const(expr)? "), name(R"(\b(k[A-Z]\w*)(\[\w*\])? ?[={])");
  std::vector<Constant> constants;
  for (const auto& entry : fs::recursive_directory_iterator(kRoot / folder)) {
    if (!is_source(entry.path())) continue;
    std::vector<std::string> spaces = {""};
    std::ifstream file(entry.path());
    std::smatch found;
    for (std::string line; std::getline(file, line);) {
      if (std::regex_match(line, found, opens))
        spaces.push_back(spaces.back() + (found.length(1) > 0 ? found.str(1) + "::" : ""));
      else if (line.starts_with("}  // namespace")) spaces.pop_back();
      else if (std::regex_search(line, defines))
        for (std::sregex_iterator it(line.begin(), line.end(), name), end; it != end; ++it)
          constants.push_back({spaces.back(), it->str(1), fs::relative(entry.path(), kRoot)});
    }
  }
  return constants;
}

// Files that are compiled together see each other's constants, and no compiler warns where one
// hides that of a header: the code of another file would then read the wrong one.
TEST(Architecture, NoConstantHasTheNameOfOneInAHeaderOfAnEnclosingNamespace) {
  std::vector<Constant> all;
  for (const std::string folder : {"include", "src", "kernels", "tests"})
    std::ranges::copy(constants_below(folder), std::back_inserter(all));
  std::multimap<std::string, const Constant*> in_headers;
  for (const Constant& one : all)
    if (one.file.extension() == ".hpp" || one.file.extension() == ".cuh")
      in_headers.emplace(one.name, &one);
  EXPECT_FALSE(in_headers.empty());
  for (const Constant& one : all)
    for (auto [it, end] = in_headers.equal_range(one.name); it != end; ++it)
      EXPECT_FALSE(one.space != it->second->space && one.space.starts_with(it->second->space))
          << one.file << ": " << one.name << " hides that of " << it->second->file;
}

// tests/host/io/npz_test.cpp tests src/io/npz.cpp and npz_PART_test.cpp a part of it. What
// include/spmmbench declares is tested in the folder that it belongs to.
TEST(Architecture, EveryHostTestIsNamedAfterTheFileThatItTests) {
  const fs::path tests = kRoot / "tests/host";
  int checked = 0;
  for (const auto& entry : fs::recursive_directory_iterator(tests)) {
    const fs::path folder = fs::relative(entry.path().parent_path(), tests);
    if (entry.path().extension() != ".cpp" || folder == ".") continue;
    const bool of_kernels = *folder.begin() == "kernels";
    const fs::path source = of_kernels ? kRoot / folder : kRoot / "src" / folder;
    bool found = false;
    std::string name = entry.path().stem();  // without its last part, then without two, ...
    for (std::size_t end = name.rfind('_'); end != std::string::npos; end = name.rfind('_')) {
      name.resize(end);
      for (const fs::path& tested : {source, kRoot / "include/spmmbench"})
        for (const char* extension : {".cpp", ".hpp", ".cu", ".cuh"})
          found |= fs::exists(tested / (name + extension));
    }
    EXPECT_TRUE(found && entry.path().stem().string().ends_with("_test")) << entry.path();
    ++checked;
  }
  EXPECT_GT(checked, 0);
}

}  // namespace
