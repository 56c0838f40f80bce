#include "plugin/described.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <variant>

#include "core/parse_json.hpp"
#include "plugin/plugin.hpp"
#include "spmmbench/error.hpp"

namespace spmmbench {
namespace {

using Json = nlohmann::ordered_json;
constexpr const char* kElsewhere = "runs in a process of its own";

Json to_json(const OptionSpec& option) {
  Json json = {{"name", option.name},
               {"default", option.default_value},
               {"help", option.help},
               {"automatic", option.automatic}};
  if (const auto* integers = std::get_if<IntegerRange>(&option.allowed))
    json["integers"] = {integers->least, integers->most};
  else if (const auto* reals = std::get_if<RealRange>(&option.allowed))
    json["reals"] = {reals->least, reals->most};
  else if (const auto* choices = std::get_if<Choices>(&option.allowed))
    json["choices"] = choices->names;
  return json;
}

OptionSpec read_option(const Json& json) {
  OptionSpec option;
  option.name = json.at("name");
  option.default_value = json.at("default");
  option.help = json.at("help");
  option.automatic = json.at("automatic");
  if (json.contains("integers"))
    option.allowed = IntegerRange{json.at("integers").at(0), json.at("integers").at(1)};
  else if (json.contains("reals"))
    option.allowed = RealRange{json.at("reals").at(0), json.at("reals").at(1)};
  else if (json.contains("choices"))
    option.allowed = Choices{json.at("choices").get<std::vector<std::string>>()};
  else option.allowed = TextForm{"text", [](const std::string&) { return true; }, {}};
  return option;
}

template <class Enum>
Json numbers(const std::vector<Enum>& values) {
  Json json = Json::array();
  for (const Enum value : values) json.push_back(static_cast<int>(value));
  return json;
}

template <class Enum>
Enum described_enum(const Json& json, Enum last) {
  const int value = json.get<int>();
  if (value < 0 || value > static_cast<int>(last))
    throw Error(fmt::format("its description: {} is out of range", value));
  return static_cast<Enum>(value);
}

template <class Enum>
std::vector<Enum> read_enums(const Json& json, Enum last) {
  std::vector<Enum> values;
  for (const Json& value : json) values.push_back(described_enum(value, last));
  return values;
}

Json to_json(const SizeLimits& sizes) {
  return {{"square", sizes.square},         {"allowed_n", sizes.allowed_n},
          {"n_multiple", sizes.n_multiple}, {"m_multiple", sizes.m_multiple},
          {"k_multiple", sizes.k_multiple}, {"max_n", sizes.max_n},
          {"max_mk", sizes.max_mk},         {"max_kn", sizes.max_kn}};
}

// Multiples are divisors, and nothing else says that they are at least 1.
std::int64_t read_multiple(const Json& json) {
  const auto multiple = json.get<std::int64_t>();
  if (multiple < 1) throw Error(fmt::format("its description: a multiple of {}", multiple));
  return multiple;
}

SizeLimits read_limits(const Json& json) {
  SizeLimits sizes;
  sizes.square = json.at("square");
  sizes.allowed_n = json.at("allowed_n").get<std::vector<std::int64_t>>();
  sizes.n_multiple = read_multiple(json.at("n_multiple"));
  sizes.m_multiple = read_multiple(json.at("m_multiple"));
  sizes.k_multiple = read_multiple(json.at("k_multiple"));
  sizes.max_n = json.at("max_n");
  sizes.max_mk = json.at("max_mk");
  sizes.max_kn = json.at("max_kn");
  return sizes;
}

Json to_json(const Variant& variant) {
  Json json = {{"option", variant.option},
               {"value", variant.value},
               {"c_types", numbers(variant.c_types)},
               {"layouts", numbers(variant.layouts)},
               {"allowed_n", variant.allowed_n},
               {"n_multiple", variant.n_multiple},
               {"max_n", variant.max_n}};
  if (variant.accumulation) json["accumulation"] = static_cast<int>(*variant.accumulation);
  return json;
}

Variant read_variant(const Json& json, const std::vector<OptionSpec>& options) {
  Variant variant{json.at("option"), json.at("value")};
  const auto is_its = [&](const OptionSpec& option) { return option.name == variant.option; };
  if (std::none_of(options.begin(), options.end(), is_its))
    throw Error(fmt::format("its description: no option {}", variant.option));
  if (json.contains("accumulation"))
    variant.accumulation = described_enum(json.at("accumulation"), Accumulation::fp16);
  variant.c_types = read_enums(json.at("c_types"), kElementTypes.back());
  variant.layouts = read_enums(json.at("layouts"), Layout::col_major);
  variant.allowed_n = json.at("allowed_n").get<std::vector<std::int64_t>>();
  variant.n_multiple = json.at("n_multiple");
  variant.max_n = json.at("max_n");
  return variant;
}

Json to_json(const KernelInfo& info) {
  Json json = {{"name", info.name},
               {"summary", info.summary},
               {"source", info.source},
               {"device", static_cast<int>(info.device)},
               {"min_compute_capability", info.min_compute_capability},
               {"exact_architecture", info.exact_architecture},
               {"precisions", numbers(info.precisions)},
               {"c_types", numbers(info.c_types)},
               {"layouts", numbers(info.layouts)},
               {"accumulation", static_cast<int>(info.accumulation)},
               {"writes_row_ids", info.writes_row_ids},
               {"binary", info.binary},
               {"inspects_b", info.inspects_b},
               {"ignores_stream", info.ignores_stream},
               {"sizes", to_json(info.sizes)},
               {"packed", info.form.packed},
               {"c_row_multiple", info.form.c_row_multiple},
               {"adds_to_c", info.adds_to_c},
               {"a_memory", numbers(info.a_memory)},
               {"flags", info.flags},
               {"options", Json::array()},
               {"variants", Json::array()}};
  for (const OptionSpec& option : info.options) json["options"].push_back(to_json(option));
  for (const Variant& variant : info.variants) json["variants"].push_back(to_json(variant));
  return json;
}

KernelInfo read_info(const Json& json) {
  KernelInfo info;
  info.name = json.at("name");
  info.summary = json.at("summary");
  info.source = json.at("source");
  info.device = described_enum(json.at("device"), DeviceKind::cuda);
  info.min_compute_capability = json.at("min_compute_capability");
  info.exact_architecture = json.at("exact_architecture");
  info.precisions = read_enums(json.at("precisions"), kPrecisions.back());
  info.c_types = read_enums(json.at("c_types"), kElementTypes.back());
  info.layouts = read_enums(json.at("layouts"), Layout::col_major);
  info.accumulation = described_enum(json.at("accumulation"), Accumulation::fp16);
  info.writes_row_ids = json.at("writes_row_ids");
  info.binary = json.at("binary");
  info.inspects_b = json.at("inspects_b");
  info.ignores_stream = json.at("ignores_stream");
  info.sizes = read_limits(json.at("sizes"));
  info.form.packed = json.at("packed");
  info.form.c_row_multiple = read_multiple(json.at("c_row_multiple"));
  info.adds_to_c = json.at("adds_to_c");
  info.a_memory = read_enums(json.at("a_memory"), DeviceKind::cuda);
  info.flags = json.at("flags").get<std::vector<std::string>>();
  for (const Json& option : json.at("options")) info.options.push_back(read_option(option));
  for (const Json& variant : json.at("variants"))
    info.variants.push_back(read_variant(variant, info.options));
  return info;
}

}  // namespace

Support DescribedKernel::supports(const Problem&, const DeviceInfo&) const {
  return Support::no(kElsewhere);
}

std::unique_ptr<Prepared> DescribedKernel::prepare(const SparseOperand&, const Options&, Device&,
                                                   StageTimer&) const {
  throw Error(kElsewhere);
}

std::string describe_kernels(const std::vector<const Kernel*>& kernels) {
  Json json = Json::array();
  for (const Kernel* const kernel : kernels) json.push_back(to_json(kernel->info()));
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::vector<std::unique_ptr<DescribedKernel>> read_kernels(const std::string& path,
                                                           const std::string& description) try {
  const std::string stem = plugin_stem(path) + ':';
  std::vector<std::unique_ptr<DescribedKernel>> kernels;
  for (const Json& json : parse_json(description)) {
    KernelInfo info = read_info(json);
    if (!info.name.starts_with(stem))
      throw Error(fmt::format("its description: {} is no kernel of it", info.name));
    kernels.push_back(std::make_unique<DescribedKernel>(path, std::move(info)));
  }
  if (kernels.empty()) throw Error("its description: no kernels");
  return kernels;
} catch (const nlohmann::json::exception& error) {
  throw Error(fmt::format("its description: {}", error.what()));
}

}  // namespace spmmbench
