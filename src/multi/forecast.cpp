#include "multi/forecast.hpp"

#include <algorithm>
#include <utility>

namespace spmmbench {

Link::Link(std::vector<Point> points) : points_(std::move(points)) {
  for (std::size_t i = 1; i < points_.size(); ++i)
    points_[i].us = std::max(points_[i].us, points_[i - 1].us);
}

double Link::us(double bytes) const {
  if (bytes <= 0) return 0;
  if (bytes <= points_.front().bytes) return latency_us();
  const auto above = std::ranges::lower_bound(points_, bytes, {}, &Point::bytes);
  if (above == points_.end())
    return points_.back().us + (bytes - points_.back().bytes) / bytes_per_us();
  const Point &low = *(above - 1), &high = *above;
  return low.us + (high.us - low.us) * (bytes - low.bytes) / (high.bytes - low.bytes);
}

double Link::bytes_per_us() const {
  const Point &low = points_[points_.size() - 2], &high = points_.back();
  const double more_us = high.us - low.us;
  return more_us > 0 ? (high.bytes - low.bytes) / more_us : high.bytes / high.us;
}

double pays_from_us(double transfer_us, int gpus) { return transfer_us / (1 - 1.0 / gpus); }

double bound_of_part_us(double memory_us, double received_bytes, const Link& link) {
  return std::max(memory_us, received_bytes / link.bytes_per_us());
}

}  // namespace spmmbench
