// Builds WCSR on the device in two passes over the matrix (window/device_passes.cuh): count the
// distinct columns of each window, then rank every entry's column among them and put it in its box.
//
// For a small matrix a wait takes as long as a kernel. So there is one, for the size of the format:
// the kernel that sums the tiles up tells the host. There is none where a survey has counted all
// windows, and the first pass is left out.

#include <cuda_runtime.h>
#include <fmt/format.h>

#include <algorithm>
#include <cub/block/block_scan.cuh>
#include <limits>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "common/memory_layout.hpp"
#include "gpu/cuda_check.hpp"
#include "gpu/told_to_host.hpp"
#include "spmmbench/error.hpp"
#include "window/device_build.hpp"
#include "window/device_passes.cuh"

namespace spmmbench {
namespace {

using wcsr::Boxes, wcsr::Counting, wcsr::Csr, wcsr::Listed, wcsr::LongWindows, wcsr::Part,
    wcsr::Places, wcsr::Placing, wcsr::Positions, wcsr::Scan;

template <class Bits>
__global__ void put_values(const Bits* entries, const std::uint32_t* positions, Bits* values,
                           std::int64_t count) {
  const std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i < count) values[positions[i]] = mark_entry(entries[i]);
}

constexpr int kSumThreads = 1024;

// Over all windows.
struct Sums {
  std::int64_t gathered;        // distinct columns
  std::int32_t tiles, longest;  // in all, and of the longest window
  unsigned long_windows;        // parts that are listed
};

// What the host is told: the window pointers where they are few.
struct ToldSizes {
  Sums sums;
  alignas(16) std::int32_t window_ptr[DeviceWcsr::kMostOnHost / 4 * 4 + 4];
};

// From the distinct columns of each window, in place: the first tile of each, and the end, repeated
// until an int4 is full. One CTA; `window_ptr` has room for these. 31 bits hold the tiles of 2^31 -
// 1 nonzeros: at most one in 16 and one per window. Sets the number of long windows back to zero.
__global__ void __launch_bounds__(kSumThreads)
    sum_tiles(std::int32_t* window_ptr, std::int64_t windows, int tile_columns,
              unsigned* long_windows, ToldSizes* told) {
  __shared__ typename Scan<kSumThreads>::TempStorage scan;
  __shared__ unsigned columns_of_all, longest_of_all;
  if (threadIdx.x == 0) columns_of_all = longest_of_all = 0;
  std::int32_t before = 0;
  unsigned columns = 0, longest = 0;
  for (std::int64_t from = 0; from <= windows; from += 4 * kSumThreads) {
    const std::int64_t own = from + 4 * threadIdx.x;
    auto* const at = reinterpret_cast<int4*>(window_ptr + own);
    const auto count = [&](int i) { return own + i < windows ? window_ptr[own + i] : 0; };
    const int4 distinct =
        own + 4 <= windows ? *at : make_int4(count(0), count(1), count(2), count(3));
    const int counted[4] = {distinct.x, distinct.y, distinct.z, distinct.w};
    int tiles[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      columns += counted[i];
      longest = max(longest, static_cast<unsigned>(counted[i]));
      tiles[i] = own + i < windows ? max(1, (counted[i] + tile_columns - 1) / tile_columns) : 0;
    }
    std::int32_t all = 0;
    Scan<kSumThreads>(scan).ExclusiveSum(tiles, tiles, all);
    if (own <= windows) {
      *at = make_int4(before + tiles[0], before + tiles[1], before + tiles[2], before + tiles[3]);
      if (windows <= DeviceWcsr::kMostOnHost)
        *reinterpret_cast<int4*>(told->window_ptr + own) = *at;
    }
    before += all;
    __syncthreads();  // the scan's memory is used again
  }
  columns = __reduce_add_sync(wcsr::kAllLanes, columns);
  longest = __reduce_max_sync(wcsr::kAllLanes, longest);
  if (threadIdx.x % wcsr::kLanes == 0) {
    atomicAdd(&columns_of_all, columns);
    atomicMax(&longest_of_all, longest);
  }
  __syncthreads();
  if (threadIdx.x != 0) return;
  // A window without columns has a tile, too.
  const std::int64_t of_longest =
      windows > 0
          ? max(std::int64_t{1}, (std::int64_t{longest_of_all} + tile_columns - 1) / tile_columns)
          : 0;
  told->sums = {columns_of_all, before, static_cast<std::int32_t>(of_longest), *long_windows};
  *long_windows = 0;
}

template <class T>
std::size_t bytes_of(const std::vector<T>& array) {
  return array.size() * sizeof(T);
}

constexpr int kLargeThreads = 1024;

template <int kThreads>
std::size_t shared_bytes(const DeviceCsr& matrix) {
  const std::int64_t columns = std::min<std::int64_t>(matrix.cols, wcsr::kSlab<kThreads>);
  return (columns / wcsr::kGroup + 1) * wcsr::kBytesPerGroup;
}

// Which threads have the windows, and from how many entries on a window is left to a list, which a
// kernel of large CTAs has.
struct Division {
  enum class By { warps, small_ctas, large_ctas } by = By::large_ctas;
  int limit = LongWindows::kNone;
  std::int64_t most_listed = 0;  // parts of such windows
};

// Large CTAs where each has much to do; warps where windows have few entries and are many.
Division divide(const DeviceCsr& matrix, std::int64_t windows, const Device& device) {
  constexpr std::int64_t kFewEntries = 192, kManyEntries = 4096;  // in the mean
  constexpr std::int64_t kManyWindowsPerSm = 12;
  constexpr int kLimitOfWarps = 1024, kLimitOfSmallCtas = 8192;
  if (matrix.nnz > kManyEntries * windows) return {};
  const bool by_warps =
      matrix.nnz <= kFewEntries * windows && windows >= kManyWindowsPerSm * device.info().sm_count;
  const int limit = by_warps ? kLimitOfWarps : kLimitOfSmallCtas;
  const std::int64_t longs = matrix.nnz / limit;
  return {by_warps ? Division::By::warps : Division::By::small_ctas,
          longs > 0 ? limit : LongWindows::kNone,
          longs > 0 ? longs + matrix.nnz / Part::kEntries : 0};
}

template <class Pass>
void launch_pass(const DeviceCsr& matrix, std::int64_t windows, Division::By by, const Pass& pass,
                 cudaStream_t stream) {
  if (windows == 0) return;
  const auto ctas = static_cast<unsigned>(windows);
  const auto by_warp = [&]<class Key>(Key) {
    constexpr int kThreads = wcsr::kWarpsOfCta * wcsr::kLanes;
    wcsr::pass_by_warp<Key><<<(ctas + wcsr::kWarpsOfCta - 1) / wcsr::kWarpsOfCta, kThreads,
                              shared_bytes<kThreads>(matrix), stream>>>(pass, windows);
  };
  const auto by_cta = [&]<int kThreads>(std::integral_constant<int, kThreads>) {
    wcsr::pass_by_cta<kThreads><<<ctas, kThreads, shared_bytes<kThreads>(matrix), stream>>>(pass);
  };
  constexpr std::int64_t kShortKeys = std::int64_t{1} << (32 - wcsr::ShortWindow::kNumberBits);
  if (by == Division::By::large_ctas) by_cta(std::integral_constant<int, kLargeThreads>{});
  else if (by == Division::By::small_ctas) by_cta(std::integral_constant<int, 256>{});
  else if (matrix.cols <= kShortKeys) by_warp(std::uint32_t{});
  else by_warp(std::uint64_t{});
  SPMMBENCH_CUDA_LAUNCHED();
}

template <class Pass>
void launch_parts(const DeviceCsr& matrix, const Pass& pass, const Listed& longs,
                  const Device& device, cudaStream_t stream) {
  constexpr std::int64_t kCtasOfSm = 2;  // of that many threads
  const auto ctas =
      static_cast<unsigned>(std::min<std::int64_t>(longs.most, kCtasOfSm * device.info().sm_count));
  wcsr::pass_of_parts<kLargeThreads>
      <<<ctas, kLargeThreads, shared_bytes<kLargeThreads>(matrix), stream>>>(pass, longs);
  SPMMBENCH_CUDA_LAUNCHED();
}

DeviceWcsr unbuilt(const WcsrShape& shape, std::int64_t places) {
  DeviceWcsr out;
  out.shape = shape;
  out.places = places;
  return out;
}

// Of the window pointers, filled up to 16 bytes.
std::size_t bytes_of_counts(std::int64_t windows) {
  return (windows / 4 * 4 + 4) * sizeof(std::int32_t);
}

// function(bits), the type of a stored value. No tensor core of ours has fp64.
template <class Function>
void with_value_bits(const WcsrShape& shape, const Function& function) {
  visit_element(shape.value_type, [&](auto element) {
    using Bits = typename decltype(element)::Bits;
    if constexpr (sizeof(Bits) <= sizeof(float)) function(Bits{});
  });
}

// The format's memory, for the windows and tiles of `out`. Returns the bytes of the values and
// the window pointers, which come first.
std::size_t allocate_arrays(const WcsrShape& shape, Device& device, DeviceWcsr& out) {
  const auto slots = static_cast<std::size_t>(out.tiles() * shape.tile_columns);
  MemoryLayout layout;
  const std::size_t values = layout.add(slots * shape.window_rows * bytes_of(shape.value_type));
  const std::size_t window_ptr = layout.add((out.windows() + 1) * sizeof(std::int32_t));
  const std::size_t col_idx = layout.add(slots * sizeof(std::int32_t));
  out.memory = device.allocate(layout.bytes());
  out.values = array_at<void>(out.memory, values);
  out.window_ptr = array_at<std::int32_t>(out.memory, window_ptr);
  out.col_idx = array_at<std::int32_t>(out.memory, col_idx);
  return col_idx;
}

}  // namespace

