#include "run/work.hpp"

#include <fmt/format.h>

#include "core/parse_json.hpp"
#include "plugin/plugin.hpp"
#include "spmmbench/error.hpp"
#include "spmmbench/printable.hpp"

namespace spmmbench {
namespace {

using Json = nlohmann::ordered_json;
using Sizes = std::optional<std::pair<std::int64_t, std::int64_t>>;

Json texts(const std::vector<std::string>& values) {
  Json json = Json::array();
  for (const std::string& value : values) json.push_back(to_printable(value));
  return json;
}

std::vector<std::string> read_texts(const Json& json) {
  std::vector<std::string> values;
  for (const Json& value : json) values.push_back(from_printable(value.get<std::string>()));
  return values;
}

std::string read_text(const Json& json) { return from_printable(json.get<std::string>()); }

Sizes read_sizes(const Json& json) {
  return json.is_null()
             ? std::nullopt
             : Sizes(std::pair(json.at(0).get<std::int64_t>(), json.at(1).get<std::int64_t>()));
}

Json sizes(const Sizes& value) { return value ? Json{value->first, value->second} : Json(nullptr); }

template <class Enum>
Enum read_enum(const Json& json, Enum last) {
  const int value = json.get<int>();
  if (value < 0 || value > static_cast<int>(last))
    throw Error(fmt::format("work description: {} is out of range", value));
  return static_cast<Enum>(value);
}

}  // namespace

std::string describe_work(const RunOptions& options) {
  // All members are bound by name: with a new one this does not compile until it is named here, and
  // then written below and read in read_work unless a child has no use for it. These have none:
  // csv, tags, dry_run, tables, table, calls_given, overwrite, can_resume, devices and after_case,
  // since a child writes one document or lines of JSON and measures on one device.
  const auto& [inputs, ns, kernels, exclude, precisions, c_type, layout, reorderings, baselines,
               load, b_file, b_dims, json, csv, tags, save_failing, cache, repeat_check, dry_run,
               quiet, tables, table, calls_given, jsonl, resume, overwrite, can_resume, known,
               isolate, timeout_s, plugins_here, limits, rates, device, devices, one_launch,
               after_case] = options;
  const auto& [seed, dims, bin_type, prune] = load;
  const auto& [copy, gather, dense] = rates;
  const auto& [noise, min_samples, max_samples, max_seconds] = limits;
  Json work = {{"inputs", texts(inputs)},
               {"ns", ns},
               {"kernels", texts(kernels)},
               {"exclude", texts(exclude)},
               {"precisions", Json::array()},
               {"c_type", static_cast<int>(c_type)},
               {"layout", static_cast<int>(layout)},
               {"reorderings", Json::array()},
               {"baselines", baselines},
               {"seed", seed},
               {"dims", sizes(dims)},
               {"bin_type", static_cast<int>(bin_type)},
               {"prune", to_printable(prune)},
               {"b_file", to_printable(b_file)},
               {"b_dims", sizes(b_dims)},
               {"json", to_printable(json)},
               {"save_failing", to_printable(save_failing)},
               {"cache", to_printable(cache)},
               {"repeat_check", repeat_check},
               {"quiet", quiet},
               {"jsonl", jsonl},
               {"resume", static_cast<int>(resume)},
               {"known", Json::array()},
               {"isolate", isolate},
               {"timeout_s", timeout_s},
               {"plugins_here", plugins_here},
               {"noise", noise},
               {"min_samples", min_samples},
               {"max_samples", max_samples},
               {"max_seconds", max_seconds},
               {"rates", {copy, gather, dense}},
               {"device", device},
               {"one_launch", one_launch}};
  for (const Precision precision : precisions)
    work["precisions"].push_back(static_cast<int>(precision));
  for (const Spec& spec : reorderings) work["reorderings"].push_back(spec.to_string());
  for (const auto& [key, recorded] : known)
    work["known"].push_back({key, static_cast<int>(recorded.status), recorded.sha256});
  return work.dump();
}

RunOptions read_work(const std::string& text) try {
  const Json work = parse_json(text);
  RunOptions options;
  options.inputs = read_texts(work.at("inputs"));
  options.ns = work.at("ns").get<std::vector<std::int64_t>>();
  options.kernels = read_texts(work.at("kernels"));
  options.exclude = read_texts(work.at("exclude"));
  options.precisions.clear();
  for (const Json& precision : work.at("precisions"))
    options.precisions.push_back(read_enum(precision, kPrecisions.back()));
  options.c_type = read_enum(work.at("c_type"), kElementTypes.back());
  options.layout = read_enum(work.at("layout"), Layout::col_major);
  options.reorderings.clear();
  for (const Json& spec : work.at("reorderings"))
    options.reorderings.push_back(Spec::parse(spec.get<std::string>()));
  options.baselines = work.at("baselines");
  options.load.seed = work.at("seed");
  options.load.dims = read_sizes(work.at("dims"));
  options.load.bin_type = read_enum(work.at("bin_type"), kElementTypes.back());
  options.load.prune = read_text(work.at("prune"));
  options.b_file = read_text(work.at("b_file"));
  options.b_dims = read_sizes(work.at("b_dims"));
  options.json = read_text(work.at("json"));
  options.save_failing = read_text(work.at("save_failing"));
  options.cache = read_text(work.at("cache"));
  options.repeat_check = work.at("repeat_check");
  options.quiet = work.at("quiet");
  options.jsonl = work.at("jsonl");
  options.resume = read_enum(work.at("resume"), Resume::failed);
  for (const Json& entry : work.at("known"))
    options.known[entry.at(0).get<std::string>()] = {read_enum(entry.at(1), Status::timeout),
                                                     entry.at(2).get<std::string>()};
  options.isolate = work.at("isolate");
  options.timeout_s = work.at("timeout_s");
  options.plugins_here = work.at("plugins_here");
  options.limits.noise = work.at("noise");
  options.limits.min_samples = work.at("min_samples");
  options.limits.max_samples = work.at("max_samples");
  options.limits.max_seconds = work.at("max_seconds");
  const Json& rates = work.at("rates");
  options.rates = {rates.at(0), rates.at(1), rates.at(2)};
  options.device = work.at("device");
  options.one_launch = work.at("one_launch");
  return options;
} catch (const nlohmann::json::exception& error) {
  throw Error(fmt::format("work description: {}", error.what()));
}

RunOptions child_work(RunOptions options) {
  options.json.clear();
  options.csv.clear();
  options.quiet = options.jsonl = true;
  options.devices.clear();
  options.after_case = nullptr;
  return options;
}

RunOptions case_work(const RunOptions& options, const ResultRow& row) {
  RunOptions work = child_work(options);
  work.inputs = {from_printable(row.matrix.source)};
  work.ns = {row.n};
  work.kernels = {kernel_argument(row.kernel, row.command)};
  work.exclude.clear();
  work.precisions = {parse_precision(row.precision)};
  work.c_type = parse_element_type(row.c_type);
  work.layout = row.layout == "col" ? Layout::col_major : Layout::row_major;
  work.reorderings = {Spec::parse(row.reorder)};
  work.baselines = false;
  work.resume = Resume::none;
  work.known.clear();
  work.isolate = false;
  work.plugins_here = true;
  return work;
}

}  // namespace spmmbench
