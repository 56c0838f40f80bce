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

// Bitonic: ascending from lane to lane, kItems in each.
template <int kItems, class Key>
__device__ void sort_in_warp(Key (&keys)[kItems]) {
  const int lane = static_cast<int>(threadIdx.x) % kLanes;
#pragma unroll
  for (int run = 2; run <= kLanes * kItems; run *= 2) {
#pragma unroll
    for (int gap = run / 2; gap > 0; gap /= 2) {
#pragma unroll
      for (int i = 0; i < kItems; ++i) {
        const bool ascends = ((lane * kItems + i) & run) == 0;
        if (gap >= kItems) {
          const Key other = __shfl_xor_sync(kAllLanes, keys[i], gap / kItems);
          const bool is_lower = (lane & (gap / kItems)) == 0;
          keys[i] = is_lower == ascends ? min(keys[i], other) : max(keys[i], other);
        } else if ((i & gap) == 0) {
          const Key less = min(keys[i], keys[i | gap]), more = max(keys[i], keys[i | gap]);
          keys[i] = ascends ? less : more;
          keys[i | gap] = ascends ? more : less;
        }
      }
    }
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

  // Of sorted keys: which have a column that the one before has not, a bit for each; and how many
  // of earlier lanes, and of all.
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
