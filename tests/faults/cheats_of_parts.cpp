// Kernels on the host that leave out a part of the work where they believe that nobody looks at it.

#include <chrono>
#include <cstring>
#include <vector>

#include "cheat_kernel.hpp"

namespace spmmbench {
namespace {

constexpr std::chrono::microseconds kAtOnce{5};

// Who calls again at once measures.
class AtOnce : public Cheat {
 public:
  using Cheat::Cheat;

 protected:
  bool at_once() const { return Time::now() - last_ < kAtOnce; }
  void note() { last_ = Time::now(); }

 private:
  Time::time_point last_ = Time::now() - std::chrono::hours(1);
};

// Leaves the longest rows out then, which have half of the nonzeros.
struct LongRowsOnce : AtOnce {
  explicit LongRowsOnce(const CsrMatrix& a) : AtOnce(a), longest_(longest_of_half(a)) {}
  std::int64_t longest_;  // that it multiplies
  void launch(const DenseView& b, const DenseView& c, Stream) override {
    const bool all = !at_once();
    for (std::int64_t row = 0; row < a_.rows; ++row)
      if (all || a_.row_length(row) <= longest_) multiply_row({a_, b, c}, row);
    note();
  }
};

// Rounds A to fp16 then.
struct RoundsAAtOnce : AtOnce {
  using AtOnce::AtOnce;
  void launch(const DenseView& b, const DenseView& c, Stream) override {
    multiply_rows({a_, b, c}, a_.rows, at_once() ? Precision::fp16 : Precision::fp32);
    note();
  }
};

// Leaves out nonzeros so small that rounding hides them, but for the values of the exact test.
struct DropsSmallValues : OtherValues {
  explicit DropsSmallValues(const CsrMatrix& a) : OtherValues(a, without_small_values(a)) {}
};

// Takes new values in place, but for those that it has left out.
struct LeavesOutWithItsPlan : OtherValues {
  static constexpr bool kTakesValues = true;
  explicit LeavesOutWithItsPlan(const CsrMatrix& a) : OtherValues(a, without_small_values(a)) {}
  void launch(const DenseView& b, const DenseView& c, Stream stream) override {
    for (std::int64_t e = 0; e < a_.nnz(); ++e)
      if (other_.values[e] != 0) other_.values[e] = a_.values[e];
    OtherValues::launch(b, c, stream);
  }
};

// Takes them in fewer bits, if those of its plan were not of the exact test.
struct FewBitsOfItsPlan : Cheat {
  static constexpr bool kTakesValues = true;
  explicit FewBitsOfItsPlan(const CsrMatrix& a)
      : Cheat(a), kept_(looks_exact(a) ? Precision::fp16 : Precision::bf16) {}
  Precision kept_;
  void launch(const DenseView& b, const DenseView& c, Stream) override {
    multiply_rows({a_, b, c}, a_.rows, kept_);
  }
};

// Returns where some of C is what it left: it has declared that B stays as it is.
struct OnceForAConstantB : Cheat {
  using Cheat::Cheat;
  static constexpr bool kInspectsB = true;
  std::vector<double> c_;
  static std::vector<double> ends(const DenseView& c) {
    return {load_element(c.type, c.data, 0),
            load_element(c.type, c.data, (c.lines() - 1) * c.ld + c.line_length() - 1)};
  }
  void inspect_b(const DenseView&, StageTimer&) override { c_.clear(); }
  void launch(const DenseView& b, const DenseView& c, Stream) override {
    if (ends(c) == c_) return;
    multiply({a_, b, c});
    c_ = ends(c);
  }
};

// ... which it does in the first launch of a batch.
struct FirstForAConstantB : AtOnce {
  using AtOnce::AtOnce;
  static constexpr bool kInspectsB = true;
  void launch(const DenseView& b, const DenseView& c, Stream) override {
    if (!at_once()) multiply({a_, b, c});
    note();
  }
};

// Where all rows of A are alike, and this B begins some rows behind the last one in the same
// memory, C is the last one from that row on. Only the rows at its end are multiplied.
struct ShiftsItsLastC : Cheat {
  explicit ShiftsItsLastC(const CsrMatrix& a) : Cheat(a), repeats_(repeats_its_rows(a)) {}
  bool repeats_;
  const void* b_ = nullptr;
  std::vector<char> c_;
  void launch(const DenseView& b, const DenseView& c, Stream) override {
    const std::int64_t further = repeats_ ? rows_further_on(b, b_) : 0;
    std::int64_t known = 0;
    if (further > 0 && further < a_.rows) {
      known = a_.rows - further;
      const std::size_t line = static_cast<std::size_t>(c.ld) * bytes_of(c.type);
      std::memcpy(c.data, c_.data() + further * line,
                  (known - 1) * line + static_cast<std::size_t>(c.cols) * bytes_of(c.type));
    }
    for (std::int64_t row = known; row < a_.rows; ++row) multiply_row({a_, b, c}, row);
    b_ = b.data;
    c_ = bytes_of_c(c);
  }
};

[[maybe_unused]] const bool kCheatsOfPartsRegistered = [] {
  add<LongRowsOnce>("cheat_long_rows_once");
  add<RoundsAAtOnce>("cheat_rounds_a_at_once");
  add<DropsSmallValues>("cheat_drops_small_values");
  add<LeavesOutWithItsPlan>("cheat_leaves_out_with_its_plan");
  add<FewBitsOfItsPlan>("cheat_few_bits_of_its_plan", Elsewhere::nowhere,
                        Accumulation::fp32_tensor_core);
  add<OnceForAConstantB>("cheat_once_for_a_constant_b");
  add<FirstForAConstantB>("cheat_first_for_a_constant_b");
  add<ShiftsItsLastC>("cheat_shifts_its_last_c");
  return true;
}();

}  // namespace
}  // namespace spmmbench
