#pragma once
// Entries moved between A and its slices, by a warp for each slice.

#include <cuda_runtime.h>

#include <bit>
#include <cstdint>

#include "gpu/new_values.cuh"
#include "jagged_slices/format.hpp"
#include "ptx/griddepcontrol.cuh"

namespace spmmbench::jagged {

using Slice = JaggedSlices::Slice;

constexpr int kSliceThreads = 128;  // of kernels with a warp for each slice

// Where in A the row of a place lies. One word, so that a lane reads it at once.
class RowOfPlace {
 public:
  RowOfPlace() = default;
  __device__ RowOfPlace(std::int64_t begin, int length)
      : word_(static_cast<std::uint64_t>(begin) << kLengthBits | static_cast<unsigned>(length)) {}

  __device__ std::int64_t begin() const { return static_cast<std::int64_t>(word_ >> kLengthBits); }
  __device__ int length() const { return static_cast<int>(word_ & ((1U << kLengthBits) - 1U)); }

 private:
  static constexpr int kLengthBits = 16;
  static_assert(JaggedShape::kMostLength < 1 << kLengthBits);

  std::uint64_t word_ = 0;
};

// What a lane moves of a slice: in round r, entry first + r * stride of its row.
struct LaneOfSlice {
  std::int64_t slice;
  std::int64_t first_entry;   // of the slice
  RowOfPlace row;             // of the lane's place
  int first, stride, rounds;  // a warp takes so many steps in a round as its places leave lanes for
  bool packed;

  __device__ std::int64_t first_in_a() const { return row.begin() + first; }
};

template <class Bits>
struct Stored {
  std::uint32_t* packed;
  std::int32_t* col_idx;
  Bits* values;
};

// The values of a slice: side by side, or the lower bits of its packed entries.
template <class Bits>
class ValuesOfSlice {
 public:
  __device__ ValuesOfSlice(const LaneOfSlice& at, const Stored<Bits>& stored)
      : log2_apart_(at.packed ? kLog2Apart : 0),
        values_(at.packed ? reinterpret_cast<Bits*>(stored.packed + at.first_entry)
                          : stored.values + at.first_entry) {}

  __device__ Bits& operator[](int place) const { return values_[place << log2_apart_]; }

 private:
  static constexpr int kLog2Apart = sizeof(Bits) == 1 ? 2 : 1;  // of packed ones

  int log2_apart_;
  Bits* values_;
};

// Each class below moves an entry in two parts, so that many loads are in flight together. `next`
// goes on to the lane's next entry in A.

// From A into slices.
template <class Bits>
class Build {
 public:
  static constexpr bool kWaits = false;
  struct Arguments {
    const std::int32_t* a_columns;
    const Bits* a_values;
    const std::int32_t* first_columns;  // of packed slices, in 16 bits
    Stored<Bits> to;
  };
  struct Entry {
    Bits value;
    std::int32_t column;
  };

  __device__ Build(const LaneOfSlice& at, const Arguments& in)
      : columns_(in.a_columns + at.first_in_a()),
        values_(in.a_values + at.first_in_a()),
        to_(in.to),
        first_entry_(at.first_entry),
        first_column_(at.packed && sizeof(Bits) == 2 ? in.first_columns[at.slice] : 0),
        packed_(at.packed) {}

  __device__ Entry load(int) const { return {__ldca(values_), __ldg(columns_)}; }
  __device__ void next(int stride) {
    columns_ += stride;
    values_ += stride;
  }
  __device__ void store(int place, int, const Entry& entry) const {
    const std::int64_t to = first_entry_ + place;
    if constexpr (sizeof(Bits) <= 2)
      if (packed_)
        to_.packed[to] = static_cast<std::uint32_t>(entry.column - first_column_)
                             << kPackedValueBits<Bits> |
                         entry.value;
    if (to_.values == nullptr) return;
    to_.col_idx[to] = entry.column;
    to_.values[to] = entry.value;
  }

 private:
  const std::int32_t* columns_;
  const Bits* values_;
  Stored<Bits> to_;
  std::int64_t first_entry_;
  std::int32_t first_column_;
  bool packed_;
};

// Given values, in the order of A, into slices.
template <class From, class To>
class Replace {
  using Bits = typename To::Bits;

