#pragma once
// The runs that selection is fitted to: a folder like results/selection with devices.csv,
// matrices.csv and cases.csv.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/parse_number.hpp"
#include "select/product.hpp"
#include "spmmbench/error.hpp"

namespace spmmbench::recorded {

struct Time {
  double us = 0, prepare_ms = 0;
};

struct Case {
  std::string matrix;
  DeviceModel device;
  MatrixFeatures features;
  Shape shape;
  Precision precision = Precision::fp16;
  std::map<std::string, Time> times;  // by the kernel's Spec

  Product product() const { return {features, shape, precision, device}; }
  // Whether more ran than a vendor's kernels and the one that needs no preparation.
  bool has_choice() const {
    const auto is_plain = [](const auto& one) {
      return one.first.starts_with("cusparse") || one.first.starts_with("cublas") ||
             one.first == "csr_merge";
    };
    return !std::ranges::all_of(times, is_plain);
  }
};

// The cells of a table with a header. No cell has a comma or a quote.
class Table {
 public:
  explicit Table(std::string path) : path_(std::move(path)), file_(path_) {
    if (!file_) throw Error(fmt::format("{}: cannot be read", path_));
    next();
    header_ = cells_;
  }
  bool next() {
    std::string line;
    if (!std::getline(file_, line)) return false;
    ++line_;
    cells_.clear();
    for (std::size_t at = 0; at <= line.size();) {
      const std::size_t end = std::min(line.find(',', at), line.size());
      cells_.push_back(line.substr(at, end - at));
      at = end + 1;
    }
    if (!header_.empty() && cells_.size() != header_.size())
      fail(fmt::format("{} cells, expected {}", cells_.size(), header_.size()));
    return true;
  }
  const std::vector<std::string>& header() const { return header_; }
  const std::string& text(std::size_t column) const { return cells_[column]; }
  const std::string& text(const std::string& name) const {
    for (std::size_t i = 0; i < header_.size(); ++i)
      if (header_[i] == name) return cells_[i];
    fail(fmt::format("no column {}", name));
  }
  double number(std::size_t column) const {
    const auto value = parse_number<double>(cells_[column]);
    if (!value || !std::isfinite(*value))
      fail(fmt::format("{}: expected a number", header_[column]));
    return *value;
  }
  double positive(const std::string& name) const {
    const auto value = parse_number<double>(text(name));
    if (!value || !std::isfinite(*value) || *value <= 0)
      fail(fmt::format("{}: expected a number above 0", name));
    return *value;
  }
  [[noreturn]] void fail(const std::string& what) const {
    throw Error(fmt::format("{}:{}: {}", path_, line_, what));
  }

 private:
  std::string path_;
  std::ifstream file_;
  int line_ = 0;
  std::vector<std::string> header_, cells_;
};

inline std::map<std::string, DeviceModel> devices(const std::string& folder) {
  std::map<std::string, DeviceModel> out;
  for (Table table(folder + "/devices.csv"); table.next();)
    out[table.text("device")] = {
        table.positive("memory_bytes_per_us"), table.positive("gather_bytes_per_us"),
        table.positive("flops_per_us"), table.positive("l2_bytes"), table.positive("sms")};
  return out;
}

// A feature that a run did not record keeps the value that MatrixFeatures gives it.
inline std::map<std::string, MatrixFeatures> matrices(const std::string& folder) {
  std::map<std::string, MatrixFeatures> out;
  for (Table table(folder + "/matrices.csv"); table.next();) {
    MatrixFeatures& features = out[table.text("matrix")];
    for (std::size_t i = 1; i < table.header().size(); ++i)
      if (!table.text(i).empty()) set_feature(features, table.header()[i], table.number(i));
  }
  return out;
}

template <class T>
const T& entry(const std::map<std::string, T>& all, const std::string& name, const Table& table) {
  const auto found = all.find(name);
  if (found == all.end()) table.fail(fmt::format("unknown {}", name));
  return found->second;
}

// Columns "KERNEL us" and "KERNEL ms", side by side, follow the five of the product.
inline std::vector<Case> cases(const std::string& folder) {
  constexpr std::size_t kOfProduct = 5;
  const auto all_devices = devices(folder);
  const auto all_matrices = matrices(folder);
  std::vector<Case> out;
  for (Table table(folder + "/cases.csv"); table.next();) {
    const std::string& layout = table.text("layout");
    if (layout != "row" && layout != "col") table.fail("layout: expected row or col");
    Case one;
    one.matrix = table.text("matrix");
    one.device = entry(all_devices, table.text("device"), table);
    one.features = entry(all_matrices, one.matrix, table);
    one.shape.n = static_cast<std::int64_t>(table.positive("n"));
    one.shape.layout = layout == "row" ? Layout::row_major : Layout::col_major;
    one.precision = parse_precision(table.text("precision"));
    for (std::size_t i = kOfProduct; i + 1 < table.header().size(); i += 2) {
      if (table.text(i).empty()) continue;
      const std::string& name = table.header()[i];
      one.times[name.substr(0, name.find(' '))] = {table.number(i), table.number(i + 1)};
    }
    out.push_back(std::move(one));
  }
  return out;
}

}  // namespace spmmbench::recorded
