#pragma once
// Memory of the devices of several processes of one host as one range of addresses in each of them.

#include <cstddef>
#include <memory>
#include <span>

#include "spmmbench/device.hpp"

namespace spmmbench {

// The part of one process, by a descriptor that stands for it.
struct PeerPart {
  int descriptor = -1;
  std::size_t bytes = 0;
};

class PeerMemory {
 public:
  virtual ~PeerMemory() = default;  // unmaps it

  virtual std::size_t page_bytes() const = 0;
  // Makes this process's part, of whole pages, on its device. The caller owns the descriptor.
  virtual int make(std::size_t bytes) = 0;
  // All parts one behind the other, for loads and stores of this process's device. Throws
  // Unsupported where the devices have no access to each other.
  virtual void* map(std::span<const PeerPart> parts) = 0;
};

std::unique_ptr<PeerMemory> open_cuda_peer_memory(Device& device);

// Enqueues: what comes next on the stream begins when the streams of all ranks have come here, and
// then sees what they have written. `base` has `stride` bytes of memory that rests on the device of
// each rank; it begins with a number for each rank, all of them 0 at first.
void cuda_meet(void* base, std::size_t stride, int rank, int ranks, Stream stream);

}  // namespace spmmbench
