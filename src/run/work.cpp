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

std::string describe_work(const Work& work) {
  // All members are bound by name: with a new one this does not compile until it is named here, and
  // then written below and read in read_work.
  const auto& [inputs, ns, kernels, exclude, precisions, c_type, layout, reorderings, baselines,
               load, b_file, b_dims, scalars, batch, gpus, split, resume, known] = work.cases;
  const auto& [limits, repeat_check, calls_curve, one_launch, isolate, interleave, timeout_s,
               plugins_here, cache, save_failing, rates, device, nonce, place, a_memory] =
      work.protocol;
  const auto& [seed, dims, bin_type, prune, fp64, transpose] =
      load;  // fp64 follows from the precisions
  const auto& [copy, gather, dense] = rates;
  const auto& [noise, min_samples, max_samples, max_seconds] = limits;
  Json json = {{"inputs", texts(inputs)},
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
               {"transpose", transpose},
               {"b_file", to_printable(b_file)},
               {"b_dims", sizes(b_dims)},
               {"scalars", {scalars.alpha, scalars.beta}},
               {"batch", batch},
               {"gpus", gpus},
               {"split", split},
               {"place", {place.rank, place.ranks, place.on_host, to_printable(place.meeting)}},
               {"save_failing", to_printable(save_failing)},
               {"cache", to_printable(cache)},
               {"repeat_check", repeat_check},
               {"calls_curve", calls_curve},
               {"a_memory", static_cast<int>(a_memory)},
               {"resume", static_cast<int>(resume)},
               {"known", Json::array()},
               {"isolate", isolate},
               {"interleave", interleave},
               {"timeout_s", timeout_s},
               {"plugins_here", plugins_here},
               {"noise", noise},
               {"min_samples", min_samples},
               {"max_samples", max_samples},
               {"max_seconds", max_seconds},
               {"rates", {copy, gather, dense}},
               {"device", device},
               {"one_launch", one_launch},
               {"nonce", nonce}};
  for (const Precision precision : precisions)
    json["precisions"].push_back(static_cast<int>(precision));
  for (const Spec& spec : reorderings) json["reorderings"].push_back(spec.to_string());
  for (const auto& [key, recorded] : known)
    json["known"].push_back({key, static_cast<int>(recorded.status), recorded.sha256});
  return json.dump();
}

Work read_work(const std::string& text) try {
  const Json json = parse_json(text);
  Work work;
  Cases& cases = work.cases;
  cases.inputs = read_texts(json.at("inputs"));
  cases.ns = json.at("ns").get<std::vector<std::int64_t>>();
  cases.kernels = read_texts(json.at("kernels"));
  cases.exclude = read_texts(json.at("exclude"));
  cases.precisions.clear();
  for (const Json& precision : json.at("precisions"))
    cases.precisions.push_back(read_enum(precision, kPrecisions.back()));
  cases.c_type = read_enum(json.at("c_type"), kElementTypes.back());
  cases.layout = read_enum(json.at("layout"), Layout::col_major);
  cases.reorderings.clear();
  for (const Json& spec : json.at("reorderings"))
    cases.reorderings.push_back(Spec::parse(spec.get<std::string>()));
  cases.baselines = json.at("baselines");
  cases.load.seed = json.at("seed");
  cases.load.dims = read_sizes(json.at("dims"));
  cases.load.bin_type = read_enum(json.at("bin_type"), kElementTypes.back());
  cases.load.prune = read_text(json.at("prune"));
  cases.load.transpose = json.at("transpose");
  cases.b_file = read_text(json.at("b_file"));
  cases.b_dims = read_sizes(json.at("b_dims"));
  cases.scalars = {json.at("scalars").at(0), json.at("scalars").at(1)};
  cases.batch = json.at("batch");
  cases.gpus = json.at("gpus");
  cases.split = json.at("split").get<std::string>();
  cases.resume = read_enum(json.at("resume"), Resume::failed);
  for (const Json& entry : json.at("known"))
    cases.known[entry.at(0).get<std::string>()] = {read_enum(entry.at(1), Status::timeout),
                                                   entry.at(2).get<std::string>()};
  Protocol& protocol = work.protocol;
  protocol.save_failing = read_text(json.at("save_failing"));
  protocol.cache = read_text(json.at("cache"));
  protocol.repeat_check = json.at("repeat_check");
  protocol.calls_curve = json.at("calls_curve").get<std::vector<std::int64_t>>();
  protocol.a_memory = read_enum(json.at("a_memory"), DeviceKind::cuda);
  protocol.isolate = json.at("isolate");
  protocol.interleave = json.at("interleave");
  protocol.timeout_s = json.at("timeout_s");
  protocol.plugins_here = json.at("plugins_here");
  protocol.limits.noise = json.at("noise");
  protocol.limits.min_samples = json.at("min_samples");
  protocol.limits.max_samples = json.at("max_samples");
  protocol.limits.max_seconds = json.at("max_seconds");
  const Json& rates = json.at("rates");
  protocol.rates = {rates.at(0), rates.at(1), rates.at(2)};
  protocol.device = json.at("device");
  protocol.one_launch = json.at("one_launch");
  protocol.nonce = json.at("nonce").get<std::string>();
  const Json& place = json.at("place");
  protocol.place = {place.at(0), place.at(1), place.at(2), read_text(place.at(3))};
  return work;
} catch (const nlohmann::json::exception& error) {
  throw Error(fmt::format("work description: {}", error.what()));
}

Work case_work(Work work, const ResultRow& row) {
  Cases& cases = work.cases;
  cases.inputs = {from_printable(row.matrix.source)};
  cases.ns = {row.n};
  cases.kernels = {kernel_argument(row.kernel, row.command)};
  cases.exclude.clear();
  cases.precisions = {parse_precision(row.precision)};
  cases.c_type = parse_element_type(row.c_type);
  cases.layout = row.layout == "col" ? Layout::col_major : Layout::row_major;
  cases.reorderings = {Spec::parse(row.reorder)};
  cases.baselines = false;
  cases.resume = Resume::none;
  cases.known.clear();
  work.protocol.isolate = work.protocol.interleave = false;
  work.protocol.plugins_here = true;
  return work;
}

}  // namespace spmmbench
