#pragma once
// Rows in the order of the columns that they begin with, for the host and for the device.

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

#include "spmmbench/host_device.hpp"
#include "spmmbench/matrix.hpp"

namespace spmmbench {

// A row's key has this many bits: its first column, then the upper bits of the next ones. With 16
// the row order `match` gathers 1.01 of what it does with 24, and with 64 no less
// (docs/decisions/row-orders.md).
constexpr int kRowKeyBits = 24;

class RowKeys {
 public:
  explicit constexpr RowKeys(std::int64_t cols) {
    while (bits_of(none(cols)) > kRowKeyBits) ++shift_;
    none_ = static_cast<std::uint32_t>(none(cols));
    bits_ = std::max(1, bits_of(none_));
  }

  // The key of a row with these ascending columns. Empty rows have the largest key.
  SPMMBENCH_HOST_DEVICE constexpr std::uint32_t of_row(const std::int32_t* columns,
                                                       std::int64_t length) const {
    std::uint32_t key = 0;
    int left = kRowKeyBits;
    for (std::int64_t i = 0; left > 0; ++i) {
      const std::uint32_t column =
          i < length ? static_cast<std::uint32_t>(columns[i]) >> shift_ : none_;
      const int taken = bits_ < left ? bits_ : left;
      key = key << taken | column >> (bits_ - taken);
      left -= taken;
    }
    return key;
  }

 private:
  static constexpr int bits_of(std::int64_t value) {
    return std::bit_width(static_cast<std::uint64_t>(value));
  }
  // Behind the last column.
  constexpr std::int64_t none(std::int64_t cols) const { return ((cols - 1) >> shift_) + 1; }

  int shift_ = 0;  // columns of one number, as a power of two: 0 but for more than 2^24
  std::uint32_t none_ = 0;
  int bits_ = 0;  // of a column
};

// The rows that are not empty, in natural order.
std::vector<std::int32_t> rows_with_columns(const CsrMatrix& matrix);

// The same by their keys, in natural order where these are equal.
std::vector<std::int32_t> rows_by_first_columns(const CsrMatrix& matrix);

}  // namespace spmmbench