 public:
  static constexpr bool kWaits = true;
  struct Arguments {
    const typename From::Bits* given;
    Precision precision;  // which they are rounded to
    Stored<Bits> to;
  };
  using Entry = typename From::Bits;

  __device__ Replace(const LaneOfSlice& at, const Arguments& in)
      : given_(in.given + at.first_in_a()), precision_(in.precision), to_(at, in.to) {}

  __device__ Entry load(int) const { return __ldca(given_); }
  __device__ void next(int stride) { given_ += stride; }
  __device__ void store(int place, int, Entry value) const {
    to_[place] = converted<From, To>(value, precision_);
  }

 private:
  const typename From::Bits* given_;
  Precision precision_;
  ValuesOfSlice<Bits> to_;
};

// Values of slices into A.
template <class Bits>
class WriteBack {
 public:
  static constexpr bool kWaits = true;
  struct Arguments {
    Stored<Bits> from;
    Bits* a_values;
  };
  using Entry = Bits;

  __device__ WriteBack(const LaneOfSlice& at, const Arguments& in)
      : from_(at, in.from), a_values_(in.a_values + at.row.begin()) {}

  __device__ Entry load(int place) const { return __ldca(&from_[place]); }
  __device__ void next(int) {}
  __device__ void store(int, int entry_of_row, Entry value) const {
    a_values_[entry_of_row] = value;
  }

 private:
  ValuesOfSlice<Bits> from_;
  Bits* a_values_;
};

template <class Move>
__device__ void move_lane(const LaneOfSlice& at, Move move) {
  constexpr int kLoads = 8;  // in flight together
  const unsigned lanes_below = (1U << (threadIdx.x % 32)) - 1U;
  const int length = at.row.length(), stride = at.stride;
  int of_row = at.first, taken = 0;  // taken: entries of the slice before the next round
  for (int round = 0; round < at.rounds; round += kLoads) {
    const int left = at.rounds - round, first = of_row;
    int place[kLoads];  // -1: none
    typename Move::Entry entry[kLoads];
#pragma unroll
    for (int k = 0; k < kLoads; ++k) {
      if (k >= left) break;
      const bool is_there = of_row < length;
      const unsigned lanes = __ballot_sync(0xFFFFFFFFU, is_there);
      place[k] = is_there ? taken + __popc(lanes & lanes_below) : -1;
      taken += __popc(lanes);
      if (is_there) entry[k] = move.load(place[k]);
      of_row += stride;
      move.next(stride);
    }
#pragma unroll
    for (int k = 0; k < kLoads; ++k) {
      if (k >= left) break;
      if (place[k] >= 0) move.store(place[k], first + k * stride, entry[k]);
    }
  }
}

// One that waits does so before it touches values.
template <class Move>
__global__ void __launch_bounds__(kSliceThreads)
    move_entries(const Slice* slices, std::int64_t count, const RowOfPlace* rows, int log2_of_slice,
                 const __grid_constant__ typename Move::Arguments arguments) {
  const std::int64_t index = std::int64_t{blockIdx.x} * (kSliceThreads / 32) + threadIdx.x / 32;
  if (index >= count) return;
  // As words: the compiler puts bit fields that it reads one by one together from bytes.
  const auto slice = std::bit_cast<Slice>(reinterpret_cast<const ulonglong2*>(slices)[index]);
  const int lane = static_cast<int>(threadIdx.x) % 32, place = lane & ((1 << log2_of_slice) - 1);
  const auto log2_places = static_cast<int>(slice.log2_places);
  const int log2_at_once = 5 - log2_of_slice;  // steps of a round
  const LaneOfSlice at{
      .slice = index,
      .first_entry = static_cast<std::int64_t>(slice.first_entry),
      .row = rows[(index << log2_of_slice) + place],
      .first = ((lane >> log2_of_slice) << log2_places) + (place & ((1 << log2_places) - 1)),
      .stride = 1 << (log2_at_once + log2_places),
      .rounds = (static_cast<int>(slice.steps) + (1 << log2_at_once) - 1) >> log2_at_once,
      .packed = slice.packed != 0};
  if constexpr (Move::kWaits) ptx::griddepcontrol_wait();
  move_lane(at, Move(at, arguments));
}

}  // namespace spmmbench::jagged
