#include "plugin/plugin.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "core/steady_seconds.hpp"
#include "io/sha256.hpp"
#include "plugin/described.hpp"
#include "plugin/plugin_kernel.hpp"
#include "process/child.hpp"
#include "spmmbench/error.hpp"
#include "spmmbench/plugin.h"
#include "spmmbench/registry.hpp"

namespace spmmbench {
namespace {

constexpr std::string_view kSuffix = ".so";

// Matches the whole file name of a library: mine.so, mine.so.1.
std::size_t end_of_path(std::string_view pattern) {
  const std::size_t suffix = pattern.rfind(kSuffix);
  const std::size_t from = suffix == std::string_view::npos ? pattern.rfind('/') : suffix;
  return std::min(pattern.find(':', from == std::string_view::npos ? 0 : from), pattern.size());
}

// While it lives, what is printed on standard output goes to standard error: a library may greet
// its user when it is loaded, and standard output may be that of --json or of a worker.
class StdoutToStderr {
 public:
  StdoutToStderr() : saved_(move_to(STDERR_FILENO)) {}
  StdoutToStderr(const StdoutToStderr&) = delete;
  StdoutToStderr& operator=(const StdoutToStderr&) = delete;
  ~StdoutToStderr() {
    if (saved_ < 0) return;
    close(move_to(saved_));
    close(saved_);
  }

 private:
  // A copy of what standard output was; negative where it is closed.
  static int move_to(int file) {
    std::fflush(stdout);
    const int saved = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0);
    if (saved >= 0) dup2(file, STDOUT_FILENO);
    return saved;
  }
  int saved_;
};

// Asks for this version, then for the first.
const spmmbench_library* call_entry(decltype(&spmmbench_kernels) entry) {
  try {
    const spmmbench_library* const library = entry(SPMMBENCH_ABI_VERSION);
    return library != nullptr ? library : entry(1);
  } catch (const std::exception& error) {
    throw Error(fmt::format("spmmbench_kernels threw a C++ exception: {}", error.what()));
  } catch (...) {
    throw Error("spmmbench_kernels threw a C++ exception");
  }
}

const spmmbench_library& open_library(const std::string& path) {
  if (!std::filesystem::exists(path)) throw Error("no such file");
  // With a slash, dlopen takes this file and no library of the same name in another folder.
  const std::string file = std::filesystem::absolute(path).string();
  const StdoutToStderr redirected;
  void* const handle = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const std::string said = dlerror();
    const std::string prefix = file + ": ";
    throw Error(fmt::format("cannot be loaded: {}",
                            said.starts_with(prefix) ? said.substr(prefix.size()) : said));
  }
  const auto entry =
      reinterpret_cast<decltype(&spmmbench_kernels)>(dlsym(handle, "spmmbench_kernels"));
  if (entry == nullptr) throw Error("is no plug-in: it does not export spmmbench_kernels");
  const spmmbench_library* const library = call_entry(entry);
  if (library == nullptr)
    throw Error(fmt::format("speaks neither version {} nor 1 of spmmbench/plugin.h",
                            SPMMBENCH_ABI_VERSION));
  // In every version of the interface the struct begins with these two members.
  const bool has_both = library->size >= offsetof(spmmbench_library, name);
  if (has_both && (library->abi_version < 1 || library->abi_version > SPMMBENCH_ABI_VERSION))
    throw Error(fmt::format("was compiled with version {} of spmmbench/plugin.h: expected {} or 1",
                            library->abi_version, SPMMBENCH_ABI_VERSION));
  if (library->size < sizeof(spmmbench_library))
    throw Error(fmt::format("spmmbench_library.size is {}: expected {}", library->size,
                            sizeof(spmmbench_library)));
  if (library->last_error == nullptr || library->kernels == nullptr || library->kernel_count == 0)
    throw Error("expected kernels and last_error in its spmmbench_library");
  return *library;
}

void require_new_name(const std::string& name) {
  if (Registry<Kernel>::instance().find(name) != nullptr)
    throw Error(fmt::format("another library has a kernel {} already: rename one file", name));
}

std::vector<std::unique_ptr<PluginKernel>> kernels_of(const std::string& path) {
  const double start = steady_seconds();
  const spmmbench_library& library = open_library(path);
  const double load_ms = (steady_seconds() - start) * 1e3;
  std::vector<std::unique_ptr<PluginKernel>> kernels;
  std::set<std::string> names;
  for (std::size_t i = 0; i < library.kernel_count; ++i) {
    const spmmbench_kernel* const kernel = library.kernels[i];
    if (kernel == nullptr) throw Error(fmt::format("kernel {} is NULL", i));
    const std::size_t least =
        library.abi_version == 1 ? SPMMBENCH_KERNEL_SIZE_1 : SPMMBENCH_KERNEL_SIZE_2;
    if (kernel->size < least)
      throw Error(fmt::format("spmmbench_kernel.size of kernel {} is {}: expected {}", i,
                              kernel->size, least));
    kernels.push_back(std::make_unique<PluginKernel>(path, library, *kernel, load_ms));
    const std::string& name = kernels.back()->info().name;
    if (!names.insert(name).second) throw Error(fmt::format("two kernels are called {}", name));
    require_new_name(name);
  }
  return kernels;
}

class Unloadable final : public Kernel {
 public:
  Unloadable(const PluginPattern& pattern, std::string reason)
      : path_(pattern.path), reason_(std::move(reason)) {
    info_.name = fmt::format("{}:{}", plugin_stem(path_), pattern.kernels);
    info_.device = DeviceKind::host;
  }
  const KernelInfo& info() const override { return info_; }
  const std::string& path() const { return path_; }
  const std::string& reason() const { return reason_; }
  Support supports(const Problem&, const DeviceInfo&) const override {
    return Support::no(reason_);
  }
  std::unique_ptr<Prepared> prepare(const SparseOperand&, const Options&, Device&,
                                    StageTimer&) const override {
    throw Error(reason_);
  }

