#pragma once
// What the choice of windows asks of a matrix, answered from samples: on the host here, on the
// device in window/device_survey.hpp.

#include <cstdint>
#include <string>
#include <vector>

#include "format/wcsr_estimate.hpp"
#include "select/features.hpp"
#include "spmmbench/problem.hpp"
#include "spmmbench/stage_timer.hpp"
#include "window/column_reuse.hpp"

namespace spmmbench::window {

// A row order, and what windows in it gather.
struct Surveyed {
  bool is_natural = true;
  const Permutation* rows = nullptr;  // on the host; empty: natural. Null: it lies on the device
  WcsrEstimate estimate;
};

class Survey {
 public:
  virtual ~Survey() = default;

  // Computes the order. Stages: those of the order, and "compare".
  virtual Surveyed order(const std::string& name, StageTimer& stages) = 0;
  // Standard deviation of the row lengths over their mean.
  virtual double length_variation() = 0;
  // What windows should gather where rows are sorted by length.
  virtual WcsrEstimate expect_by_length() = 0;
  // Whether orders lie on the host, so that they can be had without a survey.
  virtual bool is_on_host() const = 0;
  // Rows of B per nonzero that return from memory in each order, where a cache keeps `kept` rows.
  // Stages: those of the orders, and "compare".
  virtual std::vector<double> returned(const std::vector<std::string>& orders, std::int64_t kept,
                                       StageTimer& stages) = 0;
};

class HostSurvey final : public Survey {
 public:
  explicit HostSurvey(const SparseOperand& a) : a_(a) {}

  Surveyed order(const std::string& name, StageTimer& stages) override {
    const Permutation& rows = a_.orders->get(name, stages);
    const auto timed = stages.scope("compare");
    const bool known = rows.empty() && a_.features != nullptr;
    return {rows.empty(), &rows, known ? windows_of(*a_.features) : estimate_wcsr(*a_.a, rows)};
  }
  double length_variation() override {
    return a_.features != nullptr ? a_.features->cv_row : row_length_variation(*a_.a);
  }
  WcsrEstimate expect_by_length() override { return spmmbench::expect_by_length(*a_.a); }
  bool is_on_host() const override { return true; }
  std::vector<double> returned(const std::vector<std::string>& orders, std::int64_t kept,
                               StageTimer& stages) override {
    std::vector<const Permutation*> rows;
    rows.reserve(orders.size());
    for (const std::string& order : orders) rows.push_back(&a_.orders->get(order, stages));
    const auto timed = stages.scope("compare");
    return new_column_shares(*a_.a, rows, kept);
  }

 private:
  SparseOperand a_;
};

}  // namespace spmmbench::window
