#pragma once
// Scales of the blocks of A on the device (spmmbench/block_scales.hpp): the caller's where A lies
// there already, else a copy.

#include <cstddef>

#include "spmmbench/device.hpp"
#include "spmmbench/problem.hpp"

namespace spmmbench {

inline bool has_scales_of_blocks(const SparseOperand& a) {
  if (!has_block_scales(a.precision)) return false;
  return a.on_device != nullptr ? a.on_device->block_scales != nullptr : !a.a->block_scales.empty();
}

class ResidentScales {
 public:
  ResidentScales(const SparseOperand& a, Device& device) {
    if (!has_scales_of_blocks(a)) return;
    if (a.on_device != nullptr) {
      scales_ = a.on_device->block_scales;
      return;
    }
    copy_ = device.upload(a.a->block_scales);
    scales_ = copy_.as<float>();
  }

  const float* data() const { return scales_; }  // null: A has none
  std::size_t bytes() const { return copy_.bytes(); }
  // What the copy takes, where one is made.
  static std::size_t copied_bytes(const SparseOperand& a) {
    return a.on_device == nullptr && has_scales_of_blocks(a)
               ? a.a->block_scales.size() * sizeof(float)
               : 0;
  }

 private:
  Buffer copy_;
  const float* scales_ = nullptr;
};

}  // namespace spmmbench
