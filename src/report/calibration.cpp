#include "report/calibration.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/parse_json.hpp"
#include "io/file.hpp"
#include "io/output.hpp"
#include "report/identity.hpp"
#include "report/json.hpp"
#include "spmmbench/error.hpp"

namespace spmmbench {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kVersion = 2;
constexpr double kDeviations = 4;
constexpr double kCoarsest = 0.5;

// Squared deviations of the logarithms from their mean, and degrees of freedom.
struct RunsSpread {
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

std::string ComparisonKeys::next(const ResultRow& row) {
  const std::string key = case_key(row);
  const int count = ++rows_[key];
  return count == 1 ? key : fmt::format("{}|{}", key, count);
}

std::vector<double> Calibration::medians_us(const std::string& key) const {
  const auto it = medians_us_.find(key);
  return it == medians_us_.end() ? std::vector<double>{} : it->second;
}

bool Calibration::shows_spread() const {
  return std::any_of(medians_us_.begin(), medians_us_.end(),
                     [](const auto& one) { return one.second.size() > 1; });
}

double Calibration::resolution() const {
  RunsSpread all;
  for (const auto& [name, medians] : medians_us_) all.add(medians);
  return std::expm1(kDeviations * std::sqrt(2.0) * all.deviation());
}

void Calibration::require_usable(const std::string& path) const {
  if (resolution() <= kCoarsest) return;
  throw Error(
      fmt::format("{}: one run against another resolves {:.0f} % only, and more than {:.0f} "
                  "% cannot guard anything: stop what else the machine does, fix its "
                  "clocks, or measure larger cases for longer (--max-seconds)",
                  path, resolution() * 100, kCoarsest * 100),
      ExitCode::not_able_to_tell);
}

void Calibration::write(OutputFile& file) const {
  Json cases = Json::array();
  for (const auto& [key, medians] : medians_us_)
    cases.push_back({{"case", key}, {"medians_us", medians}});
  const Json json = {{"calibration_version", kVersion},
                     {"context", to_json(context_)},
                     {"resolution", resolution()},
                     {"cases", cases}};
  file.write(json.dump(1, ' ', false, Json::error_handler_t::replace) + '\n');
  file.commit();
}

Calibration Calibration::read(const std::string& path) { return read(path, *open_text(path)); }

Calibration Calibration::read(const std::string& path, std::istream& file) try {
  const Json json = parse_json(file);
  if (!json.is_object() || !json.contains("calibration_version"))
    throw Error("expected the output of `spmmbench compare --calibrate`");
  if (const Json& version = json.at("calibration_version"); version != kVersion)
    throw Error(
        fmt::format("calibration version {}, expected {}", version.dump().substr(0, 40), kVersion));
  Calibration calibration(context_from_json(json.at("context")));
  const Json& cases = json.at("cases");
  if (!cases.is_array()) throw Error("'cases': expected a list");
  for (const Json& one : cases)
    for (const double median : one.at("medians_us")) {
      if (!(median > 0)) throw Error("medians_us: expected positive times");
      calibration.add(one.at("case"), median);
    }
  if (!calibration.shows_spread())
    throw Error("no case has two times: expected the output of `spmmbench compare --calibrate`");
  return calibration;
} catch (const nlohmann::json::exception& error) {
  throw Error(fmt::format("{}: {}", path, describe_json_error(error)));
} catch (const Error& error) {
  throw Error(fmt::format("{}: {}", path, error.what()), error.code());
}

}  // namespace spmmbench
