#pragma once
// The products that the coefficients of selection are fitted to, from a document like
// results/selection/cases.json.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "select/device_model.hpp"
#include "select/features.hpp"
#include "spmmbench/device.hpp"
#include "spmmbench/error.hpp"
#include "spmmbench/precision.hpp"

namespace spmmbench {

struct RecordedProduct {
  DeviceModel device;
  std::string name;  // of the matrix
  std::int64_t n = 0;
  Precision precision = Precision::fp16;
  Layout layout = Layout::row_major;
  MatrixFeatures features;
};

inline double recorded_rate(const nlohmann::json& device, const char* name) {
  const double rate = device.at(name);
  if (!(rate > 0)) throw Error(fmt::format("{} of a device: expected a number above 0", name));
  return rate;
}

inline DeviceModel recorded_device(const nlohmann::json& device) {
  const auto rate = [&](const char* name) { return recorded_rate(device, name); };
  return {rate("memory"), rate("gather"), rate("flops"), rate("l2"), rate("sms")};
}

// Features that not every run records keep the values that MatrixFeatures gives them.
inline MatrixFeatures recorded_features(const nlohmann::json& matrix) {
  constexpr std::array<std::string_view, 3> kNotInEveryRun = {"empty_rows", "most_of_four",
                                                              "row_overlap"};
  MatrixFeatures features;
  for (const auto& [name, value] : named_features(features)) {
    if (matrix.contains(name)) set_feature(features, name, matrix.at(name));
    else if (std::ranges::find(kNotInEveryRun, name) == kNotInEveryRun.end())
      throw Error(fmt::format("its matrix has no feature {}", name));
  }
  return features;
}

inline Layout recorded_layout(const std::string& name) {
  if (name != "row" && name != "col")
    throw Error(fmt::format("layout '{}': expected row or col", name));
  return name == "row" ? Layout::row_major : Layout::col_major;
}

// `entry`: one of the document's cases.
inline RecordedProduct recorded_product(const nlohmann::json& document,
                                        const nlohmann::json& entry) {
  RecordedProduct one;
  one.device = recorded_device(document.at("devices").at(entry.at("device").get<std::string>()));
  one.name = entry.at("matrix");
  one.n = entry.at("n");
  if (one.n < 1) throw Error("n: expected a number of at least 1");
  one.precision = parse_precision(entry.at("precision").get<std::string>());
  one.layout = recorded_layout(entry.at("layout"));
  one.features = recorded_features(document.at("matrices").at(one.name));
  return one;
}

}  // namespace spmmbench
