#pragma once
// What a prepared A may have beside Prepared::take_values, as a second base class.

#include <cstdint>

#include "spmmbench/device.hpp"
#include "spmmbench/precision.hpp"

namespace spmmbench {

// Memory that it keeps between calls.
class KeepsForNewValues {
 public:
  virtual ~KeepsForNewValues() = default;
  // Frees it; the next call makes it anew.
  virtual void free_kept_for_new_values() = 0;
};

// A caller's values of A on the device, in the order of the operand's entries.
struct NewValues {
  const void* data = nullptr;
  std::int64_t count = 0;
  ElementType type = ElementType::f32;    // f32, or the storage type of `precision`
  Precision precision = Precision::fp32;  // which they are rounded to
  void* of_operand = nullptr;             // the operand's values, which are old; null: they are new
};

// It brings a caller's values into its own form in one pass.
class ReadsNewValues {
 public:
  virtual ~ReadsNewValues() = default;
  // As Prepared::take_values, where the operand has the old values. It may keep them.
  virtual void read_values(const NewValues& values, Stream stream) = 0;
  // Brings what read_values has taken into the operand where that has not been done.
  virtual void bring_operand_up_to_date(Stream) {}
};

}  // namespace spmmbench
