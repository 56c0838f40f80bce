#pragma once
// A window of at most 256 entries, by one warp: its columns are sorted in registers. A CTA for such
// a window would spend its time on barriers and on bits that are zero.

#include <cstdint>
#include <type_traits>

#include "window/device_window.cuh"

namespace spmmbench::wcsr {

constexpr int kLanes = kWarpLanes;

// The exclusive sum over the lanes before.
__device__ inline int sum_before(int mine) { return sum_to(mine) - mine; }

// The lesser of two keys, or the other one. One comparison, where min and max would be two.
template <class Key>
__device__ Key pick(Key one, Key other, bool lesser) {
  return (other < one) == lesser ? other : one;
}

template <class Key>
__device__ void put_in_order(Key& first, Key& second) {
  const Key less = min(first, second);
  second = max(first, second);
  first = less;
}

// The steps of a bitonic merge within each lane: neighbours in a distance of kGap, kGap / 2, ... 1.
template <int kGap, int kItems, class Key>
__device__ void merge_in_lane(Key (&keys)[kItems]) {
#pragma unroll
  for (int i = 0; i < kItems; ++i)
    if ((i & kGap) == 0) put_in_order(keys[i], keys[i | kGap]);
  if constexpr (kGap > 1) merge_in_lane<kGap / 2>(keys);
}

// Sorts runs of 2, 4, ... kItems keys of each lane.
template <int kRun, int kItems, class Key>
__device__ void sort_in_lane(Key (&keys)[kItems]) {
#pragma unroll
  for (int i = 0; i < kItems; ++i)
    if ((i & (kRun / 2)) == 0) put_in_order(keys[i], keys[i ^ (kRun - 1)]);
  if constexpr (kRun > 2) merge_in_lane<kRun / 4>(keys);
  if constexpr (kRun < kItems) sort_in_lane<2 * kRun>(keys);
}

// Ascending from lane to lane, kItems in each. Bitonic: a merge begins with each key and its mirror
// image in the other run, so that all steps ascend. Where a lane has many bytes of keys, the steps
// between lanes are loops: unrolled, they would be most of a kernel's code.
template <int kItems, class Key>
__device__ void sort_in_warp(Key (&keys)[kItems]) {
  constexpr bool kIsLong = kItems * sizeof(Key) >= 32;
  constexpr int kUnrolled = kIsLong ? 1 : kLanes;  // iterations
  const int lane = static_cast<int>(threadIdx.x) % kLanes;
  sort_in_lane<2>(keys);
#pragma unroll kUnrolled
  for (int run = 2; run <= kLanes; run *= 2) {  // lanes of two runs that become one
    const bool in_first = (lane & run / 2) == 0;
#pragma unroll
    for (int i = 0; i < kItems / 2; ++i) {
      Key& one = keys[i];
      Key& mirror = keys[kItems - 1 - i];
      const Key of_one = __shfl_xor_sync(kAllLanes, mirror, run - 1);
      const Key of_mirror = __shfl_xor_sync(kAllLanes, one, run - 1);
      one = pick(one, of_one, in_first);
      mirror = pick(mirror, of_mirror, in_first);
    }
#pragma unroll kUnrolled
    for (int gap = run / 4; gap > 0; gap /= 2) {
      const bool is_first = (lane & gap) == 0;
#pragma unroll
      for (int i = 0; i < kItems; ++i)
        keys[i] = pick(keys[i], __shfl_xor_sync(kAllLanes, keys[i], gap), is_first);
    }
    merge_in_lane<kItems / 2>(keys);
  }
}

// A lane has one row of the window.
class ShortWindow {
 public:
  static constexpr int kMostEntries = 256;

  // By all lanes; a window past the last has no rows.
  __device__ ShortWindow(const Csr& a, std::int64_t window) : a_(a) {
    const int lane = static_cast<int>(threadIdx.x) % kLanes;
    const std::int64_t place = window * a.window_rows + lane;
    if (lane < a.window_rows && place < a.places) {
      const std::int64_t row = a.row_of == nullptr ? place : a.row_of[place];
      begin_ = a.row_ptr[row];
      length_ = a.row_ptr[row + 1] - begin_;
    }
    // Lengths beyond the limit count as that, so that sums fit an int.
    const int counted = static_cast<int>(min(length_, std::int64_t{kMostEntries + 1}));
    start_ = sum_before(counted);
    count_ = __shfl_sync(kAllLanes, start_ + counted, kLanes - 1);
  }

  // Whether it has an entry of that number.
  __device__ bool has(int number) const { return number < count_; }
  __device__ bool fits() const { return a_.window_rows <= kLanes && count_ <= kMostEntries; }

  // use(items): the window where kItems entries for each lane are enough.
  template <class Use>
  __device__ void with_items(Use use) const {
    if (count_ <= 2 * kLanes) use(std::integral_constant<int, 2>{});
    else if (count_ <= 4 * kLanes) use(std::integral_constant<int, 4>{});
    else use(std::integral_constant<int, kMostEntries / kLanes>{});
  }

  // Entry i of this lane is number i * kLanes + lane of the window.
  struct Entry {
    bool is_there;
    int row;
    std::int64_t index;  // in the matrix
  };
  __device__ Entry entry(int i) const {
    const int number = i * kLanes + static_cast<int>(threadIdx.x) % kLanes;
    int row = 0;  // the last that starts at `number` or before
#pragma unroll
    for (int step = kLanes / 2; step > 0; step /= 2)
      if (__shfl_sync(kAllLanes, start_, row + step) <= number) row += step;
    const std::int64_t index =
        __shfl_sync(kAllLanes, begin_, row) + number - __shfl_sync(kAllLanes, start_, row);
    return {number < count_, row, index};
  }

  // The columns ascending, kItems in each lane, with their entries' numbers in the lowest 8 bits.
  static constexpr int kNumberBits = 8;
  template <class Key, int kItems>
  __device__ void sorted(Key (&keys)[kItems]) const {
#pragma unroll
    for (int i = 0; i < kItems; ++i) {
      const Entry own = entry(i);
      const int number = i * kLanes + static_cast<int>(threadIdx.x) % kLanes;
      keys[i] = own.is_there ? static_cast<Key>(a_.col_idx[own.index]) << kNumberBits | number
                             : static_cast<Key>(-1);
    }
    sort_in_warp(keys);
  }

  // Which of the sorted keys have a column that the key before has not (a bit for each), and how
  // many such keys earlier lanes have, and all lanes.
  struct Firsts {
    unsigned bits;
    int before, all;
  };
  template <class Key, int kItems>
  __device__ Firsts firsts(const Key (&keys)[kItems]) const {
    const int lane = static_cast<int>(threadIdx.x) % kLanes;
    Firsts out{};
    Key last = __shfl_up_sync(kAllLanes, keys[kItems - 1], 1);
#pragma unroll
    for (int i = 0; i < kItems; ++i) {
      const int at = lane * kItems + i;
      const bool differs = at == 0 || keys[i] >> kNumberBits != last >> kNumberBits;
      out.bits |= at < count_ && differs ? 1U << i : 0U;
      last = keys[i];
    }
    const int mine = __popc(out.bits);
    out.before = sum_before(mine);
    out.all = __shfl_sync(kAllLanes, out.before + mine, kLanes - 1);
    return out;
  }

 private:
  const Csr& a_;
  std::int64_t begin_ = 0, length_ = 0;  // of this lane's row
  int start_, count_;                    // entries of the rows before it, and of all
};

}  // namespace spmmbench::wcsr
