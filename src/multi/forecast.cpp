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

double one_after_another_us(double product_us, const Gathering& gathering) {
  return product_us + gathering.us;
}

double overlapped_us(double product_us, const Gathering& gathering) {
  const double inner_us = product_us * gathering.inner_share;
  return std::max(inner_us + gathering.gpu_share * gathering.us, gathering.us) + product_us -
         inner_us + kForkUs;
}

double pays_from_us(const Gathering& gathering, int gpus) {
  if (gathering.us <= 0) return 0;
  // Each way takes a line over the time of one GPU, or the greater of two; so it pays from where
  // the last of its lines falls below that time.
  const double saved = 1 - 1.0 / gpus, outer = (1 - gathering.inner_share) / gpus;
  const double alternating = gathering.us / saved;
  const double overlapped = std::max((gathering.gpu_share * gathering.us + kForkUs) / saved,
                                     (gathering.us + kForkUs) / (1 - outer));
  return std::min(alternating, overlapped);
}

double pays_from_us_in_place(double meet_us, double read_us, int gpus) {
  return std::max(meet_us / (1 - 1.0 / gpus), meet_us + read_us);
}

}  // namespace spmmbench