 private:
  std::string path_, reason_;
  KernelInfo info_;
};

}  // namespace

bool names_plugin(std::string_view pattern) {
  return pattern.find('/') != std::string_view::npos ||
         pattern.find(kSuffix) != std::string_view::npos;
}

PluginPattern parse_plugin_pattern(std::string_view pattern) {
  const std::size_t end = end_of_path(pattern);
  PluginPattern parsed{std::string(pattern.substr(0, end)), "*"};
  if (end < pattern.size()) parsed.kernels = pattern.substr(end + 1);
  return parsed;
}

std::string plugin_stem(std::string_view path) {
  std::string name = std::filesystem::path(path).filename().string();
  if (const std::size_t suffix = name.rfind(kSuffix); suffix != std::string::npos)
    name.resize(suffix);
  return name.starts_with("lib") && name.size() > 3 ? name.substr(3) : name;
}

std::map<std::string, std::string> hashes_of_plugins(const std::vector<std::string>& patterns) {
  std::map<std::string, std::string> hashes;
  for (const std::string& pattern : patterns) {
    const std::string name = Spec::parse(pattern).name;
    if (!names_plugin(name)) continue;
    const std::string path = parse_plugin_pattern(name).path;
    if (std::string hash = file_sha256(path); !hash.empty())
      hashes[plugin_stem(path)] = std::move(hash);
  }
  return hashes;
}

const std::vector<const Kernel*>& load_plugin(const std::string& path) {
  static std::map<std::string, std::vector<const Kernel*>> loaded;
  if (const auto found = loaded.find(path); found != loaded.end()) return found->second;
  try {
    std::vector<const Kernel*> pointers;
    for (std::unique_ptr<PluginKernel>& kernel : kernels_of(path)) {
      pointers.push_back(kernel.get());
      Registry<Kernel>::instance().add(std::move(kernel));
    }
    return loaded.emplace(path, std::move(pointers)).first->second;
  } catch (const Error& error) {
    throw Error(fmt::format("{}: {}", path, error.what()));
  }
}

const std::vector<const Kernel*>& describe_plugin(const std::string& path, double timeout_s) {
  static std::map<std::string, std::vector<const Kernel*>> described;
  if (const auto found = described.find(path); found != described.end()) return found->second;
  Child child(kThisProgram, {"worker", "--load", path});
  const double deadline = steady_seconds() + timeout_s;
  std::string description;
  const auto keep = [&](const std::string& line) {
    if (line.starts_with(kLoaded)) description = line.substr(std::string_view(kLoaded).size());
  };
  while (child.pump(keep)) {
    if (steady_seconds() > deadline)
      throw Error(fmt::format("{}: did not load within {:g} s", path, timeout_s));
    pause_briefly();
  }
  if (description.empty()) {
    constexpr std::string_view kSpeaker = "spmmbench: ";
    std::string said = child.last_words();
    if (child.exited() && said.starts_with(kSpeaker)) throw Error(said.substr(kSpeaker.size()));
    throw Error(fmt::format("{}: the process that loaded it ended: {}", path, child.ending()));
  }
  try {
    std::vector<const Kernel*> pointers;
    for (std::unique_ptr<DescribedKernel>& kernel : read_kernels(path, description)) {
      require_new_name(kernel->info().name);
      pointers.push_back(kernel.get());
      Registry<Kernel>::instance().add(std::move(kernel));
    }
    return described.emplace(path, std::move(pointers)).first->second;
  } catch (const Error& error) {
    throw Error(fmt::format("{}: {}", path, error.what()));
  }
}

std::vector<const Kernel*> unloadable(const PluginPattern& pattern, const std::string& reason) {
  auto kernel = std::make_unique<Unloadable>(pattern, reason);
  const Kernel* const pointer = kernel.get();
  Registry<Kernel>::instance().add(std::move(kernel));
  return {pointer};
}

std::string why_unloadable(const Kernel& kernel) {
  const auto* const broken = dynamic_cast<const Unloadable*>(&kernel);
  return broken == nullptr ? std::string() : broken->reason();
}

std::string plugin_path(const Kernel& kernel) {
  if (const auto* const plugin = dynamic_cast<const PluginKernel*>(&kernel)) return plugin->path();
  if (const auto* const known = dynamic_cast<const DescribedKernel*>(&kernel)) return known->path();
  if (const auto* const broken = dynamic_cast<const Unloadable*>(&kernel)) return broken->path();
  return {};
}

std::string kernel_argument(const std::string& label) {
  const Spec spec = Spec::parse(label);
  const Kernel* const kernel = Registry<Kernel>::instance().find(spec.name);
  if (kernel == nullptr) return label;
  const std::string path = plugin_path(*kernel);
  if (path.empty()) return label;
  return path + label.substr(plugin_stem(path).size());
}

std::string kernel_argument(const std::string& label, const std::string& command) {
  std::string argument = kernel_argument(label);
  const std::size_t colon = label.find(':');
  if (argument != label || colon == std::string::npos) return argument;
  // ... -k PATH:NAME?options ..., in quotes where a shell needs them
  constexpr std::string_view kFlag = " -k ";
  const std::string name = label.substr(colon);
  const std::size_t flag = command.find(kFlag);
  const std::size_t end =
      command.find(name, flag == std::string::npos ? flag : flag + kFlag.size());
  if (end == std::string::npos) return label;
  const std::size_t begin = flag + kFlag.size();
  const std::size_t quote = command[begin] == '\'' ? 1 : 0;
  return command.substr(begin + quote, end - begin - quote) + name;
}

}  // namespace spmmbench
