#pragma once
// How a plan adds up an element of C, where its kernel fixes the order: it can then be predicted to
// the bit, on tensor cores too (src/verify/tensor_core.hpp). A plan that knows this has OrderedSums
// as a second base class.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace spmmbench {

// The nonzeros of a row of A by the instructions that multiply them, one after the other. Zeros
// that pad a tile change no sum and are left out, and so may be an instruction without a nonzero.
// Each part is summed by tensor cores, from zero. All sums of parts are in fp32.
struct SumOrder {
  // Every `terms` neighbouring sums become one, each added to the sum of those before it.
  struct Level {
    std::size_t terms;
    bool as_they_come = false;  // else in their order
    bool operator==(const Level&) const = default;
  };

  std::vector<std::int64_t> entries;      // indices into CsrMatrix::values
  std::vector<std::size_t> instructions;  // where each ends in `entries`
  std::vector<std::size_t> parts;         // where each ends in `instructions`
  std::vector<Level> levels = {};  // one after the other; what is left then is added in order
  bool on_cuda_cores = false;  // each entry is added by a fused multiplication and addition in fp32
};

class OrderedSums {
 public:
  virtual ~OrderedSums() = default;
  // Called before sum_order, with the rows (at least one) that it will be asked about, so that what
  // it needs of them can be copied in one piece. Several threads may then call sum_order.
  virtual void will_ask(std::span<const std::int64_t> /*rows*/) {}
  // The order for this row of the operand and this column of C. Empty if the plan cannot tell.
  // Called between launches.
  virtual std::optional<SumOrder> sum_order(std::int64_t row, std::int64_t column) = 0;
};

}  // namespace spmmbench
