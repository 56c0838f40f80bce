#include "measure/watched_batches.hpp"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <vector>

#include "core/steady_seconds.hpp"

namespace spmmbench {
namespace {

std::size_t first_missing(const std::vector<bool>& found) {
  return static_cast<std::size_t>(std::ranges::find(found, false) - found.begin());
}

// Launches of which no element was found.
std::size_t missing_launches(const std::vector<bool>& found, std::size_t places) {
  std::size_t missing = 0;
  for (auto from = found.begin(); from != found.end();) {
    const auto to = from + static_cast<std::ptrdiff_t>(places);
    if (std::find(from, to, true) == to) ++missing;
    from = to;
  }
  return missing;
}

}  // namespace

bool WatchedBatches::launch(const Batch& batch, const Batch::Meanwhile& meanwhile) {
  // An element can change between two looks. A launch that writes it is missed rarely, and another
  // time seen: at one look in ten, 2,000 elements would all be seen but for a probability of 2e-13.
  constexpr int kMostTries = 16;
  // There are none, or few, launches of which no element at all is found. A kernel that works in
  // only some of its launches, by chance, has more of them in several tries.
  constexpr std::size_t kOneOf = 8;
  constexpr int kMostSparse = 3;
  // Tries in a row in which the watcher gave up before the launches were over, some 20 ms after it
  // began. Where the host took as long to enqueue them, either each launch waits for the watcher,
  // or other work had the processors: that may be in one try of three, and in all of these with
  // 2e-8.
  constexpr int kMostUnfinished = 3, kMostHeldUp = 16;
  constexpr double kHeldUpSeconds = 10e-3;
  if (!watcher_) watcher_ = make_watcher_();
  if (!watcher_) return false;
  checks_.before_watched(batch.launches);
  const std::vector<const void*> places = checks_.watched_places();
  if (places.empty()) return true;  // A has no nonzeros
  std::vector<ValueRange> ranges;
  std::vector<bool> all;  // found in some try
  int sparse = 0, unfinished = 0, held_up = 0;
  for (int finished = 0; finished < kMostTries;) {
    const double start = steady_seconds();
    double seconds = 0;  // until all is enqueued
    if (!watcher_->begin(c_type_, places)) return false;
    batch.first(batch.launches, [&] {
      watcher_->end();
      seconds = steady_seconds() - start;
      if (!ranges.empty()) return;
      ranges = checks_.watched_ranges(batch.launches);
      meanwhile();
    });
    const std::vector<bool> found = watcher_->found(ranges);
    if (found.empty()) {
      ++(seconds > kHeldUpSeconds ? held_up : unfinished);
      if (unfinished == kMostUnfinished || held_up == kMostHeldUp) return false;
      continue;
    }
    unfinished = held_up = 0;
    all.resize(found.size());
    std::transform(all.begin(), all.end(), found.begin(), all.begin(), std::logical_or<>());
    if (missing_launches(found, places.size()) * places.size() * kOneOf > found.size()) ++sparse;
    if (sparse == kMostSparse) throw checks_.not_found(first_missing(found));
    if (finished++ >= sparse * kMostSparse && first_missing(all) == all.size()) return true;
  }
  throw checks_.not_found(first_missing(all));
}

}  // namespace spmmbench
