#pragma once
// How a plan adds up an element of C, where its kernel fixes the order: tensor cores can then be
// predicted to the bit (src/verify/tensor_core.hpp). A plan that knows this has OrderedSums as a
// second base.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace spmmbench {

// The nonzeros of a row of A by the instructions that multiply them, one after the other. Zeros
// that pad a tile change no sum and are left out, and so may be an instruction without a nonzero.
// Each part is summed by tensor cores, from zero; parts are added in fp32, in order.
struct SumOrder {
  std::vector<std::int64_t> entries;      // indices into CsrMatrix::values
  std::vector<std::size_t> instructions;  // where each ends in `entries`
  std::vector<std::size_t> parts;         // where each ends in `instructions`
};

class OrderedSums {
 public:
  virtual ~OrderedSums() = default;
  // Of the operand's row, and the column of C. None where it varies from launch to launch. Called
  // between launches.
  virtual std::optional<SumOrder> sum_order(std::int64_t row, std::int64_t column) = 0;
};

}  // namespace spmmbench
