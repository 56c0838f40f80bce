#pragma once
// The choice of windows in natural order on the device, so that kernels can go on from it before
// the host has made the same choice.

#include <cstdint>

#include "spmmbench/device.hpp"
#include "window/cost.hpp"
#include "window/survey_counts.hpp"

namespace spmmbench::wcsr {
struct Chosen;
}

namespace spmmbench::window {

// What the choice depends on beside the counts.
struct ChoiceRule {
  double rows = 0, cols = 0, nnz = 0;
  std::int64_t n = 0;
  int value_bytes = 0;
  double sms = 0;
  FormatCost format;
  double placed_soon = 1e6;  // nonzeros: fewer are placed before a sort of the rows would begin
};

// Enqueues: chooses the height as WindowChooser does, up to rounding. There is no choice where
// empty rows are left out or rows are sorted by length. Copies `found` to `told` and gives its
// signal. Where `grid` has all groups, the counts of the chosen windows are taken as well.
void choose_on_device(SurveyCounts* found, const SurveyGrid& grid, const ChoiceRule& rule,
                      SurveyCounts* told, const wcsr::Chosen& chosen, Device& device);

}  // namespace spmmbench::window
