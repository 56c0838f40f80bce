#pragma once
// A kernel that looks at elements of C, on a stream of its own, while launches write them.
//
// If launches are enqueued together, C shows only what the last one wrote. A launch that knows of a
// successor, which will write the same C, could leave its work out. It can know: a launch of a CUDA
// graph whose successor begins early (programmatic dependent launch) sees it, and any launch can
// ask the host. A kernel that looks at C all the time finds what each of them wrote.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "spmmbench/device.hpp"
#include "spmmbench/precision.hpp"

namespace spmmbench {

// Where an element lies when some launch has written it. Nothing is asked where low > high.
struct ValueRange {
  double low = 1, high = 0;
};

inline constexpr std::size_t kMostWatched = 16;

class Watcher {
 public:
  virtual ~Watcher() = default;
  // Begins to look at elements of that type, kMostWatched at most. False where that does not begin
  // at once, as where kernels run one after the other.
  virtual bool begin(ElementType type, std::span<const void* const> places) = 0;
  // Enqueues the end: until what is on the device's stream is done, but for this many cycles of the
  // device's clock at most.
  virtual void end() = 0;
  // The ranges of all places come one after the other, once for each launch. Says of each whether
  // its element was found in it. Empty where the watcher did not look until the end. Waits for it.
  virtual std::vector<bool> found(std::span<const ValueRange> ranges) = 0;
};

// Null without memory for it.
std::unique_ptr<Watcher> make_cuda_watcher(Device& device);

}  // namespace spmmbench
