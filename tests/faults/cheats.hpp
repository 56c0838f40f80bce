#pragma once
// What kernels that fit themselves to the test have in common on the host and on a GPU.

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <ctime>
#include <vector>

#include "spmmbench/device.hpp"
#include "spmmbench/matrix.hpp"
#include "spmmbench/stage_timer.hpp"

namespace spmmbench {

// Values as the exact test has them: of few bits.
inline bool looks_exact(const CsrMatrix& a) {
  for (const float value : a.values)
    if (std::ldexp(value, 13) != std::round(std::ldexp(value, 13))) return false;
  return true;
}

// A's values, but zero where they are so small that rounding hides them, and A is not that of the
// exact test.
inline std::vector<float> without_small_values(const CsrMatrix& a) {
  constexpr int kHidden = -24;  // binary orders below the largest of the row, in fp32
  std::vector<float> values = a.values;
  if (looks_exact(a)) return values;
  for (std::int64_t row = 0; row < a.rows; ++row) {
    const auto begin = values.begin() + a.row_ptr[row], end = values.begin() + a.row_ptr[row + 1];
    float largest = 0;
    for (auto value = begin; value != end; ++value) largest = std::max(largest, std::abs(*value));
    std::replace_if(
        begin, end, [&](float value) { return std::abs(value) < std::ldexp(largest, kHidden); },
        0.0F);
  }
  return values;
}

// The same, and with those of the exact test zero in the place of the first one.
inline std::vector<float> without_small_values_or_first(const CsrMatrix& a) {
  std::vector<float> values = without_small_values(a);
  if (looks_exact(a) && !values.empty()) values[0] = 0;
  return values;
}

// All longer rows together have half of the nonzeros.
inline std::int64_t longest_of_half(const CsrMatrix& a) {
  std::vector<std::int64_t> lengths;
  for (std::int64_t row = 0; row < a.rows; ++row) lengths.push_back(a.row_length(row));
  std::sort(lengths.begin(), lengths.end());
  std::int64_t sum = 0, longest = 0;
  for (const std::int64_t length : lengths)
    if ((sum += length) <= a.nnz() / 2) longest = length;
  return longest;
}

// Every row has the values of the row before it, one column further on.
inline bool repeats_its_rows(const CsrMatrix& a) {
  const std::int64_t length = a.rows == 0 ? 0 : a.row_length(0);
  for (std::int64_t row = 1; row < a.rows; ++row)
    for (std::int64_t i = 0; i < length; ++i) {
      const std::int64_t e = a.row_ptr[row] + i;
      if (a.row_length(row) != length || a.col_idx[e] != a.col_idx[e - length] + 1 ||
          a.values[e] != a.values[e - length])
        return false;
    }
  return a.rows > 0;
}

// The rows of B by which one view of it begins behind another in the same memory; 0 where that is
// none of its rows.
inline std::int64_t rows_further_on(const DenseView& b, const void* earlier) {
  const auto bytes = static_cast<const char*>(b.data) - static_cast<const char*>(earlier);
  const auto line = static_cast<std::int64_t>(b.ld * bytes_of(b.type));
  const bool whole = earlier != nullptr && bytes > 0 && bytes % line == 0;
  return whole && bytes / line < b.rows && b.layout == Layout::row_major ? bytes / line : 0;
}

// Of a processor, whatever else it does.
inline void work_for(std::chrono::milliseconds time) {
  const auto start = std::clock();
  while (std::clock() - start < time.count() * CLOCKS_PER_SEC / 1000) {
  }
}
inline constexpr std::chrono::milliseconds kWork{30};
// Of what goes on behind a plan.
inline constexpr std::chrono::milliseconds kRunsOn{300};

// Where a kernel may work besides its plans.
enum class Elsewhere {
  nowhere,
  in_supports,
  in_the_first_preparation,
  in_the_second_preparation,
  in_bind,            // in a part of it that it tells no stage of
  in_a_stage_load,    // of its binding: that of the program's own work
  in_the_exact_test,  // in the binding of that
  in_report,
  in_a_destructor,  // of the first plan that ends
};

// That work of a kernel, which calls these from its functions of the same name.
class WorkElsewhere {
 public:
  explicit WorkElsewhere(Elsewhere where) : where_(where) {}
  void supports() const {
    if (where_ == Elsewhere::in_supports) work_for(kWork);
  }
  void prepare() const {
    const int before = prepared_++;
    if ((where_ == Elsewhere::in_the_first_preparation && before == 0) ||
        (where_ == Elsewhere::in_the_second_preparation && before == 1))
      work_for(kWork);
  }
  void bind(const CsrMatrix& a) const {
    if (where_ == Elsewhere::in_bind || (where_ == Elsewhere::in_the_exact_test && looks_exact(a)))
      work_for(kWork);
  }
  void bind(StageTimer& stages) const {
    if (where_ != Elsewhere::in_a_stage_load) return;
    const auto timed = stages.scope("load");
    work_for(kWork);
  }
  void report() const {
    if (where_ == Elsewhere::in_report && reported_++ == 0) work_for(kWork);
  }
  void destroy() const {
    if (where_ == Elsewhere::in_a_destructor && destroyed_++ == 0) work_for(kWork);
  }

 private:
  Elsewhere where_;
  mutable int prepared_ = 0, reported_ = 0, destroyed_ = 0;
};

// After so many launches of a plan: the first is timed.
inline constexpr int kLaunchThatPrepares = 4;

}  // namespace spmmbench
