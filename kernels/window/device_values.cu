// New values in WCSR. Entries of a row that share a tile lie side by side in A, so a line of the
// tile is known by its first entry and a bit for each column. A CTA reads the values of its lines
// side by side and writes whole lines, zeros included: the memory takes as long for a part of 32
// bytes as for all of them, or longer.

#include <cuda_runtime.h>
#include <fmt/format.h>
#include <thrust/iterator/counting_iterator.h>

#include <algorithm>
#include <cub/device/device_select.cuh>
#include <limits>

#include "common/dependent_launch.hpp"
#include "common/memory_layout.hpp"
#include "gpu/cuda_check.hpp"
#include "gpu/new_values.cuh"
#include "ptx/griddepcontrol.cuh"
#include "spmmbench/error.hpp"
#include "window/device_values.hpp"
#include "window/launch_passes.cuh"

namespace spmmbench {
namespace {

constexpr int kLineThreads = 256;
constexpr int kLineColumns = 16;  // of a tile
constexpr int kVectorBytes = sizeof(uint4);

// Lanes that write a line together, a vector each.
template <class Bits>
constexpr int kLanesOfLine = kLineColumns* static_cast<int>(sizeof(Bits)) / kVectorBytes;
template <class Bits>
constexpr int kLinesOfCta = kLineThreads / kLanesOfLine<Bits>;

struct Lines {
  std::int64_t count;
  const std::uint32_t *lines, *entries;
  const std::uint16_t* columns;
};

template <class From, class To>
__global__ void __launch_bounds__(kLineThreads)
    put_lines(const typename From::Bits* given, Precision precision, const Lines in,
              typename To::Bits* values, typename To::Bits* of_operand) {
  using Bits = typename To::Bits;
  constexpr int kLanes = kLanesOfLine<Bits>, kSlots = kLineColumns / kLanes;
  constexpr int kTogether = kLinesOfCta<Bits> * kLineColumns / kLineThreads;  // most of a thread
  __shared__ Bits staged[kTogether * kLineThreads];
  const auto thread = static_cast<int>(threadIdx.x);
  const std::int64_t first_line = std::int64_t{blockIdx.x} * kLinesOfCta<Bits>;
  const std::int64_t index = first_line + thread / kLanes;
  const std::uint32_t first = in.entries[first_line];
  const auto entries =
      static_cast<int>(in.entries[min(first_line + kLinesOfCta<Bits>, in.count)] - first);
  const std::int64_t own = min(index, in.count - 1);
  const std::uint32_t line = in.lines[own], columns = in.columns[own];
  int at = static_cast<int>(in.entries[own] - first);

  ptx::griddepcontrol_wait();
  typename From::Bits bits[kTogether];
#pragma unroll
  for (int k = 0; k < kTogether; ++k)
    if (thread + k * kLineThreads < entries)
      bits[k] = __ldcs(given + first + thread + k * kLineThreads);
#pragma unroll
  for (int k = 0; k < kTogether; ++k) {
    const int i = thread + k * kLineThreads;
    if (i >= entries) continue;
    const Bits value = converted<From, To>(bits[k], precision);
    if (of_operand != nullptr) of_operand[first + i] = value;
    staged[i] = mark_entry(value);
  }
  __syncthreads();

  if (index >= in.count) return;
  const int first_slot = thread % kLanes * kSlots;
  at += __popc(columns & ((1U << first_slot) - 1U));
  struct alignas(kVectorBytes) Vector {
    Bits of[kSlots];
  } vector;
#pragma unroll
  for (int slot = 0; slot < kSlots; ++slot) {
    const bool is_there = (columns >> (first_slot + slot) & 1U) != 0;
    vector.of[slot] = is_there ? staged[at] : Bits{0};
    at += is_there ? 1 : 0;
  }
  reinterpret_cast<Vector*>(values)[std::int64_t{line} * kLanes + thread % kLanes] = vector;
}

struct BeginsLine {
  const std::uint32_t* positions;  // of the entries
  __device__ bool operator()(std::uint32_t entry) const {
    return entry == 0 || positions[entry] / kLineColumns != positions[entry - 1] / kLineColumns;
  }
};

__global__ void __launch_bounds__(kLineThreads)
    describe_lines(const std::uint32_t* positions, std::uint32_t nnz, std::uint32_t* entries,
                   std::int64_t count, std::uint32_t* lines, std::uint16_t* columns) {
  const std::int64_t i = std::int64_t{blockIdx.x} * kLineThreads + threadIdx.x;
  if (i >= count) return;
  if (i == count - 1) entries[count] = nnz;
  const std::uint32_t end = i == count - 1 ? nnz : entries[i + 1];
  unsigned own = 0;
  for (std::uint32_t entry = entries[i]; entry < end; ++entry)
    own |= 1U << positions[entry] % kLineColumns;
  lines[i] = positions[entries[i]] / kLineColumns;
  columns[i] = static_cast<std::uint16_t>(own);
}

// The first entries of all lines, in `to`. Returns how many.
std::int64_t find_first_entries(const std::uint32_t* positions, std::int64_t nnz, std::uint32_t* to,
                                Device& device) {
  const Buffer count = device.allocate(sizeof(std::uint32_t));
  Buffer temporary;
  std::size_t bytes = 0;
  for (int pass = 0; pass < 2; ++pass) {  // the first one tells the bytes
    SPMMBENCH_CUDA(cub::DeviceSelect::If(
        temporary.data(), bytes, thrust::counting_iterator<std::uint32_t>(0), to,
        count.as<std::uint32_t>(), static_cast<int>(nnz), BeginsLine{positions},
        static_cast<cudaStream_t>(device.stream().handle)));
    if (pass == 0) temporary = device.allocate(std::max<std::size_t>(bytes, 1));
  }
  std::uint32_t found = 0;
  device.download(&found, count.data(), sizeof found);
  return found;
}

unsigned ctas_of_lines(std::int64_t lines, int of_cta) {
  return static_cast<unsigned>((lines + of_cta - 1) / of_cta);
}

// Where each entry has its value.
Buffer find_positions(const DeviceCsr& csr, const DeviceWcsr& wcsr, const std::int32_t* row_of,
                      Device& device) {
  const std::int64_t stored = wcsr.tiles() * wcsr.shape.window_rows * wcsr.shape.tile_columns;
  if (stored > std::numeric_limits<std::uint32_t>::max())
    throw Error(fmt::format("{} stored values: at most 2^32 - 1 can be replaced", stored));
  Buffer positions = device.allocate(csr.nnz * sizeof(std::uint32_t));
  const wcsr::Placing<wcsr::Positions> pass{
      {csr.row_ptr, csr.col_idx, row_of, wcsr.places, wcsr.shape.window_rows},
      {wcsr.window_ptr, wcsr.window_ptr, wcsr.col_idx, wcsr.windows(), wcsr.shape.tile_columns},
      {positions.as<std::uint32_t>()},
      wcsr::LongWindows::kNone};
  wcsr::launch_pass(csr, wcsr.windows(), wcsr::divide(csr, wcsr.windows(), device).by, pass,
                    nullptr, device);
  return positions;
}

}  // namespace

WcsrLines find_wcsr_lines(const DeviceCsr& csr, const DeviceWcsr& wcsr, const std::int32_t* row_of,
                          Device& device) {
  if (wcsr.shape.tile_columns != kLineColumns) throw Error("tiles of 16 columns are expected");
  const Buffer positions = find_positions(csr, wcsr, row_of, device);
  const Buffer first = device.allocate(csr.nnz * sizeof(std::uint32_t));
  WcsrLines out;
  out.count =
      find_first_entries(positions.as<std::uint32_t>(), csr.nnz, first.as<std::uint32_t>(), device);
  MemoryLayout layout;
  const std::size_t lines = layout.add(out.count * sizeof(std::uint32_t));
  const std::size_t entries = layout.add((out.count + 1) * sizeof(std::uint32_t));
  const std::size_t columns = layout.add(out.count * sizeof(std::uint16_t));
  out.memory = device.allocate(layout.bytes());
  out.lines = array_at<std::uint32_t>(out.memory, lines);
  out.entries = array_at<std::uint32_t>(out.memory, entries);
  out.columns = array_at<std::uint16_t>(out.memory, columns);
  const auto stream = static_cast<cudaStream_t>(device.stream().handle);
  auto* const to = array_at<std::uint32_t>(out.memory, entries);
  SPMMBENCH_CUDA(
      cudaMemcpyAsync(to, first.data(), out.count * sizeof *to, cudaMemcpyDeviceToDevice, stream));
  describe_lines<<<ctas_of_lines(out.count, kLineThreads), kLineThreads, 0, stream>>>(
      positions.as<std::uint32_t>(), static_cast<std::uint32_t>(csr.nnz), to, out.count,
      array_at<std::uint32_t>(out.memory, lines), array_at<std::uint16_t>(out.memory, columns));
  SPMMBENCH_CUDA_LAUNCHED();
  device.synchronize();
  return out;
}

void replace_wcsr_values(const NewValues& values, const WcsrLines& lines, const DeviceWcsr& wcsr,
                         Stream stream) {
  const Lines in{lines.count, lines.lines, lines.entries, lines.columns};
  visit_new_values(values, [&](auto from, auto to) {
    using From = decltype(from);
    using To = decltype(to);
    using Bits = typename To::Bits;
    if constexpr (sizeof(Bits) <= sizeof(float))  // no tensor core of ours has fp64
      launch_dependent(put_lines<From, To>, dim3(ctas_of_lines(in.count, kLinesOfCta<Bits>)),
                       dim3(kLineThreads), 0, stream, kernels_wait(),
                       static_cast<const typename From::Bits*>(values.data), values.precision, in,
                       static_cast<Bits*>(wcsr.values), static_cast<Bits*>(values.of_operand));
  });
}

}  // namespace spmmbench
