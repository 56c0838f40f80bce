#pragma once
// The records of rsh (rsh/image.hpp) on the device, from windows of dense boxes, which are
// built there.

#include <cstdint>

#include "spmmbench/device.hpp"
#include "window/device_build.hpp"

namespace spmmbench::rsh {

struct DeviceRecords {
  Buffer records;           // pieces of 16 bytes
  Buffer record_ptr;        // uint32 for each tile, and the end; then the groups
  std::int64_t groups = 0;  // of RsTile::kGroupColumns columns
};

// One record for each box, whose tiles have RsImage::kTileColumns columns. As RsImage::build makes
// them, but a stored zero is -0. Throws Error where they could have 2^32 pieces. Returns when they
// are enqueued: the boxes stay until the stream has come there.
DeviceRecords build_records(const DeviceWcsr& boxes, Device& device);

}  // namespace spmmbench::rsh
