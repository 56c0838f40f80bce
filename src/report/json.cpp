#include "report/json.hpp"

#include <fmt/format.h>

#include <cmath>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "spmmbench/error.hpp"

namespace spmmbench {
namespace {

using Json = nlohmann::ordered_json;

Json number(double value) {
  if (std::isfinite(value)) return value;
  return std::isnan(value) ? "nan" : "inf";
}

template <class T>
Json optional_number(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}
Json optional_number(const std::optional<double>& value) {
  return value ? number(*value) : Json(nullptr);
}

double read_number(const Json& json) {
  if (!json.is_string()) return json.get<double>();
  return json.get<std::string>() == "nan" ? std::numeric_limits<double>::quiet_NaN()
                                          : std::numeric_limits<double>::infinity();
}

std::optional<double> read_optional(const Json& json) {
  return json.is_null() ? std::nullopt : std::optional(read_number(json));
}

template <class T>
std::optional<T> read_optional_integer(const Json& json) {
  return json.is_null() ? std::nullopt : std::optional(json.get<T>());
}

Json to_json(const std::map<std::string, double>& values) {
  Json json = Json::object();
  for (const auto& [key, value] : values) json[key] = number(value);
  return json;
}

std::map<std::string, double> read_numbers(const Json& json) {
  std::map<std::string, double> values;
  for (const auto& [key, value] : json.items()) values[key] = read_number(value);
  return values;
}

Json to_json(const std::optional<FormatStats>& format) {
  if (!format) return nullptr;
  return {{"name", format->name},
          {"bytes", format->bytes},
          {"index_bytes", format->index_bytes},
          {"stored", format->stored},
          {"tiles", format->tiles},
          {"windows", format->windows},
          {"fill", number(format->fill)},
          {"nnz_per_tile", number(format->nnz_per_tile)},
          {"nnz_per_window", number(format->nnz_per_window)},
          {"window_imbalance", number(format->window_imbalance)},
          {"extra", to_json(format->extra)}};
}

std::optional<FormatStats> read_format(const Json& json) {
  if (json.is_null()) return std::nullopt;
  FormatStats format;
  format.name = json.at("name");
  format.bytes = json.at("bytes");
  format.index_bytes = json.at("index_bytes");
  format.stored = json.at("stored");
  format.tiles = json.at("tiles");
  format.windows = json.at("windows");
  format.fill = read_number(json.at("fill"));
  format.nnz_per_tile = read_number(json.at("nnz_per_tile"));
  format.nnz_per_window = read_number(json.at("nnz_per_window"));
  format.window_imbalance = read_number(json.at("window_imbalance"));
  format.extra = read_numbers(json.at("extra"));
  return format;
}

Json to_json(const std::optional<Verdict>& verdict) {
  if (!verdict) return nullptr;
  return {{"error_over_bound", number(verdict->error_over_bound)},
          {"worst_row", verdict->worst_row},
          {"worst_col", verdict->worst_col},
          {"relative_frobenius", number(verdict->relative_frobenius)}};
}

std::optional<Verdict> read_verdict(const Json& json) {
  if (json.is_null()) return std::nullopt;
  Verdict verdict;
  verdict.error_over_bound = read_number(json.at("error_over_bound"));
  verdict.ok = verdict.error_over_bound <= 1;
  verdict.worst_row = json.at("worst_row");
  verdict.worst_col = json.at("worst_col");
  verdict.relative_frobenius = read_number(json.at("relative_frobenius"));
  return verdict;
}

Json to_json(const std::optional<Timing>& timing) {
  if (!timing) return nullptr;
  return {{"median_us", timing->median_us},
          {"q1_us", timing->q1_us},
          {"q3_us", timing->q3_us},
          {"min_us", timing->min_us},
          {"n", timing->n()},
          {"launches_per_sample", timing->launches_per_sample},
          {"samples_us", timing->samples_us}};
}

std::optional<Timing> read_timing(const Json& json) {
  if (json.is_null()) return std::nullopt;
  Timing timing;
  timing.median_us = json.at("median_us");
  timing.q1_us = json.at("q1_us");
  timing.q3_us = json.at("q3_us");
  timing.min_us = json.at("min_us");
  timing.launches_per_sample = json.at("launches_per_sample");
  timing.samples_us = json.at("samples_us").get<std::vector<double>>();
  return timing;
}

Json to_json(const ClockState& clocks) {
  return {{"sm_mhz", optional_number(clocks.sm_mhz)},
          {"memory_mhz", optional_number(clocks.memory_mhz)},
          {"temperature_c", optional_number(clocks.temperature_c)},
          {"power_w", optional_number(clocks.power_w)},
          {"throttle_reasons", optional_number(clocks.throttle_reasons)}};
}

ClockState read_clocks(const Json& json) {
  ClockState clocks;
  clocks.sm_mhz = read_optional_integer<unsigned>(json.at("sm_mhz"));
  clocks.memory_mhz = read_optional_integer<unsigned>(json.at("memory_mhz"));
  clocks.temperature_c = read_optional_integer<unsigned>(json.at("temperature_c"));
  clocks.power_w = read_optional_integer<unsigned>(json.at("power_w"));
  clocks.throttle_reasons = read_optional_integer<std::uint64_t>(json.at("throttle_reasons"));
  return clocks;
}

Status parse_status(const std::string& text) {
  for (const Status status :
       {Status::ok, Status::wrong, Status::skipped, Status::failed, Status::timeout})
    if (text == to_string(status)) return status;
  throw Error(fmt::format("status '{}': expected ok, wrong, skipped, failed or timeout", text));
}

}  // namespace

Json to_json(const ResultRow& row) {
  const MatrixSummary& m = row.matrix;
  return {{"matrix",
           {{"name", m.name},
            {"source", m.source},
            {"sha256", m.sha256},
            {"rows", m.rows},
            {"cols", m.cols},
            {"nnz", m.nnz},
            {"mean_row", m.mean_row},
            {"max_row", m.max_row},
            {"cv_row", m.cv_row}}},
          {"n", row.n},
          {"kernel", row.kernel},
          {"baseline", row.baseline},
          {"binary", row.binary},
          {"params", row.params.empty() ? Json::object() : Json(row.params)},
          {"precision", row.precision},
          {"c_type", row.c_type},
          {"layout", row.layout},
          {"reorder", row.reorder},
          {"status", to_string(row.status)},
          {"reason", row.reason},
          {"stages_ms", to_json(row.stages_ms)},
          {"format", to_json(row.format)},
          {"device_bytes", optional_number(row.device_bytes)},
          {"verify", to_json(row.verify)},
          {"hot", to_json(row.hot)},
          {"cold", to_json(row.cold)},
          {"gflops", optional_number(row.gflops)},
          {"issued_flops", optional_number(row.issued_flops)},
          {"compulsory_bytes", optional_number(row.compulsory_bytes)},
          {"bound_us", optional_number(row.bound_us)},
          {"of_bound", optional_number(row.of_bound)},
          {"speedup",
           {{"cusparse_default_fp32", optional_number(row.speedup.cusparse_default_fp32)},
            {"cusparse_best", optional_number(row.speedup.cusparse_best)},
            {"cublas", optional_number(row.speedup.cublas)}}},
          {"break_even_calls", row.break_even_calls && std::isinf(*row.break_even_calls)
                                   ? Json("never")
                                   : optional_number(row.break_even_calls)},
          {"metrics", to_json(row.metrics)},
          {"command", row.command}};
}

std::string dump_line(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

ResultRow row_from_json(const Json& json) try {
  ResultRow row;
  const Json& m = json.at("matrix");
  row.matrix = {m.at("name"), m.at("source"),   m.at("sha256"), m.at("rows"),   m.at("cols"),
                m.at("nnz"),  m.at("mean_row"), m.at("cv_row"), m.at("max_row")};
  row.n = json.at("n");
  row.kernel = json.at("kernel");
  row.baseline = json.at("baseline");
  row.binary = json.at("binary");
  row.params = json.at("params").get<std::map<std::string, std::string>>();
  row.precision = json.at("precision");
  row.c_type = json.at("c_type");
  row.layout = json.at("layout");
  row.reorder = json.at("reorder");
  row.status = parse_status(json.at("status"));
  row.reason = json.at("reason");
  row.stages_ms = read_numbers(json.at("stages_ms"));
  row.format = read_format(json.at("format"));
  row.device_bytes = read_optional_integer<std::uint64_t>(json.at("device_bytes"));
  row.verify = read_verdict(json.at("verify"));
  row.hot = read_timing(json.at("hot"));
  row.cold = read_timing(json.at("cold"));
  row.gflops = read_optional(json.at("gflops"));
  row.issued_flops = read_optional(json.at("issued_flops"));
  row.compulsory_bytes = read_optional(json.at("compulsory_bytes"));
  row.bound_us = read_optional(json.at("bound_us"));
  row.of_bound = read_optional(json.at("of_bound"));
  const Json& speedup = json.at("speedup");
  row.speedup = {read_optional(speedup.at("cusparse_default_fp32")),
                 read_optional(speedup.at("cusparse_best")), read_optional(speedup.at("cublas"))};
  row.break_even_calls = read_optional(json.at("break_even_calls"));
  row.metrics = read_numbers(json.at("metrics"));
  row.command = json.at("command");
  return row;
} catch (const nlohmann::json::exception& error) {
  throw Error(fmt::format("result row: {}", error.what()));
}

Json to_json(const RunContext& context) {
  const DeviceInfo& d = context.device;
  Json protocol = Json::object();
  for (const auto& [key, value] : context.protocol) protocol[key] = value;
  return {{"tool_version", context.tool_version},
          {"git_revision", context.git_revision},
          {"build_flags", context.build_flags},
          {"started_utc", context.started_utc},
          {"hostname", context.hostname},
          {"argv", context.argv},
          {"seed", context.seed},
          {"device",
           {{"kind", d.kind == DeviceKind::cuda ? "cuda" : "host"},
            {"index", d.index},
            {"name", d.name},
            {"uuid", d.uuid},
            {"compute_capability", d.compute_capability},
            {"sm_count", d.sm_count},
            {"l2_bytes", d.l2_bytes},
            {"memory_bytes", d.memory_bytes},
            {"driver_version", d.driver_version},
            {"runtime_version", d.runtime_version},
            {"cusparse_version", d.cusparse_version},
            {"cublas_version", d.cublas_version}}},
          {"copy_gb_per_s", context.copy_gb_per_s},
          {"timer_floor_us", context.timer_floor_us},
          {"clocks_before", to_json(context.clocks_before)},
          {"clocks_after", to_json(context.clocks_after)},
          {"protocol", protocol}};
}

RunContext context_from_json(const Json& json) {
  RunContext context;
  context.tool_version = json.at("tool_version");
  context.git_revision = json.at("git_revision");
  context.build_flags = json.at("build_flags");
  context.started_utc = json.at("started_utc");
  context.hostname = json.at("hostname");
  context.argv = json.at("argv").get<std::vector<std::string>>();
  context.seed = json.at("seed");
  const Json& d = json.at("device");
  context.device.kind = d.at("kind") == "cuda" ? DeviceKind::cuda : DeviceKind::host;
  context.device.index = d.at("index");
  context.device.name = d.at("name");
  context.device.uuid = d.at("uuid");
  context.device.compute_capability = d.at("compute_capability");
  context.device.sm_count = d.at("sm_count");
  context.device.l2_bytes = d.at("l2_bytes");
  context.device.memory_bytes = d.at("memory_bytes");
  context.device.driver_version = d.at("driver_version");
  context.device.runtime_version = d.at("runtime_version");
  context.device.cusparse_version = d.at("cusparse_version");
  context.device.cublas_version = d.at("cublas_version");
  context.copy_gb_per_s = json.at("copy_gb_per_s");
  context.timer_floor_us = json.at("timer_floor_us");
  context.clocks_before = read_clocks(json.at("clocks_before"));
  context.clocks_after = read_clocks(json.at("clocks_after"));
  context.protocol = json.at("protocol").get<std::map<std::string, std::string>>();
  return context;
}

std::optional<ResultRow> row_from_line(const std::string& line) {
  const Json json = Json::parse(line, nullptr, false);
  if (!json.is_object() || !json.contains("kernel")) return std::nullopt;
  return row_from_json(json);
}

ResultDocument scan_document(const std::string& path, const std::function<void(ResultRow)>& visit) {
  std::ifstream file(path);
  if (!file) throw Error(fmt::format("{}: cannot be opened", path));
  // The parser's depth is 1 for the document's own keys and 2 for the end of a row in `rows`.
  std::string key;
  const auto take_rows = [&](int depth, Json::parse_event_t event, Json& parsed) {
    if (depth == 1 && event == Json::parse_event_t::key) key = parsed.get<std::string>();
    if (depth == 1 && event == Json::parse_event_t::value && key == "schema_version" &&
        parsed != kSchemaVersion)
      throw Error(
          fmt::format("{}: schema version {}, expected {}", path, parsed.dump(), kSchemaVersion));
    if (depth != 2 || event != Json::parse_event_t::object_end || key != "rows") return true;
    visit(row_from_json(parsed));
    return false;
  };
  try {
    const Json json = Json::parse(file, take_rows);
    if (!json.is_object() || !json.contains("schema_version") || !json.contains("rows"))
      throw Error(fmt::format("{}: expected a result document of `spmmbench run --json`", path));
    ResultDocument document;
    document.context = context_from_json(json.at("context"));
    document.complete = json.at("complete");
    return document;
  } catch (const nlohmann::json::exception& error) {
    throw Error(fmt::format("{}: {}", path, error.what()));
  }
}

ResultDocument read_document(const std::string& path) {
  std::vector<ResultRow> rows;
  ResultDocument document =
      scan_document(path, [&](ResultRow row) { rows.push_back(std::move(row)); });
  document.rows = std::move(rows);
  return document;
}

}  // namespace spmmbench
