#pragma once
// A product on the host as kernels that cheat make it, and by what they tell operands apart.

#include <cstdint>
#include <vector>

#include "spmmbench/device.hpp"
#include "spmmbench/matrix.hpp"
#include "spmmbench/precision.hpp"

namespace spmmbench {

struct Operands {
  const CsrMatrix& a;
  const DenseView& b;
  const DenseView& c;
};

inline double element_of_c(const CsrMatrix& a, const DenseView& b, std::int64_t row, std::int64_t j,
                           Precision round_a = Precision::fp32) {
  float sum = 0;
  for (std::int64_t e = a.row_ptr[row]; e < a.row_ptr[row + 1]; ++e) {
    const std::int64_t k = a.col_idx[e];
    sum +=
        round_to(round_a, a.values[e]) *
        load_element(b.type, b.data, b.layout == Layout::row_major ? k * b.ld + j : j * b.ld + k);
  }
  return sum;
}

inline void multiply_row(const Operands& in, std::int64_t row,
                         Precision round_a = Precision::fp32) {
  const DenseView& c = in.c;
  for (std::int64_t j = 0; j < c.cols; ++j)
    store_element(c.type, c.data, c.layout == Layout::row_major ? row * c.ld + j : j * c.ld + row,
                  static_cast<float>(element_of_c(in.a, in.b, row, j, round_a)));
}

inline void multiply_rows(const Operands& in, std::int64_t end,
                          Precision round_a = Precision::fp32) {
  for (std::int64_t row = 0; row < end; ++row) multiply_row(in, row, round_a);
}

inline void multiply(const Operands& in) { multiply_rows(in, in.a.rows); }

// Some values of B and C, by which a kernel tells whether they are those that it has seen.
inline std::vector<float> probes(const DenseView& view) {
  constexpr std::int64_t kProbes = 64;
  std::vector<float> found;
  for (std::int64_t i = 0; i < kProbes; ++i)
    found.push_back(load_element(view.type, view.data,
                                 i * 37 % view.lines() * view.ld + i * 11 % view.line_length()));
  return found;
}

inline std::vector<char> bytes_of_c(const DenseView& c) {
  const auto* data = static_cast<const char*>(c.data);
  return {data, data + c.bytes()};
}

}  // namespace spmmbench
