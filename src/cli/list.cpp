#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <tuple>
#include <utility>

#include "cli/commands.hpp"
#include "cli/help.hpp"
#include "cli/lists.hpp"
#include "gpu/backend.hpp"
#include "io/output.hpp"
#include "measure/batch.hpp"
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

Json names(const std::vector<Layout>& layouts) {
  Json list = Json::array();
  for (const Layout layout : layouts) list.push_back(layout == Layout::row_major ? "row" : "col");
  return list;
}

template <class Enum>
Json names(const std::vector<Enum>& values) {
  Json list = Json::array();
  for (const Enum value : values) list.push_back(to_string(value));
  return list;
}

std::string sums_text(Accumulation accumulation) {
  switch (accumulation) {
    case Accumulation::fp32_fma: return "fp32";
    case Accumulation::fp32_tensor_core: return "tensor cores";
    case Accumulation::fp16: return "fp16";
  }
  return {};
}

// Those that there are.
Json limits_json(const SizeLimits& sizes) {
  Json limits = Json::object();
  if (sizes.square) limits["square"] = true;
  if (!sizes.allowed_n.empty()) limits["allowed_n"] = sizes.allowed_n;
  for (const auto& [name, value, none] :
       {std::tuple{"n_multiple", sizes.n_multiple, 1},
        std::tuple{"m_multiple", sizes.m_multiple, 1},
        std::tuple{"k_multiple", sizes.k_multiple, 1}, std::tuple{"max_n", sizes.max_n, 0},
        std::tuple{"max_mk", sizes.max_mk, 0}, std::tuple{"max_kn", sizes.max_kn, 0}})
    if (value > none) limits[name] = value;
  return limits;
}

// What it is with one value of an option, in full.
Json variant_json(const KernelInfo& info, const Variant& variant) {
  Options options;
  options.set(variant.option, variant.value);
  const KernelInfo with = info_with(info, options);
  return {{"option", variant.option},
          {"value", variant.value},
          {"sums", sums_text(with.accumulation)},
          {"c_types", names(written_types(with))},
          {"layouts", names(with.layouts)},
          {"sizes", with.sizes.text()},
          {"limits", limits_json(with.sizes)}};
}

// Names as those of plugin.h. A library's kernel has its own.
std::vector<std::string> flags_of(const KernelInfo& info, bool is_ours) {
  std::vector<std::string> flags = info.flags;
  if (!is_ours) return flags;
  for (const auto& [has, name] :
       {std::pair{info.binary, "binary_a"}, std::pair{info.adds_to_c, "adds_to_c"},
        std::pair{info.ignores_stream, "ignores_stream"}, std::pair{info.writes_row_ids, "row_ids"},
        std::pair{info.form.packed, "packed_rows"}, std::pair{info.inspects_b, "inspects_b"},
        std::pair{info.takes_values, "takes_values"}})
    if (has) flags.emplace_back(name);
  return flags;
}

Json memories_json(const KernelInfo& info) {
  Json memories = Json::array();
  for (const DeviceKind memory : info.a_memory)
    memories.push_back(memory == DeviceKind::cuda ? "cuda" : "host");
  return memories;
}

// What a library says of a kernel beside what there is of every kernel.
Json library_json(const Kernel& kernel) {
  const KernelInfo& info = kernel.info();
  Json variants = Json::array();
  for (const Variant& variant : info.variants) variants.push_back(variant_json(info, variant));
  return {
      {"library", plugin_path(kernel)}, {"a_memory", memories_json(info)}, {"variants", variants}};
}

Json entry_json(const Kernel& kernel) {
  const KernelInfo& info = kernel.info();
  const bool is_ours = plugin_path(kernel).empty();
  const bool tested = info.device == DeviceKind::cuda && is_ours;
  Json json = {
      {"name", info.name},
      {"summary", info.summary},
      {"source", info.source},
      {"purpose", info.purpose},
      {"device", info.device == DeviceKind::cuda ? "cuda" : "host"},
      {"min_compute_capability", info.device == DeviceKind::cuda ? info.min_compute_capability : 0},
      {"runs_on", where_it_runs(info)},
      {"tested_on", tested ? kTestedOn : ""},
      {"precisions", names(info.precisions)},
      {"sums", sums_text(info.accumulation)},
      {"c_types", names(written_types(info))},
      {"layouts", names(info.layouts)},
      {"sizes", info.sizes.text()},
      {"limits", limits_json(info.sizes)},
      {"packed_rows", info.form.packed},
      {"c_row_multiple", info.form.c_row_multiple},
      {"flags", flags_of(info, is_ours)},
      {"batch", why_no_batch(info).empty()},
      {"baseline", info.baseline},
      {"writes_row_ids", info.writes_row_ids},
      {"options", options_json(info.options)}};
  if (!is_ours) json.update(library_json(kernel));
  return json;
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

std::string comma_list(const Json& list) {
  return fmt::format("{}", fmt::join(list.get<std::vector<std::string>>(), ", "));
}

void print_traits(const Json& entry) {
  print("    {:<22} {}\n", "sums in", entry.at("sums").get<std::string>());
  print("    {:<22} {}, {}-major\n", "C", comma_list(entry.at("c_types")),
        comma_list(entry.at("layouts")));
  if (entry.contains("a_memory"))
    print("    {:<22} {}\n", "A on", comma_list(entry.at("a_memory")));
  if (!entry.at("flags").empty()) print("    {:<22} {}\n", "flags", comma_list(entry.at("flags")));
  if (const auto rows = entry.at("c_row_multiple").get<int>(); rows > 1)
    print("    {:<22} up to a multiple of {} rows\n", "writes C", rows);
  if (!entry.at("batch").get<bool>()) print("    {:<22} no --batch of rows\n", "takes");
  if (!entry.contains("variants")) return;
  for (const Json& variant : entry.at("variants")) {
    const std::string sizes = variant.at("sizes");
    print("    {:<22} sums in {}; C {}, {}-major{}\n",
          fmt::format("with {}={}", variant.at("option").get<std::string>(),
                      variant.at("value").get<std::string>()),
          variant.at("sums").get<std::string>(), comma_list(variant.at("c_types")),
          comma_list(variant.at("layouts")), sizes.empty() ? "" : "; takes " + sizes);
  }
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
    if (entry.contains("flags")) print_traits(entry);
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
              "schema: what each field of a result document means, as JSON Schema")
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