namespace {

// Returns how many parts are listed.
std::int64_t keep_sizes(const ToldToHost& there, DeviceWcsr& out) {
  const std::int64_t windows = out.windows();
  const bool with_pointers = windows <= DeviceWcsr::kMostOnHost;
  const auto& told = there.read<ToldSizes>(
      sizeof(Sums) + (with_pointers ? (windows + 1) * sizeof(std::int32_t) : 0));
  if (with_pointers) out.window_ptr_host.assign(told.window_ptr, told.window_ptr + windows + 1);
  out.gathered = told.sums.gathered;
  out.sizes = {windows, told.sums.tiles, told.sums.longest};
  return told.sums.long_windows;
}

// What the counts of windows need of `input`.
struct CountsLayout {
  CountsLayout(MemoryLayout& layout, std::int64_t windows, const Division& division)
      : counts(layout.add(bytes_of_counts(windows))),
        longs(layout.add(division.most_listed * sizeof(Part))),
        distinct(layout.add(division.most_listed * sizeof(std::int32_t))) {}
  std::size_t counts, longs, distinct;
};

// As many as were counted, and no more than may be.
Listed listed(const Buffer& input, const CountsLayout& layout, const Division& division,
              const ToldToHost& told) {
  return {array_at<Part>(input, layout.longs), division.most_listed, told.arrivals(),
          array_at<std::int32_t>(input, layout.distinct)};
}

// What the second pass reads.
struct Counted {
  const std::int32_t* first_tile = nullptr;  // of every window, and the end
  Listed longs{};                            // none but where there is a limit
  int limit = LongWindows::kNone;
};

// Enqueues the counts, and the sums that say how large the format is.
void start_counts(const DeviceCsr& csr, const Csr& a, const Division& division,
                  const CountsLayout& layout, const ToldToHost& told, Device& device,
                  DeviceWcsr& out) {
  const auto stream = static_cast<cudaStream_t>(device.stream().handle);
  auto* const counts = array_at<std::int32_t>(out.input, layout.counts);
  Counting pass{
      a, counts, {division.limit, array_at<Part>(out.input, layout.longs), told.arrivals()}};
  launch_pass(csr, out.windows(), division.by, pass, stream);
  if (division.most_listed > 0)
    launch_parts(csr, pass, listed(out.input, layout, division, told), device, stream);
  sum_tiles<<<1, kSumThreads, 0, stream>>>(counts, out.windows(), out.shape.tile_columns,
                                           told.arrivals(), told.as<ToldSizes>());
  SPMMBENCH_CUDA_LAUNCHED();
}

// Waits for them.
Counted take_counts(const Division& division, const CountsLayout& layout, const ToldToHost& told,
                    Device& device, DeviceWcsr& out) {
  device.synchronize();
  Counted counted{array_at<std::int32_t>(out.input, layout.counts),
                  listed(out.input, layout, division, told), division.limit};
  counted.longs.most = keep_sizes(told, out);
  counted.longs.count = nullptr;
  return counted;
}

// The same from counts that are known.
Counted take_counts(std::span<const std::int32_t> distinct, Device& device, DeviceWcsr& out) {
  out.told = std::make_unique<ToldToHost>(device);
  auto* const first_tile = out.told->as<ToldSizes>()->window_ptr;
  std::vector<std::int32_t>& ptr = out.window_ptr_host;
  ptr.assign(1, 0);
  for (const std::int32_t columns : distinct) {
    const int tile = out.shape.tile_columns;
    ptr.push_back(ptr.back() + std::max(1, (columns + tile - 1) / tile));
    out.gathered += columns;
  }
  out.sizes = sizes_of(ptr);
  std::ranges::copy(ptr, first_tile);
  return {.first_tile = first_tile};
}

void place(const DeviceCsr& csr, const Csr& a, const Division& division, const Counted& counted,
           Device& device, DeviceWcsr& out) {
  const auto stream = static_cast<cudaStream_t>(device.stream().handle);
  const std::size_t value_bytes = allocate_arrays(out.shape, device, out);
  const bool has_longs = counted.longs.most > 0;  // whose parts share tiles
  if (has_longs) device.fill_bytes(out.memory.data(), 0, value_bytes);
  with_value_bits(out.shape, [&](auto bits) {
    using Bits = decltype(bits);
    Placing<Boxes<Bits>> pass{
        a,
        {counted.first_tile, out.window_ptr, out.col_idx, out.windows(), out.shape.tile_columns},
        {static_cast<const Bits*>(csr.values), static_cast<Bits*>(out.values), has_longs},
        counted.limit};
    launch_pass(csr, out.windows(), division.by, pass, stream);
    if (has_longs) launch_parts(csr, pass, counted.longs, device, stream);
  });
}

void require_countable(std::int64_t nnz) {
  if (nnz > std::numeric_limits<std::int32_t>::max())
    throw Error(fmt::format("WCSR on the device: {} nonzeros, at most 2^31 - 1", nnz));
}

}  // namespace

