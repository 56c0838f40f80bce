#pragma once
// How the ranks of one product exchange rows of B. All ranks call the same function at once. The
// work is enqueued on the device's stream; on the host it is done when the call returns.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "spmmbench/device.hpp"

namespace spmmbench {

// Device memory that goes to one rank or comes from it. Nothing moves between a rank and itself.
struct Block {
  void* data = nullptr;
  std::size_t bytes = 0;
};

class Transport {
 public:
  virtual ~Transport() = default;

  // `all` has a part of `part_bytes` for each rank, in their order, and holds the rank's own. It
  // then holds all.
  virtual void all_gather(void* all, std::size_t part_bytes) = 0;
  // One block to each rank and one from each. What two ranks say of their blocks agrees.
  virtual void all_to_all(const std::vector<Block>& send, const std::vector<Block>& receive) = 0;
  // Line i of `packed` = line lines[i] of `from`; a line has `line_bytes`. On a GPU all addresses
  // and `line_bytes` are multiples of 16, and `lines` lies there.
  virtual void pack(const void* from, const std::int32_t* lines, std::int64_t count,
                    std::size_t line_bytes, void* packed) = 0;
  // The same, where `from` is the memory of other ranks as well. Between fork() and join() with so
  // few threads that a product can run beside it.
  virtual void pull(const void* from, const std::int32_t* lines, std::int64_t count,
                    std::size_t line_bytes, void* pulled) = 0;
  // Where it is enqueued: the device's stream, or the one beside it.
  virtual Stream stream() const = 0;
  // What is enqueued until join() runs beside the work of the device's stream: it begins when what
  // is there is done, and what comes there after join() waits for it.
  virtual void fork() = 0;
  virtual void join() = 0;
  // What is enqueued next begins on all devices at nearly the same moment.
  virtual void align() = 0;
};

}  // namespace spmmbench
