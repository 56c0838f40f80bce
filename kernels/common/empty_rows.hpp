#pragma once
// Rows of C that are zero because A has no nonzeros in them. Formats leave them out, and further
// warps of the same launch clear them (common/empty_rows.cuh).

#include <algorithm>
#include <bit>
#include <cstdint>

#include "spmmbench/device.hpp"

namespace spmmbench {

// Formats leave empty rows out from this share of them on. Where fewer are empty, more rows lose a
// neighbour in C than slices end, and preparation takes longer than a few products gain. Measured
// (docs/decisions/jagged-slices.md).
inline constexpr double kLeastEmpty = 0.75;

// A set of rows of C, a bit for each, in memory of the device: a list would have as many bytes as a
// vector C.
class EmptyRows {
 public:
  static constexpr int kRowsOfWord = 32;

  EmptyRows() = default;
  // `list`: int32 on the device, `count` rows of A, each of which is row row_ids[i] of C, or row i
  // where `row_ids` is null. C has `rows` rows. Enqueues on the stream of the device.
  EmptyRows(const Buffer& list, std::int64_t count, const std::int32_t* row_ids, std::int64_t rows,
            Device& device);

  bool any() const { return count_ > 0; }
  std::size_t bytes() const { return bits_.bytes(); }
  std::int64_t rows() const { return rows_; }    // of C
  std::int64_t count() const { return count_; }  // of empty ones
  const std::uint32_t* bits() const { return bits_.as<std::uint32_t>(); }

 private:
  std::int64_t rows_ = 0, count_ = 0;
  Buffer bits_;
};

// How warps clear them, as a kernel gets it.
struct Clearing {
  const std::uint32_t* bits = nullptr;
  std::int64_t rows = 0;  // of C
  int rows_of_warp = 1;   // empty or not; a power of two, at most a word for each lane

  Clearing() = default;
  Clearing(const EmptyRows& empty, std::int64_t c_row_bytes)
      : bits(empty.bits()),
        rows(empty.rows()),
        rows_of_warp(share_of_warp(empty.rows(), empty.count(), c_row_bytes)) {}

  std::int64_t warps() const { return (rows + rows_of_warp - 1) / rows_of_warp; }

  // A warp has several stores, where there are rows enough for all multiprocessors.
  static constexpr int share_of_warp(std::int64_t rows, std::int64_t empty,
                                     std::int64_t c_row_bytes) {
    constexpr std::int64_t kBytes = 4096, kLeastBytes = 128, kLeastWarps = 1024;
    constexpr std::int64_t kMostRows = 32 * EmptyRows::kRowsOfWord;
    const std::int64_t warps = std::max(empty * c_row_bytes / kBytes, kLeastWarps);
    const std::int64_t least = std::max<std::int64_t>(1, kLeastBytes / c_row_bytes);
    const std::int64_t share = std::clamp(rows / warps, least, kMostRows);
    return static_cast<int>(std::bit_floor(static_cast<std::uint64_t>(share)));
  }
};

}  // namespace spmmbench
