#pragma once
// A of rsh: records of bitmaps and values (rsh/image.hpp), copied whole and decoded by every
// lane for itself:
//
//    half bitmap   row 0    row 1    row 2    row 3         lane 4g + t has row g of every block of
//                  c0 .. c7 c0 .. c7 c0 .. c7 c0 .. c7      rows, of columns 4t .. 4t + 3
//                  '- offset + set bits below -'[ ][ ][ ][ ]

#include <type_traits>

#include "ptx/cp_async.cuh"
#include "ptx/cvt.cuh"
#include "ptx/keep.cuh"
#include "ptx/ld_shared_u8.cuh"
#include "rsh/image.hpp"
#include "window/stage.cuh"

namespace spmmbench::rsh {

struct Records {
  const uint4* pieces;
  const std::uint32_t* record_ptr;
};

template <class Input_, int kWindowRows_>
class BitmapTiles {
 public:
  using Input = Input_;
  using Source = Records;
  static constexpr int kWindowRows = kWindowRows_;
  static constexpr int kLead = 1;  // decoded during the products of the tile before
  static constexpr int kStageBytes = RsRecord<kWindowRows>::most_bytes(window::kInputBytes<Input>);

  __device__ BitmapTiles(const Source& source, const TileSpan& span, int tiles, unsigned lane)
      : lane_(lane) {
    const std::uint32_t* const ptr = source.record_ptr + span.first_tile;
    begin_ = ptr[0];
    end_ = ptr[min(static_cast<int>(lane) + 1, tiles)];
    pieces_ = source.pieces + lane;
    ptx::keep_in_register(pieces_);
    bits_at_ = (lane % 4 / 2 * 2 + lane / 16) * 8;
    shift_ = lane / 4 % 4 * 8 + lane % 2 * 4;
    below_ = (1U << shift_) - 1U;
    ptx::keep_in_register(bits_at_);
    ptx::keep_in_register(shift_);
    ptx::keep_in_register(below_);
  }

  __device__ void copy(int i, std::uint32_t to) {
    const std::uint32_t end = __shfl_sync(window::kFullWarp, end_, i);
#pragma unroll
    for (int piece = 0; piece < kStageBytes / 16; piece += 32)
      ptx::cp_async_ca_if<16>(begin_ + lane_ + piece < end, to + (lane_ + piece) * 16,
                              pieces_ + begin_ + piece);
    begin_ = end;
  }

  __device__ window::Fragment<Input, kWindowRows> load(std::uint32_t from) const {
    window::Fragment<Input, kWindowRows> out;
#pragma unroll
    for (int r = 0; r < kWindowRows / 8; ++r) {
      const uint2 half = ptx::ld_shared_v2(from + bits_at_ + r * 32);
      std::uint32_t at = from + half.y + __popc(half.x & below_) * sizeof(Stored);
      const std::uint32_t mine = half.x >> shift_;
      std::uint32_t x[4];
#pragma unroll
      for (int j = 0; j < 4; ++j) x[j] = ptx::ld_shared_next_if<Stored>(mine & 1U << j, at);
      if constexpr (window::kInputBytes<Input> == 4) out.x[r] = make_uint4(x[0], x[1], x[2], x[3]);
      else if constexpr (window::kInputBytes<Input> == 1)
        out.x[r] = ptx::halves_of<Input>(x[0] | x[1] << 8 | x[2] << 16 | x[3] << 24);
      else out.x[r] = make_uint2(x[0] | x[1] << 16, x[2] | x[3] << 16);
    }
    return out;
  }

 private:
  using Stored = std::conditional_t<
      window::kInputBytes<Input> == 4, std::uint32_t,
      std::conditional_t<window::kInputBytes<Input> == 1, std::uint8_t, std::uint16_t>>;

  unsigned lane_;
  const uint4* pieces_;
  std::uint32_t begin_, end_;  // of the next record to copy; lane i: end of the span's tile i
  std::uint32_t bits_at_, shift_, below_;
};

}  // namespace spmmbench::rsh