DeviceWcsr build_wcsr(const SparseOperand& operand, const WcsrShape& shape,
                      const Permutation& row_order, Device& device, StageTimer& stages) {
  require_countable(operand.nnz());
  const std::int64_t places =
      row_order.empty() ? operand.m() : static_cast<std::int64_t>(row_order.size());
  DeviceWcsr out = unbuilt(shape, places);
  out.csr = std::make_unique<ResidentCsr>(operand, device, stages);
  const DeviceCsr& csr = out.csr->view();
  const Division division = divide(csr, out.windows(), device);
  MemoryLayout layout;
  const std::size_t row_of = layout.add(bytes_of(row_order));
  const CountsLayout counts(layout, out.windows(), division);
  {
    const auto timed = stages.scope("upload");
    out.input = device.allocate(layout.bytes());
    device.upload(array_at<void>(out.input, row_of), row_order.data(), bytes_of(row_order));
  }
  const auto timed = stages.scope("build");
  const Csr view{csr.row_ptr, csr.col_idx,
                 row_order.empty() ? nullptr : array_at<std::int32_t>(out.input, row_of), places,
                 shape.window_rows};
  const ToldToHost told(device);
  start_counts(csr, view, division, counts, told, device, out);
  place(csr, view, division, take_counts(division, counts, told, device, out), device, out);
  return out;
}

