#pragma once
// Bitmap queues built on the device: the same bytes as BitmapQueues::build. Their number of levels
// comes to the host, nothing else.

#include <cstdint>
#include <vector>

#include "bitmap_dense/format.hpp"
#include "spmmbench/device.hpp"
#include "spmmbench/device_csr.hpp"

namespace spmmbench::bitmap_dense {

struct DeviceQueues {
  std::int64_t segment_count = 0, block_count = 0, levels = 0;
  Buffer segments, blocks, words;  // as in BitmapQueues
};

// `ranges` as BitmapQueues::build takes them; `a` has values of 16 or 8 bits. Returns when all is
// there. Throws DeviceError.
template <class Queues>
DeviceQueues build_queues(const DeviceCsr& a, const std::vector<BitmapPanels::Range>& ranges,
                          Device& device);

// Segments `first[i]` .. `first[i] + count - 1`, one after the other for each i. Returns when they
// are there.
Buffer copy_segments(const DeviceQueues& queues, const std::vector<std::int32_t>& first, int count,
                     Device& device);

}  // namespace spmmbench::bitmap_dense
