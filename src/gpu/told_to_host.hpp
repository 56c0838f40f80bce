#pragma once
// What the kernels of a build tell the host: they write it into memory of the host, where it is
// once the stream has been waited for. A copy would be an operation more, of some 4 us.

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "gpu/cuda_check.hpp"
#include "spmmbench/device.hpp"

namespace spmmbench {

// Adds to Device::bytes_to_host of a GPU.
void count_bytes_to_host(Device& device, std::uint64_t bytes);

// Memory for one build at a time. Making it takes longer than most builds, so it is kept until
// the process ends.
class ToldToHost {
 public:
  static constexpr std::size_t kBytes = std::size_t{72} << 10;

  explicit ToldToHost(Device& device) : device_(device), free_(free_of(device)) {
    const std::scoped_lock lock(mutex());
    if (free_ == nullptr) free_ = make(device);
    block_ = std::exchange(free_, free_->next);
  }
  ToldToHost(const ToldToHost&) = delete;
  ToldToHost& operator=(const ToldToHost&) = delete;
  ~ToldToHost() {
    const std::scoped_lock lock(mutex());
    block_->next = std::exchange(free_, block_);
  }

  // For kernels to write.
  template <class T>
  T* as() const {
    static_assert(sizeof(T) <= kBytes);
    return static_cast<T*>(block_->host);
  }
  // What they wrote, after a wait: the first `bytes` of it.
  template <class T>
  const T& read(std::size_t bytes = sizeof(T)) const {
    count_bytes_to_host(device_, bytes);
    return *as<T>();
  }
  // A counter on the device. It is zero whenever no kernel runs: a kernel that counts with it sets
  // it back.
  unsigned* arrivals() const { return block_->arrivals; }

 private:
  struct Block {
    void* host = nullptr;
    unsigned* arrivals = nullptr;
    Block* next = nullptr;
  };

  static std::mutex& mutex() {
    static std::mutex one;
    return one;
  }
  static Block*& free_of(const Device& device) {
    static auto& all = *new std::map<int, Block*>;
    const std::scoped_lock lock(mutex());
    return all[device.info().index];
  }
  static Block* make(Device& device) {
    auto out = std::make_unique<Block>();
    SPMMBENCH_CUDA(cudaMallocHost(&out->host, kBytes));
    SPMMBENCH_CUDA(cudaMalloc(&out->arrivals, sizeof *out->arrivals));
    device.fill_bytes(out->arrivals, 0, sizeof *out->arrivals);  // on the stream of its users
    return out.release();
  }

  Device& device_;
  Block*& free_;  // the first of those that nobody has
  Block* block_;
};

}  // namespace spmmbench
