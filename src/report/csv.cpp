#include "report/csv.hpp"

#include <fmt/format.h>

#include <functional>

namespace spmmbench {
namespace {

// RFC 4180: a field with a comma, quote or line break is quoted, quotes doubled.
std::string quoted(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"') out += '"';
    out += c;
  }
  return out + '"';
}

std::string number(double value) { return fmt::format("{}", value); }
template <class T>
std::string number(const std::optional<T>& value) {
  return value ? fmt::format("{}", *value) : std::string();
}

template <class Map>
std::string pairs(const Map& map) {
  std::string text;
  for (const auto& [key, value] : map)
    text += fmt::format("{}{}={}", text.empty() ? "" : ";", key, value);
  return text;
}

struct Column {
  std::string name;
  std::function<std::string(const ResultRow&)> text;
};

Column stage(const std::string& name) {
  return {name + "_ms", [name](const ResultRow& r) {
            const auto it = r.stages_ms.find(name);
            return it == r.stages_ms.end() ? std::string() : number(it->second);
          }};
}

template <class Get>
Column timing(const std::string& name, std::optional<Timing> ResultRow::*which, Get get) {
  return {name, [which, get](const ResultRow& r) {
            return r.*which ? fmt::format("{}", get(*(r.*which))) : std::string();
          }};
}

template <class Get>
Column of_format(const std::string& name, Get get) {
  return {name, [get](const ResultRow& r) {
            return r.format ? fmt::format("{}", get(*r.format)) : std::string();
          }};
}

template <class Get>
Column of_verdict(const std::string& name, Get get) {
  return {name, [get](const ResultRow& r) {
            return r.verify ? fmt::format("{}", get(*r.verify)) : std::string();
          }};
}

const std::vector<Column>& columns() {
  using R = const ResultRow&;
  static const std::vector<Column> all = {
      {"matrix", [](R r) { return r.matrix.name; }},
      {"source", [](R r) { return r.matrix.source; }},
      {"sha256", [](R r) { return r.matrix.sha256; }},
      {"rows", [](R r) { return number(r.matrix.rows); }},
      {"cols", [](R r) { return number(r.matrix.cols); }},
      {"nnz", [](R r) { return number(r.matrix.nnz); }},
      {"mean_row", [](R r) { return number(r.matrix.mean_row); }},
      {"max_row", [](R r) { return number(r.matrix.max_row); }},
      {"cv_row", [](R r) { return number(r.matrix.cv_row); }},
      {"n", [](R r) { return number(r.n); }},
      {"kernel", [](R r) { return r.kernel; }},
      {"baseline", [](R r) { return std::string(r.baseline ? "1" : "0"); }},
      {"binary", [](R r) { return std::string(r.binary ? "1" : "0"); }},
      {"params", [](R r) { return pairs(r.params); }},
      {"precision", [](R r) { return r.precision; }},
      {"c_type", [](R r) { return r.c_type; }},
      {"layout", [](R r) { return r.layout; }},
      {"reorder", [](R r) { return r.reorder; }},
      {"status", [](R r) { return std::string(to_string(r.status)); }},
      {"reason", [](R r) { return r.reason; }},
      stage("load"),
      stage("reorder"),
      stage("build"),
      stage("upload"),
      stage("tune"),
      of_format("format", [](const FormatStats& f) { return f.name; }),
      of_format("format_bytes", [](const FormatStats& f) { return f.bytes; }),
      of_format("format_index_bytes", [](const FormatStats& f) { return f.index_bytes; }),
      of_format("format_stored", [](const FormatStats& f) { return f.stored; }),
      of_format("format_fill", [](const FormatStats& f) { return f.fill; }),
      {"device_bytes", [](R r) { return number(r.device_bytes); }},
      of_verdict("error_over_bound", [](const Verdict& v) { return v.error_over_bound; }),
      of_verdict("worst_row", [](const Verdict& v) { return v.worst_row; }),
      of_verdict("worst_col", [](const Verdict& v) { return v.worst_col; }),
      of_verdict("relative_frobenius", [](const Verdict& v) { return v.relative_frobenius; }),
      timing("hot_median_us", &ResultRow::hot, [](const Timing& t) { return t.median_us; }),
      timing("hot_q1_us", &ResultRow::hot, [](const Timing& t) { return t.q1_us; }),
      timing("hot_q3_us", &ResultRow::hot, [](const Timing& t) { return t.q3_us; }),
      timing("hot_min_us", &ResultRow::hot, [](const Timing& t) { return t.min_us; }),
      timing("hot_n", &ResultRow::hot, [](const Timing& t) { return t.n(); }),
      timing("cold_median_us", &ResultRow::cold, [](const Timing& t) { return t.median_us; }),
      timing("cold_q1_us", &ResultRow::cold, [](const Timing& t) { return t.q1_us; }),
      timing("cold_q3_us", &ResultRow::cold, [](const Timing& t) { return t.q3_us; }),
      timing("cold_min_us", &ResultRow::cold, [](const Timing& t) { return t.min_us; }),
      timing("cold_n", &ResultRow::cold, [](const Timing& t) { return t.n(); }),
      {"gflops", [](R r) { return number(r.gflops); }},
      {"issued_flops", [](R r) { return number(r.issued_flops); }},
      {"compulsory_bytes", [](R r) { return number(r.compulsory_bytes); }},
      {"bound_us", [](R r) { return number(r.bound_us); }},
      {"of_bound", [](R r) { return number(r.of_bound); }},
      {"speedup_cusparse_default_fp32",
       [](R r) { return number(r.speedup.cusparse_default_fp32); }},
      {"speedup_cusparse_best", [](R r) { return number(r.speedup.cusparse_best); }},
      {"speedup_cublas", [](R r) { return number(r.speedup.cublas); }},
      {"break_even_calls", [](R r) { return number(r.break_even_calls); }},
      {"metrics", [](R r) { return pairs(r.metrics); }},
      {"command", [](R r) { return r.command; }},
  };
  return all;
}

}  // namespace

std::string csv_header() {
  std::string line;
  for (const Column& column : columns()) line += (line.empty() ? "" : ",") + column.name;
  return line;
}

std::string csv_line(const ResultRow& row) {
  std::string line;
  bool first = true;
  for (const Column& column : columns()) {
    if (!first) line += ',';
    first = false;
    line += quoted(column.text(row));
  }
  return line;
}

}  // namespace spmmbench
