// Packs boxes into records: a warp has a box, and lane l looks at bit l of each half bitmap.

#include "rsh/device_build.hpp"

#include <cuda_runtime.h>
#include <fmt/format.h>

#include <cub/device/device_scan.cuh>
#include <limits>

#include "common/memory_layout.hpp"
#include "gpu/cuda_check.hpp"
#include "rsh/image.hpp"
#include "spmmbench/error.hpp"

namespace spmmbench::rsh {
namespace {

constexpr int kRecordThreads = 256, kWarpLanes = 32;
constexpr int kRecordPieceBytes = 16;
constexpr int kHeaderBytes = RsRecord<8>::kValues / RsRecord<8>::kHalves;  // of a half bitmap

template <class Bits>
struct Boxes {
  const Bits* values;
  const std::int32_t* col_idx;
  std::int64_t tiles;
  int window_rows;

  __device__ int halves() const { return window_rows / 8 * RsRecord<8>::kHalves; }
  // This lane's entry of a half bitmap; 0 if the box has none there.
  __device__ Bits entry(std::int64_t tile, int half) const {
    const int lane = static_cast<int>(threadIdx.x) % kWarpLanes, block = half / 2;
    const int row = block / 2 * 8 + half % 2 * 4 + lane / 8, column = block % 2 * 8 + lane % 8;
    return values[(tile * window_rows + row) * RsImage::kTileColumns + column];
  }
};

__device__ std::int64_t tile_of_warp() {
  return (std::int64_t{blockIdx.x} * kRecordThreads + threadIdx.x) / kWarpLanes;
}
__device__ bool is_first_lane() { return threadIdx.x % kWarpLanes == 0; }

// Pieces of each record, and 0 after the last one.
template <class Bits>
__global__ void __launch_bounds__(kRecordThreads)
    count_pieces(Boxes<Bits> boxes, std::uint32_t* pieces, std::uint32_t* groups) {
  __shared__ std::uint32_t groups_of_cta;
  if (threadIdx.x == 0) groups_of_cta = 0;
  __syncthreads();
  const std::int64_t tile = tile_of_warp();
  if (tile == boxes.tiles && is_first_lane()) pieces[tile] = 0;
  if (tile < boxes.tiles) {
    int bytes = boxes.halves() * kHeaderBytes;
    for (int half = 0; half < boxes.halves(); ++half)
      bytes += __popc(__ballot_sync(~0U, boxes.entry(tile, half) != 0)) * sizeof(Bits);
    if (is_first_lane()) {
      pieces[tile] = (bytes + kRecordPieceBytes - 1) / kRecordPieceBytes;
      const std::int32_t* const columns = boxes.col_idx + tile * RsImage::kTileColumns;
      atomicAdd(&groups_of_cta, (columns[0] != RsImage::kPadding) +
                                    (columns[RsTile::kGroupColumns] != RsImage::kPadding));
    }
  }
  __syncthreads();
  if (threadIdx.x == 0) atomicAdd(groups, groups_of_cta);
}

template <class Bits>
__global__ void __launch_bounds__(kRecordThreads)
    write_records(Boxes<Bits> boxes, const std::uint32_t* record_ptr, unsigned char* records) {
  const std::int64_t tile = tile_of_warp();
  if (tile >= boxes.tiles) return;
  unsigned char* const to = records + std::size_t{record_ptr[tile]} * kRecordPieceBytes;
  const std::uint32_t end = (record_ptr[tile + 1] - record_ptr[tile]) * kRecordPieceBytes;
  const std::uint32_t lane = threadIdx.x % kWarpLanes, below = (1U << lane) - 1;
  std::uint32_t offset = boxes.halves() * kHeaderBytes;
  for (int half = 0; half < boxes.halves(); ++half) {
    const Bits value = boxes.entry(tile, half);
    const std::uint32_t bits = __ballot_sync(~0U, value != 0);
    if (lane == 0) reinterpret_cast<uint2*>(to)[half] = make_uint2(bits, offset);
    if (value != 0)
      *reinterpret_cast<Bits*>(to + offset + __popc(bits & below) * sizeof(Bits)) = value;
    offset += __popc(bits) * sizeof(Bits);
  }
  const std::uint32_t at = offset + lane * sizeof(Bits);
  if (at < end) *reinterpret_cast<Bits*>(to + at) = 0;
}

std::int64_t most_bytes(int window_rows, int value_bytes) {
  return window_rows == 8    ? RsRecord<8>::most_bytes(value_bytes)
         : window_rows == 16 ? RsRecord<16>::most_bytes(value_bytes)
                             : RsRecord<32>::most_bytes(value_bytes);
}

template <class Bits>
DeviceRecords build(const DeviceWcsr& in, Device& device) {
  const auto stream = static_cast<cudaStream_t>(device.stream().handle);
  const Boxes<Bits> boxes{static_cast<const Bits*>(in.values), in.col_idx, in.tiles(),
                          in.shape.window_rows};
  const std::int64_t tiles = boxes.tiles, count = tiles + 1;
  if (tiles * (most_bytes(boxes.window_rows, sizeof(Bits)) / kRecordPieceBytes) >
      std::numeric_limits<std::uint32_t>::max())
    throw Error(fmt::format("rsh: {} boxes of {} rows may need 2^32 pieces of 16 bytes", tiles,
                            boxes.window_rows));
  DeviceRecords out;
  out.record_ptr = device.allocate((count + 1) * sizeof(std::uint32_t));
  auto* const record_ptr = out.record_ptr.as<std::uint32_t>();
  auto* const groups = record_ptr + count;  // behind the sum, so that both are read at once
  std::size_t temporary_bytes = 0;
  SPMMBENCH_CUDA(cub::DeviceScan::ExclusiveSum(nullptr, temporary_bytes, record_ptr, record_ptr,
                                               count, stream));
  MemoryLayout layout;
  const std::size_t pieces_at = layout.add(count * sizeof(std::uint32_t)),
                    temporary_at = layout.add(temporary_bytes);
  const Buffer scratch = device.allocate(layout.bytes());
  auto* const pieces = array_at<std::uint32_t>(scratch, pieces_at);
  const auto ctas =
      static_cast<unsigned>((count * kWarpLanes + kRecordThreads - 1) / kRecordThreads);
  device.fill_bytes(groups, 0, sizeof *groups);
  count_pieces<<<ctas, kRecordThreads, 0, stream>>>(boxes, pieces, groups);
  SPMMBENCH_CUDA_LAUNCHED();
  SPMMBENCH_CUDA(cub::DeviceScan::ExclusiveSum(array_at<void>(scratch, temporary_at),
                                               temporary_bytes, pieces, record_ptr, count, stream));
  struct {
    std::uint32_t pieces, groups;
  } found{};
  device.download(&found, record_ptr + tiles, sizeof found);
  out.groups = found.groups;
  out.records = device.allocate(std::size_t{found.pieces} * kRecordPieceBytes);
  if (tiles == 0) return out;
  write_records<<<ctas, kRecordThreads, 0, stream>>>(boxes, record_ptr,
                                                     out.records.as<unsigned char>());
  SPMMBENCH_CUDA_LAUNCHED();
  return out;
}

}  // namespace

DeviceRecords build_records(const DeviceWcsr& boxes, Device& device) {
  switch (bytes_of(boxes.shape.value_type)) {
    case 1: return build<std::uint8_t>(boxes, device);
    case 2: return build<std::uint16_t>(boxes, device);
    default: return build<std::uint32_t>(boxes, device);
  }
}

}  // namespace spmmbench::rsh
