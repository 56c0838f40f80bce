#include "report/calibration.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>

#include "report/json.hpp"
#include "spmmbench/error.hpp"

namespace spmmbench {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kDeviations = 4;
constexpr double kSmallest = 0.005;

// Squared deviations of the logarithms from their mean, and degrees of freedom.
struct Spread {
  double squares = 0;
  int freedom = 0;

  void add(const std::vector<double>& medians_us) {
    double sum = 0;
    for (const double median : medians_us) sum += std::log(median);
    const double mean = sum / static_cast<double>(medians_us.size());
    for (const double median : medians_us) squares += std::pow(std::log(median) - mean, 2);
    freedom += static_cast<int>(medians_us.size()) - 1;
  }
  double deviation() const { return freedom > 0 ? std::sqrt(squares / freedom) : 0; }
};

}  // namespace

std::string comparison_key(const ResultRow& row) {
  return fmt::format("{}|{}|{}|{}|{}|{}|{}|{}", row.matrix.name, row.matrix.sha256, row.n,
                     row.kernel, row.precision, row.c_type, row.layout, row.reorder);
}

double Calibration::min_effect(const std::string& key, int runs) const {
  Spread all, own;
  for (const auto& [name, medians] : medians_us_) all.add(medians);
  if (const auto it = medians_us_.find(key); it != medians_us_.end()) own.add(it->second);
  const double deviation = std::max(all.deviation(), own.deviation());
  return std::max(kSmallest, std::expm1(kDeviations * std::sqrt(2.0 / runs) * deviation));
}

void Calibration::write(const std::string& path) const {
  Json cases = Json::array();
  for (const auto& [key, medians] : medians_us_)
    cases.push_back({{"case", key}, {"min_effect", min_effect(key, 1)}, {"medians_us", medians}});
  const Json json = {{"calibration_version", 1},
                     {"context", to_json(context_)},
                     {"min_effect", min_effect()},
                     {"cases", cases}};
  std::ofstream file(path);
  file << json.dump(1, ' ', false, Json::error_handler_t::replace) << '\n';
  file.close();
  if (!file) throw Error(fmt::format("{}: cannot be written", path));
}

Calibration Calibration::read(const std::string& path) try {
  std::ifstream file(path);
  if (!file) throw Error(fmt::format("{}: cannot be opened", path));
  const Json json = Json::parse(file);
  if (!json.is_object() || !json.contains("calibration_version"))
    throw Error(fmt::format("{}: expected the output of `spmmbench compare --calibrate`", path));
  Calibration calibration(context_from_json(json.at("context")));
  for (const Json& one : json.at("cases"))
    for (const double median : one.at("medians_us")) calibration.add(one.at("case"), median);
  return calibration;
} catch (const nlohmann::json::exception& error) {
  throw Error(fmt::format("{}: {}", path, error.what()));
}

}  // namespace spmmbench