struct StartedWcsr::Counts {
  Counts(const DeviceCsr& matrix, const WcsrShape& shape, const std::int32_t* row_of,
         std::int64_t places, Device& device)
      : csr(matrix),
        out(unbuilt(shape, places)),
        a{csr.row_ptr, csr.col_idx, row_of, places, shape.window_rows},
        division(divide(csr, out.windows(), device)),
        layout(memory, out.windows(), division),
        told(device) {
    out.input = device.allocate(memory.bytes());
    start_counts(csr, a, division, layout, told, device, out);
  }

  DeviceCsr csr;
  DeviceWcsr out;
  Csr a;
  Division division;
  MemoryLayout memory;
  CountsLayout layout;
  ToldToHost told;
};

StartedWcsr::StartedWcsr(const DeviceCsr& csr, const WcsrShape& shape, const std::int32_t* row_of,
                         std::int64_t places, Device& device) {
  require_countable(csr.nnz);
  counts_ = std::make_unique<Counts>(csr, shape, row_of, places, device);
}
StartedWcsr::~StartedWcsr() = default;
StartedWcsr::StartedWcsr(StartedWcsr&&) noexcept = default;

DeviceWcsr StartedWcsr::finish(Device& device, StageTimer& stages) && {
  const auto timed = stages.scope("build");
  Counts& c = *counts_;
  const Counted counted = take_counts(c.division, c.layout, c.told, device, c.out);
  place(c.csr, c.a, c.division, counted, device, c.out);
  return std::move(c.out);
}

