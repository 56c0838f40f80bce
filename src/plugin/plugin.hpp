#pragma once
// Kernels of shared libraries (spmmbench/plugin.h) as kernels of this program. On the command line
// they are named ./libmine.so (all of them) or ./libmine.so:NAME_GLOB; from then on they are called
// mine:NAME, like any kernel.

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "spmmbench/kernel.hpp"

namespace spmmbench {

// What the line begins with that `spmmbench worker --load PATH` prints when it has loaded the
// library; its description follows (plugin/described.hpp).
inline constexpr const char* kLoaded = "loaded ";

struct PluginPattern {
  std::string path;
  std::string kernels;  // glob over names within the library
};

// Whether a pattern of kernels (without options) names a library. No kernel's name has '/' or
// ".so".
bool names_plugin(std::string_view pattern);
PluginPattern parse_plugin_pattern(std::string_view pattern);

// "mine" for ./libmine.so.
std::string plugin_stem(std::string_view path);

// SHA-256 of the libraries that patterns of kernels name, by stem, those that can be read. A run's
// protocol has them as `plugin STEM`, so that --resume refuses rows of another build.
inline constexpr std::string_view kPluginInProtocol = "plugin ";
std::map<std::string, std::string> hashes_of_plugins(const std::vector<std::string>& patterns);

// Loads a library into this process and registers its kernels; a second call gives the same ones.
// Throws Error: no such file, not a shared library, no entry, another version, a description that
// plugin.h does not allow, a name that another library has already.
const std::vector<const Kernel*>& load_plugin(const std::string& path);

// Registers kernels of this library that can be named and planned, but run in children only: a
// child loads the library and describes it, in at most `timeout_s` seconds. Throws Error also where
// that child crashed or hung.
const std::vector<const Kernel*>& describe_plugin(const std::string& path, double timeout_s);

// For a library that cannot be loaded: one kernel with the name of the pattern, whose rows fail
// with `reason`.
std::vector<const Kernel*> unloadable(const PluginPattern& pattern, const std::string& reason);
std::string why_unloadable(const Kernel& kernel);  // empty for every other kernel

// The library that a kernel is from; empty for the program's own.
std::string plugin_path(const Kernel& kernel);

// The name of a row's kernel as a user types it: ./libmine.so:NAME?options for mine:NAME?options.
// The program's own kernels keep their names.
std::string kernel_argument(const std::string& label);

// The same for a recorded row, whose library this process need not have loaded: its command names
// the file.
std::string kernel_argument(const std::string& label, const std::string& command);

}  // namespace spmmbench
