#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "cli/commands.hpp"
#include "cli/help.hpp"
#include "cli/lists.hpp"
#include "gpu/backend.hpp"
#include "io/output.hpp"
#include "plugin/plugin.hpp"
#include "report/fields.hpp"
#include "run/options.hpp"
#include "spmmbench/registry.hpp"

namespace spmmbench {
namespace {

using Json = nlohmann::ordered_json;

Json options_json(const std::vector<OptionSpec>& options) {
  Json list = Json::array();
  for (const OptionSpec& option : options) {
    Json entry = {{"name", option.name},
                  {"type", option.type()},
                  {"allowed", option.expected()},
                  {"default", option.default_value},
                  {"help", option.help}};
    if (const auto* integers = std::get_if<IntegerRange>(&option.allowed))
      entry.update({{"least", integers->least}, {"most", integers->most}});
    if (const auto* reals = std::get_if<RealRange>(&option.allowed))
      entry.update({{"least", reals->least}, {"most", reals->most}});
    if (const auto* choices = std::get_if<Choices>(&option.allowed))
      entry["choices"] = choices->names;
    list.push_back(std::move(entry));
  }
  return list;
}

template <class T>
Json entry_json(const T& entry) {
  return {{"name", entry.name()},
          {"summary", entry.summary()},
          {"options", options_json(entry.options())}};
}

// Our device tests have run on compute capability 9.0 alone (H100, H200).
constexpr const char* kTestedOn = "9.0";

std::string where_it_runs(const KernelInfo& info) {
  if (info.device == DeviceKind::host) return "the CPU";
  return fmt::format("compute capability {}.{}{}", info.min_compute_capability / 10,
                     info.min_compute_capability % 10,
                     info.exact_architecture ? " alone" : " and newer");
}

Json entry_json(const Kernel& kernel) {
  const KernelInfo& info = kernel.info();
  const bool tested = info.device == DeviceKind::cuda && plugin_path(kernel).empty();
  Json precisions = Json::array(), layouts = Json::array(), c_types = Json::array();
  for (const Precision p : info.precisions) precisions.push_back(to_string(p));
  for (const ElementType t : info.c_types) c_types.push_back(to_string(t));
  for (const Layout l : info.layouts) layouts.push_back(l == Layout::row_major ? "row" : "col");
  return {
      {"name", info.name},
      {"summary", info.summary},
      {"source", info.source},
      {"purpose", info.purpose},
      {"device", info.device == DeviceKind::cuda ? "cuda" : "host"},
      {"min_compute_capability", info.device == DeviceKind::cuda ? info.min_compute_capability : 0},
      {"runs_on", where_it_runs(info)},
      {"tested_on", tested ? kTestedOn : ""},
      {"precisions", precisions},
      {"c_types", c_types},
      {"layouts", layouts},
      {"sizes", info.sizes.text()},
      {"packed_rows", info.form.packed},
      {"c_row_multiple", info.form.c_row_multiple},
      {"baseline", info.baseline},
      {"writes_row_ids", info.writes_row_ids},
      {"options", options_json(info.options)}};
}

Json entry_json(const DeviceInfo& device) {
  return {
      {"name", fmt::format("{}: {}", device.index, device.name)},
      {"summary",
       fmt::format("compute capability {}.{}, {} SMs, {:.1f} GiB, driver {}",
                   device.compute_capability / 10, device.compute_capability % 10, device.sm_count,
                   static_cast<double>(device.memory_bytes) / (1 << 30), device.driver_version)},
      {"options", Json::array()}};
}

template <class T>
Json registry_json() {
  Json list = Json::array();
  for (const T* entry : Registry<T>::instance().sorted()) list.push_back(entry_json(*entry));
  return list;
}

Json devices_json() {
  Json list = Json::array();
  for (const DeviceInfo& device : probe_cuda().devices) list.push_back(entry_json(device));
  return list;
}

Json plugins_json(const std::vector<std::string>& paths) {
  Json list = Json::array();
  for (const std::string& path : paths)
    for (const Kernel* kernel : describe_plugin(path, Protocol{}.timeout_s))
      list.push_back(entry_json(*kernel));
  return list;
}

void print_section(const std::string& title, const Json& entries) {
  print("{}\n", title);
  for (const Json& entry : entries) {
    const std::string purpose = entry.value("purpose", "");
    print("  {:<24} {}{}\n", entry.at("name").get<std::string>(),
          entry.at("summary").get<std::string>(),
          purpose.empty() ? "" : fmt::format(" ({}; runs when named)", purpose));
    if (entry.contains("runs_on")) {
      const std::string tested = entry.at("tested_on").get<std::string>();
      print("    {:<22} {}{}\n", "runs on", entry.at("runs_on").get<std::string>(),
            tested.empty() ? "" : ", tested on " + tested);
    }
    if (const std::string sizes = entry.value("sizes", ""); !sizes.empty())
      print("    {:<22} {}\n", "takes", sizes);
    for (const Json& option : entry.at("options"))
      print("    {:<22} {} [{}]\n    {:<22} {}\n", option.at("name").get<std::string>() + "=",
            option.at("help").get<std::string>(), option.at("default").get<std::string>(), "",
            option.at("allowed").get<std::string>());
  }
}

}  // namespace

void add_list(CLI::App& app, ExitCode&) {
  struct ListArguments {
    std::string what;
    std::vector<std::string> plugins;
    bool json = false;
  };
  auto in = std::make_shared<ListArguments>();
  CLI::App* list = app.add_subcommand(
      "list", "What this build offers: kernels, formats, reorderings, generators, devices");
  CLI::Option* what =
      list->add_option(
              "WHAT", in->what,
              "kernels, formats, reorderings, generators or devices; default: all of them. "
              "schema: what every field of a result document means, as JSON Schema")
          ->check(one_of({"kernels", "formats", "reorderings", "generators", "devices", "schema"}));
  add_list_option(*list, "--plugin", in->plugins, "The kernels of these shared libraries instead")
      ->allow_extra_args()
      ->excludes(what);
  list->add_flag("--json", in->json, "As JSON");
  list->callback([in] {
    if (in->what == "schema") {
      print("{}\n", result_schema().dump(2));
      return;
    }
    Json sections = Json::object();
    const auto add = [&](const char* name, auto make) {
      if (in->what.empty() || in->what == name) sections[name] = make();
    };
    if (!in->plugins.empty()) {
      sections["kernels"] = plugins_json(in->plugins);
    } else {
      add("kernels", registry_json<Kernel>);
      add("formats", registry_json<Format>);
      add("reorderings", registry_json<Reordering>);
      add("generators", registry_json<Generator>);
      add("devices", devices_json);
    }
    if (in->json) {
      print("{}\n", sections.dump(2));
      return;
    }
    for (const auto& [title, entries] : sections.items()) print_section(title, entries);
    if (sections.contains("devices") && sections["devices"].empty())
      print("  none: {}\n", probe_cuda().reason);
  });
}

}  // namespace spmmbench