DeviceWcsr build_wcsr(const DeviceCsr& csr, const WcsrShape& shape, const std::int32_t* row_of,
                      std::int64_t places, Device& device, StageTimer& stages) {
  const auto timed = stages.scope("build");
  StageTimer inside;
  return StartedWcsr(csr, shape, row_of, places, device).finish(device, inside);
}

DeviceWcsr build_wcsr(const DeviceCsr& csr, const WcsrShape& shape, const std::int32_t* row_of,
                      std::span<const std::int32_t> distinct, std::int64_t places, Device& device,
                      StageTimer& stages) {
  require_countable(csr.nnz);
  const auto timed = stages.scope("build");
  DeviceWcsr out = unbuilt(shape, places);
  const Counted counted = take_counts(distinct, device, out);
  place(csr, {csr.row_ptr, csr.col_idx, row_of, places, shape.window_rows},
        divide(csr, out.windows(), device), counted, device, out);
  return out;
}

Buffer wcsr_positions(const DeviceCsr& csr, const DeviceWcsr& wcsr, const std::int32_t* row_of,
                      Device& device) {
  const std::int64_t stored = wcsr.tiles() * wcsr.shape.window_rows * wcsr.shape.tile_columns;
  if (stored > std::numeric_limits<std::uint32_t>::max())
    throw Error(fmt::format("{} stored values: at most 2^32 - 1 can be replaced", stored));
  Buffer positions = device.allocate(csr.nnz * sizeof(std::uint32_t));
  const Placing<Positions> pass{
      {csr.row_ptr, csr.col_idx, row_of, wcsr.places, wcsr.shape.window_rows},
      {wcsr.window_ptr, wcsr.window_ptr, wcsr.col_idx, wcsr.windows(), wcsr.shape.tile_columns},
      {positions.as<std::uint32_t>()},
      LongWindows::kNone};
  launch_pass(csr, wcsr.windows(), divide(csr, wcsr.windows(), device).by, pass,
              static_cast<cudaStream_t>(device.stream().handle));
  device.synchronize();
  return positions;
}

void replace_wcsr_values(const DeviceCsr& csr, const Buffer& positions, const DeviceWcsr& wcsr,
                         Stream stream) {
  if (csr.nnz == 0) return;
  with_value_bits(wcsr.shape, [&](auto bits) {
    using Bits = decltype(bits);
    constexpr int kThreads = 256;
    put_values<<<static_cast<unsigned>((csr.nnz + kThreads - 1) / kThreads), kThreads, 0,
                 static_cast<cudaStream_t>(stream.handle)>>>(
        static_cast<const Bits*>(csr.values), positions.as<std::uint32_t>(),
        static_cast<Bits*>(wcsr.values), csr.nnz);
    SPMMBENCH_CUDA_LAUNCHED();
  });
}

DeviceWcsr upload_wcsr(const CsrMatrix& matrix, const WcsrShape& shape,
                       const Permutation& row_order, Device& device, StageTimer& stages) {
  Wcsr host;
  {
    const auto timed = stages.scope("build");
    host = Wcsr::build(matrix, shape, row_order);
  }
  const auto timed = stages.scope("upload");
  DeviceWcsr out;
  out.shape = shape;
  out.places = host.places();
  out.gathered = static_cast<std::int64_t>(host.col_idx.size()) -
                 std::count(host.col_idx.begin(), host.col_idx.end(), Wcsr::kPadding);
  out.window_ptr_host = std::move(host.window_ptr);
  out.sizes = sizes_of(out.window_ptr_host);
  allocate_arrays(shape, device, out);
  device.upload(out.window_ptr, out.window_ptr_host.data(), bytes_of(out.window_ptr_host));
  device.upload(out.col_idx, host.col_idx.data(), bytes_of(host.col_idx));
  device.upload(out.values, host.values16.data(), bytes_of(host.values16));
  device.upload(out.values, host.values32.data(), bytes_of(host.values32));
  return out;
}

}  // namespace spmmbench
