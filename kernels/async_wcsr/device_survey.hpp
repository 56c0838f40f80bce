#pragma once
// The survey of windows (window/survey.hpp) of a matrix on the device: a few kilobytes of counts
// come to the host. Samples are those of the host, rows at evenly spaced nonzeros, but all columns
// of a group of rows are counted where the host counts a part of them.

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "format/hub_columns.hpp"
#include "row_order/resident_orders.hpp"
#include "spmmbench/device.hpp"
#include "spmmbench/device_csr.hpp"
#include "window/survey.hpp"

namespace spmmbench {

class DeviceSurvey final : public window::Survey {
 public:
  // `orders` outlives this.
  DeviceSurvey(const DeviceCsr& a, ResidentOrders& orders, Device& device)
      : a_(a), orders_(orders), device_(device) {}

  window::Surveyed order(const std::string& name, StageTimer& stages) override;
  double length_variation() override;
  WcsrEstimate expect_by_length() override;
  bool knows_returns() const override { return false; }
  std::vector<double> returned(const std::vector<const Permutation*>&, std::int64_t) override {
    return {};
  }

 private:
  const std::array<std::int64_t, kSampledRows>& lengths();

  DeviceCsr a_;
  ResidentOrders& orders_;
  Device& device_;
  std::optional<std::array<std::int64_t, kSampledRows>> lengths_;  // of rows_at_nonzeros
};

// find_hub_columns and share_of_empty_rows, on the device.
HubColumns find_hub_columns(const DeviceCsr& a, Device& device);
double share_of_empty_rows(const DeviceCsr& a, Device& device);

}  // namespace spmmbench
