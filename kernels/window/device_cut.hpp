#pragma once
// Work on windows, cut on the device: the same spans and splits as cut_windows makes. A few counts
// come to the host.

#include <cstdint>

#include "format/tile_work.hpp"
#include "spmmbench/device.hpp"

namespace spmmbench::window {

struct DeviceWork {
  Buffer spans, splits;
  WorkSize size;
};

// `window_ptr` lies on the device. The size is known when this returns; the last of the work may
// still be enqueued on the stream of the device. Throws DeviceError.
DeviceWork cut_windows(const std::int32_t* window_ptr, std::int64_t windows, const TileCut& cut,
                       Device& device);

}  // namespace spmmbench::window
