#include "report/machine_and_build.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string_view>

namespace spmmbench {
namespace {

// The names in "a, b", as a run on several GPUs and `merge` write them.
std::set<std::string> names_in(const std::string& list) {
  constexpr std::string_view kBetween = ", ";
  std::set<std::string> names;
  for (std::size_t begin = 0; begin <= list.size();) {
    const std::size_t end = std::min(list.find(kBetween, begin), list.size());
    names.insert(list.substr(begin, end - begin));
    begin = end + kBetween.size();
  }
  return names;
}

// Whether sources that differ have this name. `merge` lists revisions.
bool is_of_many_builds(const std::string& revision) {
  return revision.find("-dirty") != std::string::npos ||
         revision.find("unknown") != std::string::npos;
}

}  // namespace

std::string Difference::text() const {
  return fmt::format("{} differs: '{}' and '{}'", field, one, other);
}

std::vector<Difference> differences_of_machine_and_build(const RunContext& a, const RunContext& b) {
  std::vector<Difference> found;
  const auto check = [&found]<class T>(std::string_view field, const T& one, const T& other) {
    if (one != other && one != T{} && other != T{})
      found.push_back({std::string(field), fmt::format("{}", one), fmt::format("{}", other)});
  };
  const DeviceInfo &on = a.device, &with = b.device;
  check("hostname", a.hostname, b.hostname);
  check("device.name", on.name, with.name);
  if (names_in(on.uuid) != names_in(with.uuid)) check("device.uuid", on.uuid, with.uuid);
  check(on.kind == DeviceKind::host ? "threads" : "device.sm_count", on.sm_count, with.sm_count);
  check("device.l2_bytes", on.l2_bytes, with.l2_bytes);
  check("device.driver_version", on.driver_version, with.driver_version);
  check("device.runtime_version", on.runtime_version, with.runtime_version);
  check("device.cusparse_version", on.cusparse_version, with.cusparse_version);
  check("device.cublas_version", on.cublas_version, with.cublas_version);
  check("tool_version", a.tool_version, b.tool_version);
  check("git_revision", a.git_revision, b.git_revision);
  check("build_flags", a.build_flags, b.build_flags);
  if (is_of_many_builds(a.git_revision)) check("build_id", a.build_id, b.build_id);
  return found;
}

}  // namespace spmmbench
