// The terms (src/select/predict.hpp) of recorded cases, which scripts/fit_selection.py fits the
// coefficients to. `spmmbench_selection_terms < CASES` reads a document like
// results/selection/cases.json, of which it needs the devices, the features of the matrices, and
// device, matrix, n, precision, layout and the names of the kernels of each case. It writes, as
// JSON, the names of the terms, and for each case their values in the same order, the kernels that
// are worth a prediction, and those that are only worth a trial.

#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <iostream>
#include <nlohmann/json.hpp>

#include "recorded_product.hpp"
#include "report/json.hpp"
#include "select/predict.hpp"

namespace {

using namespace spmmbench;
using nlohmann::json;

template <class T>
json names_of(const T& terms) {
  json names = json::array();
  for (const auto& [name, value] : named_terms(terms)) names.push_back(name);
  return names;
}

template <class T>
json values_of(const T& terms) {
  json values = json::array();
  for (const auto& [name, value] : named_terms(terms)) values.push_back(value);
  return values;
}

json terms_of_case(const json& document, const json& entry) {
  const RecordedProduct one = recorded_product(document, entry);
  json worth = json::array(), trials = json::array();
  for (const json& kernel : entry.at("kernels")) {
    const Standing standing = standing_of(kernel.get<std::string>(), one.features, one.n);
    if (standing == Standing::full) worth.push_back(kernel);
    if (standing == Standing::trial) trials.push_back(kernel);
  }
  return {
      {"considered", std::move(worth)},
      {"trials", std::move(trials)},
      {"terms", values_of(terms_of(one.features, one.n, one.layout, one.precision, one.device))},
      {"prepare_terms", values_of(prepare_terms_of(one.features, one.n, one.precision))}};
}

}  // namespace

int main() try {
  const json document = json::parse(std::cin);
  if (!document.is_object()) throw Error("expected an object with devices, matrices and cases");
  json cases = json::array();
  for (const json& entry : document.at("cases")) {
    try {
      cases.push_back(terms_of_case(document, entry));
    } catch (const std::exception& error) {
      throw Error(fmt::format("cases[{}]: {}", cases.size(), describe_json_error(error)));
    }
  }
  std::cout << json{{"terms", names_of(Terms{})},
                    {"prepare_terms", names_of(PrepareTerms{})},
                    {"cases", std::move(cases)}}
            << '\n';
} catch (const std::exception& error) {
  fmt::print(stderr, "spmmbench_selection_terms: {}\n", describe_json_error(error));
  return 1;
}
