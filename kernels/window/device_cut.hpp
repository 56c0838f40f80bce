#pragma once
// Work on windows, cut on the device: the same spans and splits as cut_windows makes. A few counts
// come to the host.

#include <cstdint>

#include "format/tile_work.hpp"
#include "spmmbench/device.hpp"

namespace spmmbench::window {

struct DeviceWork {
  Buffer spans, splits;  // for at least as many as `size` says
  WorkSize size;
};

// `window_ptr` lies on the device, and `sizes` are its own. Waits for the work. Throws DeviceError.
// `beside`: the host has waited for the window pointers, so that nothing enqueued before them uses
// memory that has been freed. The work is then cut beside what is enqueued behind them.
DeviceWork cut_windows(const std::int32_t* window_ptr, const WindowSizes& sizes, const TileCut& cut,
                       bool beside, Device& device);

}  // namespace spmmbench::window
