#pragma once
// The survey of windows (window/survey.hpp) of a matrix on the device: a few kilobytes of counts
// come to the host. Samples are those of the host, rows at evenly spaced nonzeros, but all columns
// of a group of rows are counted where the host counts a part of them.

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "row_order/resident_orders.hpp"
#include "spmmbench/device.hpp"
#include "spmmbench/device_csr.hpp"
#include "window/hub_columns.hpp"
#include "window/survey.hpp"
#include "window/survey_counts.hpp"

namespace spmmbench {

class DeviceSurvey final : public window::Survey {
 public:
  // Of a.on_device. `orders` outlives this.
  DeviceSurvey(const SparseOperand& a, ResidentOrders& orders, Device& device)
      : a_(*a.on_device), orders_(orders), device_(device) {}

  // `follower` goes on from the counts in natural order; it outlives this, or is set back to null.
  void set_follower(window::SurveyFollower* follower) { follower_ = follower; }
  window::Surveyed order(const std::string& name, StageTimer& stages) override;
  double length_variation() override;
  WcsrEstimate expect_by_length() override;
  // The share of empty rows among a sample, that of share_of_empty_rows.
  double empty_share();
  // Of every window, where `order` has been asked for this order and all were counted; else empty.
  std::vector<std::int32_t> distinct_columns(const std::string& order, int height_index);
  bool is_on_host() const override { return false; }
  std::vector<double> returned(const std::vector<std::string>& orders, std::int64_t kept,
                               StageTimer& stages) override;

 private:
  // Of rows that a sample has, which is the same in every order.
  struct Samples {
    std::array<std::int64_t, kSampledRows> lengths;  // of rows_at_nonzeros
    double empty_share;
  };

  SurveyedWindows count(const std::string& name, const Buffer& rows);  // null: natural
  const Samples& samples();
  // Keeps the rows of B that return in `orders`, whose rows on the device are `rows`.
  void count_returned(const std::vector<std::string>& orders,
                      const std::vector<const std::int32_t*>& rows, std::int64_t kept);

  DeviceCsr a_;
  ResidentOrders& orders_;
  Device& device_;
  std::optional<Samples> samples_;
  window::SurveyFollower* follower_ = nullptr;
  SharedParts<std::string, SurveyedWindows> own_;                   // in natural order
  std::map<std::string, const std::vector<GroupCounts>*> counted_;  // by order
};

// find_hub_columns and share_of_empty_rows, on the device.
HubColumns find_hub_columns(const DeviceCsr& a, Device& device);
double share_of_empty_rows(const DeviceCsr& a, Device& device);

// Whether kernels that multiply row by row leave empty rows out: if A, which is `there` on the
// device, has many rows, and at least this share of them is empty, as a sample shows it.
bool leaves_out_empty_rows(const SparseOperand& a, const DeviceCsr& there, double least_share,
                           Device& device);

}  // namespace spmmbench
