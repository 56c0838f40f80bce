#pragma once
// Row orders that several kernels of one device share.

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "format/wcsr_estimate.hpp"
#include "spmmbench/device.hpp"
#include "spmmbench/reordering.hpp"
#include "spmmbench/shared_parts.hpp"

namespace spmmbench {

// For 32 rows the distinct columns of four windows of 8 rows, two of 16 and one of 32 (0 if a
// window has no rows), and the nonzeros.
using GroupCounts = std::array<std::int32_t, 8>;

// What windows gather in an order.
struct SurveyedWindows {
  WcsrEstimate estimate;
  std::vector<GroupCounts> groups;  // all, or none where only some were counted
};

// Rows of B per nonzero that return from memory: by order, and by the rows of B that a cache keeps.
using ReturnedShares = SharedParts<std::pair<std::string, std::int64_t>, double>;

// Those of the host, and a place for those on the device (resident_orders.hpp), so that each is
// made once for all kernels that are given this.
class SharedOrders final : public RowOrders {
 public:
  // `host` outlives this.
  explicit SharedOrders(RowOrders* host) : host_(host) {}

  const Permutation& get(const std::string& spec, StageTimer& stages) override {
    return host_->get(spec, stages);
  }
  SharedParts<std::string, Buffer>& on_device() { return on_device_; }
  // What windows gather in the orders on the device.
  SharedParts<std::string, SurveyedWindows>& surveyed() { return surveyed_; }
  ReturnedShares& returned() { return returned_; }

 private:
  RowOrders* host_;
  SharedParts<std::string, Buffer> on_device_;  // by spec
  SharedParts<std::string, SurveyedWindows> surveyed_;
  ReturnedShares returned_;
};

}  // namespace spmmbench
