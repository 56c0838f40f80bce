#pragma once
// Second base classes for a Prepared that takes new values of A (Prepared::take_values).

#include <cstdint>

#include "spmmbench/device.hpp"
#include "spmmbench/precision.hpp"

namespace spmmbench {

// A Prepared that keeps memory between calls of take_values.
class KeepsForNewValues {
 public:
  virtual ~KeepsForNewValues() = default;
  // Frees that memory. The next call of take_values allocates it anew.
  virtual void free_kept_for_new_values() = 0;
};

// A caller's values of A on the device, in the order of the operand's entries.
struct NewValues {
  const void* data = nullptr;
  std::int64_t count = 0;
  ElementType type = ElementType::f32;    // f32, or the storage type of `precision`
  Precision precision = Precision::fp32;  // which they are rounded to
  void* of_operand = nullptr;  // the operand's values; null: they are the new ones already
};

// A Prepared that brings a caller's values into its own form in one pass.
class ReadsNewValues {
 public:
  virtual ~ReadsNewValues() = default;
  // As Prepared::take_values, but reads the new values from `values`. The operand may keep its
  // former values until bring_operand_up_to_date.
  virtual void read_values(const NewValues& values, Stream stream) = 0;
  // Writes the values that read_values took to the operand, unless it has them.
  virtual void bring_operand_up_to_date(Stream) {}
};

}  // namespace spmmbench
