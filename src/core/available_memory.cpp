#include "core/available_memory.hpp"

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>

namespace spmmbench {
namespace {

namespace fs = std::filesystem;

// The number in a file that holds one; `otherwise` if there is no such file or it holds a word.
std::size_t read_number(const fs::path& path, std::size_t otherwise) {
  std::ifstream file(path);
  std::size_t number = 0;
  return file >> number ? number : otherwise;
}

// The same of a file of lines "KEY NUMBER".
std::size_t read_number(const fs::path& path, std::string_view key, std::size_t otherwise) {
  std::ifstream file(path);
  for (std::string word; file >> word;) {
    std::size_t number = 0;
    if (word == key && file >> number) return number;
    file.ignore(256, '\n');
  }
  return otherwise;
}

std::size_t left_on_machine(const fs::path& root) {
  const std::size_t kib = read_number(root / "proc/meminfo", "MemAvailable:", SIZE_MAX);
  return kib == SIZE_MAX ? kib : kib * 1024;
}

// Files in the page cache count as used, but are dropped when memory is needed.
std::size_t left_in_group(const fs::path& group) {
  const std::size_t limit = read_number(group / "memory.max", SIZE_MAX);  // "max": there is none
  const std::size_t files = read_number(group / "memory.stat", "inactive_file", 0) +
                            read_number(group / "memory.stat", "active_file", 0);
  const std::size_t current = read_number(group / "memory.current", 0);
  const std::size_t used = current - std::min(current, files);
  return limit - std::min(limit, used);
}

// The path of this process's cgroup below the folder of all. Where only version 1 limits memory, it
// is a folder without these files.
fs::path own_group(const fs::path& root) {
  std::ifstream groups(root / "proc/self/cgroup");
  for (std::string line; std::getline(groups, line);)
    if (line.starts_with("0::/")) return line.substr(4);
  return {};
}

// What `ulimit -v` leaves of the addresses of this process.
std::size_t left_of_addresses(const fs::path& root) {
  constexpr std::string_view kName = "Max address space";
  std::ifstream limits(root / "proc/self/limits");
  for (std::string line; std::getline(limits, line);) {
    if (!line.starts_with(kName)) continue;
    std::istringstream soft(line.substr(kName.size()));
    std::size_t limit = 0;
    if (!(soft >> limit)) return SIZE_MAX;  // "unlimited"
    const std::size_t kib = read_number(root / "proc/self/status", "VmSize:", 0);
    return limit - std::min(limit, kib * 1024);
  }
  return SIZE_MAX;
}

}  // namespace

std::size_t available_memory_bytes() { return available_memory_bytes("/"); }

std::size_t available_memory_bytes(const fs::path& root) {
  const fs::path all_groups = root / "sys/fs/cgroup";
  std::size_t left = std::min(left_on_machine(root), left_in_group(all_groups));
  for (fs::path group = own_group(root); !group.empty(); group = group.parent_path())
    left = std::min(left, left_in_group(all_groups / group));
  return std::min(left, left_of_addresses(root));
}

}  // namespace spmmbench
