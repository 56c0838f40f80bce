// Builds WCSR on the device in two passes over the matrix (window/device_passes.cuh): count the
// distinct columns of each window, then rank every entry's column among them and put it in its box.
//
// For a small matrix a wait takes as long as a kernel. So there is one, for the size of the format:
// the kernel that sums the tiles up tells the host. There is none where a survey has counted all
// windows, and the first pass is left out. A started build is enqueued behind a survey: the device
// chooses the height, and the memory is as much as may be needed. Its long windows wait for the
// host, which then knows how many parts they have.

#include <cuda_runtime.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "common/memory_layout.hpp"
#include "gpu/cuda_check.hpp"
#include "gpu/told_to_host.hpp"
#include "spmmbench/error.hpp"
#include "window/device_build.hpp"
#include "window/launch_passes.cuh"
#include "window/sum_tiles.cuh"

namespace spmmbench {
namespace {

using wcsr::Boxes, wcsr::Counting, wcsr::Csr, wcsr::divide, wcsr::Division, wcsr::launch_parts,
    wcsr::launch_pass, wcsr::Listed, wcsr::LongWindows, wcsr::Part, wcsr::Placing, wcsr::Skipped,
    wcsr::ToldSizes;

// For all windows, those that are listed included. One CTA. Sets `long_windows` back to zero.
__global__ void __launch_bounds__(wcsr::kSumThreads)
    sum_windows(std::int32_t* window_ptr, std::int64_t windows, int tile_columns,
                unsigned* long_windows, ToldSizes* told) {
  follow_previous();
  wcsr::Sums sums = wcsr::sum_tiles(window_ptr, windows, tile_columns, told);
  if (threadIdx.x != 0) return;
  sums.long_windows = *long_windows;
  told->sums = sums;
  *long_windows = 0;
}

__global__ void __launch_bounds__(wcsr::kSumThreads)
    sum_chosen(const __grid_constant__ wcsr::Chosen chosen) {
  follow_previous();
  chosen.take_counts(false);
}

template <class T>
std::size_t bytes_of(const std::vector<T>& array) {
  return array.size() * sizeof(T);
}

DeviceWcsr unbuilt(const WcsrShape& shape, std::int64_t places) {
  DeviceWcsr out;
  out.shape = shape;
  out.places = places;
  return out;
}

// The bytes of the window pointers, filled up to 16.
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

// The format's memory for this many windows and tiles.
void allocate_arrays(const WcsrShape& shape, std::int64_t windows, std::int64_t tiles,
                     Device& device, DeviceWcsr& out) {
  const auto slots = static_cast<std::size_t>(tiles * shape.tile_columns);
  MemoryLayout layout;
  const std::size_t values = layout.add(slots * shape.window_rows * bytes_of(shape.value_type));
  const std::size_t window_ptr = layout.add((windows + 1) * sizeof(std::int32_t));
  const std::size_t col_idx = layout.add(slots * sizeof(std::int32_t));
  out.memory = device.allocate(layout.bytes());
  out.values = array_at<void>(out.memory, values);
  out.window_ptr = array_at<std::int32_t>(out.memory, window_ptr);
  out.col_idx = array_at<std::int32_t>(out.memory, col_idx);
}

}  // namespace

namespace {

// Returns how many parts are listed.
std::int64_t keep_sizes(const ToldToHost& there, DeviceWcsr& out) {
  const std::int64_t windows = out.windows();
  const bool with_pointers = windows <= DeviceWcsr::kMostOnHost;
  const auto& told = there.read<ToldSizes>(
      offsetof(ToldSizes, window_ptr) + (with_pointers ? (windows + 1) * sizeof(std::int32_t) : 0));
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
        distinct(layout.add(division.most_listed * sizeof(std::int32_t))),
        skipped(layout.add((division.lists_skipped ? windows : 0) * sizeof(std::int32_t))),
        counters(layout.add(2 * sizeof(unsigned))) {}
  std::size_t counts, longs, distinct, skipped;
  std::size_t counters;  // of parts of long windows, and of windows that are skipped
};

// What the second pass reads.
struct Counted {
  const std::int32_t* first_tile = nullptr;  // of every window, and the end
  Listed longs{};                            // none but where there is a limit
  int limit = LongWindows::kNone;
  Skipped skipped{};
};

// The first pass: where it counts, and the kernels of it.
struct Counts {
  Counts(const DeviceCsr& matrix, const Csr& csr, const Division& divided,
         const CountsLayout& layout, unsigned* listed, Device& on, DeviceWcsr& to)
      : a(matrix),
        division(divided),
        pass{csr,
             array_at<std::int32_t>(to.input, layout.counts),
             {division.limit, array_at<Part>(to.input, layout.longs), listed},
             {}},
        columns(array_at<std::int32_t>(to.input, layout.distinct)),
        device(on),
        out(to) {
    if (division.lists_skipped)
      pass.skipped = {array_at<std::int32_t>(to.input, layout.skipped),
                      array_at<unsigned>(to.input, layout.counters) + 1};
  }

  // As many as were counted, and no more than may be.
  Listed listed() const {
    return {pass.longs.list, division.most_listed, pass.longs.count, columns};
  }
  void count_windows(const std::int32_t* chosen_rows = nullptr) const {
    launch_pass(a, out.windows(), division.by, pass, chosen_rows, device);
  }
  // Counts long windows, and forms the sums that say how large the format is.
  void count_rest(const ToldToHost& told) const {
    if (division.most_listed > 0) launch_parts(a, pass, listed(), device);
    launch_next(sum_windows, 1, wcsr::kSumThreads, 0, device.stream(), pass.counts, out.windows(),
                out.shape.tile_columns, pass.longs.count, told.as<ToldSizes>());
  }
  // The same of long windows that are counted: their parts alone.
  void count_parts() const {
    Counting of_parts = pass;
    of_parts.counts = nullptr;
    launch_parts(a, of_parts, listed(), device);
  }
  // Once they are known on the host.
  Counted take(const ToldToHost& told) const {
    Counted counted{pass.counts, listed(), division.limit, pass.skipped};
    out.first_tile = pass.counts;
    counted.longs.most = keep_sizes(told, out);
    counted.longs.count = nullptr;
    return counted;
  }

  DeviceCsr a;
  Division division;
  Counting pass;
  std::int32_t* columns;
  Device& device;
  DeviceWcsr& out;
};

// From counts that are known.
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

// The second pass, for all but long windows.
template <class Bits>
Placing<Boxes<Bits>> placing(const DeviceCsr& csr, const Csr& a, const Counted& counted,
                             const DeviceWcsr& out) {
  return {a,
          {counted.first_tile, out.window_ptr, out.col_idx, out.windows(), out.shape.tile_columns},
          {static_cast<const Bits*>(csr.values), static_cast<Bits*>(out.values)},
          counted.limit,
          counted.skipped};
}

void place_long(const DeviceCsr& csr, const Csr& a, const Counted& counted, Device& device,
                DeviceWcsr& out) {
  if (counted.longs.most == 0) return;
  with_value_bits(out.shape, [&](auto bits) {
    launch_parts(csr, placing<decltype(bits)>(csr, a, counted, out), counted.longs, device);
  });
}

void place(const DeviceCsr& csr, const Csr& a, const Division& division, const Counted& counted,
           Device& device, DeviceWcsr& out) {
  allocate_arrays(out.shape, out.windows(), out.tiles(), device, out);
  with_value_bits(out.shape, [&](auto bits) {
    const auto pass = placing<decltype(bits)>(csr, a, counted, out);
    launch_pass(csr, out.windows(), division.by, pass, nullptr, device);
  });
  place_long(csr, a, counted, device, out);
}

void require_countable(std::int64_t nnz) {
  if (nnz > std::numeric_limits<std::int32_t>::max())
    throw Error(fmt::format("WCSR on the device: {} nonzeros, at most 2^31 - 1", nnz));
}

void build(const DeviceCsr& csr, const Csr& a, const Division& division, const CountsLayout& layout,
           Device& device, DeviceWcsr& out) {
  const ToldToHost told(device);
  const Counts counts(csr, a, division, layout, told.arrivals(), device, out);
  if (counts.pass.skipped.list != nullptr)
    device.fill_bytes(counts.pass.skipped.count, 0, sizeof(unsigned));
  counts.count_windows();
  counts.count_rest(told);
  device.synchronize();
  place(csr, a, division, counts.take(told), device, out);
}

// Memory that a format may have more than it needs, so that the device can build it before the host
// knows how much it needs.
constexpr std::int64_t kMostRoom = std::int64_t{64} << 20;
// The most tiles of windows of 8 rows. Taller ones are chosen only where they hold less.
std::int64_t most_tiles(const DeviceCsr& csr, const WcsrShape& shape, std::int64_t windows) {
  const std::int64_t tiles = csr.nnz / shape.tile_columns + windows;
  const auto value_bytes = static_cast<std::int64_t>(bytes_of(shape.value_type));
  const std::int64_t of_tile = shape.tile_columns * (shape.window_rows * value_bytes + 4);
  return tiles * of_tile <= kMostRoom ? tiles : 0;
}

}  // namespace

struct StartedWcsr::Started {
  // Entries of a window that four warps take together. A list of longer ones would end the start.
  static constexpr int kMostOfWarps = 4096;

  Started(const DeviceCsr& matrix, const WcsrShape& shape, const window::ChoiceRule& by, Device& on)
      : csr(matrix),
        rule(by),
        device(on),
        out(unbuilt(shape, csr.rows)),
        a{csr.row_ptr, csr.col_idx, nullptr, csr.rows, shape.window_rows},
        division(divide(csr, out.windows(), device, kMostOfWarps)),
        layout(memory, out.windows(), division),
        found_at(memory.add(sizeof(window::SurveyCounts))),
        rows_at(memory.add(sizeof(std::int32_t))),
        told(std::make_unique<ToldToHost>(device)),
        room(most_tiles(csr, shape, out.windows())) {
    out.input = device.allocate(memory.bytes());
  }

  // While the survey runs.
  void take_room() {
    if (room == 0) return;
    try {
      allocate_arrays(out.shape, out.windows(), room, device, out);
    } catch (const OutOfMemory&) {
      room = 0;  // what is needed may be there
    }
  }
  Counts counts() {
    return {csr, a, division, layout, array_at<unsigned>(out.input, layout.counters), device, out};
  }

  DeviceCsr csr;
  window::ChoiceRule rule;
  Device& device;
  DeviceWcsr out;
  Csr a;
  Division division;
  MemoryLayout memory;
  CountsLayout layout;
  std::size_t found_at, rows_at;
  std::unique_ptr<ToldToHost> told;
  std::int64_t room;
  bool is_followed = false;
  bool all_counted = false;  // by the survey
};

StartedWcsr::StartedWcsr(const DeviceCsr& csr, ElementType value_type,
                         const window::ChoiceRule& rule, Device& device) {
  require_countable(csr.nnz);
  WcsrShape shape;
  shape.window_rows = kWcsrHeights[0];
  shape.value_type = value_type;
  started_ = std::make_unique<Started>(csr, shape, rule, device);
}

// Until the signal kernels write to memory that others may get after this.
StartedWcsr::~StartedWcsr() {
  if (!started_->is_followed) return;
  try {
    wait_for({&started_->told->as<ToldSizes>()->signal}, started_->device);
  } catch (const DeviceError&) {  // the next call to the device says so too
  }
}

window::SurveyCounts* StartedWcsr::counts() {
  return array_at<window::SurveyCounts>(started_->out.input, started_->found_at);
}

void StartedWcsr::follow(const window::SurveyGrid& grid, window::SurveyCounts* told) {
  Started& s = *started_;
  s.take_room();
  s.is_followed = true;
  s.all_counted = !grid.at_nonzeros;
  if (s.all_counted) s.division = s.division.of_counted();
  const Counts counts = s.counts();
  auto* const rows = array_at<std::int32_t>(s.out.input, s.rows_at);
  auto* const sizes = s.told->as<ToldSizes>();
  (void)make_signal(&sizes->signal);
  const wcsr::Chosen chosen{rows,
                            counts.pass.longs,
                            counts.pass.counts,
                            s.csr.row_ptr,
                            s.a.places,
                            s.out.shape.tile_columns,
                            s.room,
                            sizes};
  window::choose_on_device(StartedWcsr::counts(), grid, s.rule, told, chosen, s.device);
  if (grid.at_nonzeros) {
    counts.count_windows(rows);
    launch_next(sum_chosen, 1, wcsr::kSumThreads, 0, s.device.stream(), chosen);
  }
  if (s.room == 0) return;
  with_value_bits(s.out.shape, [&](auto bits) {
    const Counted counted{.first_tile = counts.pass.counts,
                          .limit = s.division.limit,
                          .skipped = counts.pass.skipped};
    const auto pass = placing<decltype(bits)>(s.csr, s.a, counted, s.out);
    launch_pass(s.csr, s.out.windows(), s.division.by, pass, rows, s.device);
  });
}

std::optional<DeviceWcsr> StartedWcsr::finish(int window_rows, StageTimer& stages) {
  Started& s = *started_;
  if (!s.is_followed) return std::nullopt;
  const auto timed = stages.scope("build");
  wait_for({&s.told->as<ToldSizes>()->signal}, s.device);
  const auto& told = s.told->read<ToldSizes>(offsetof(ToldSizes, window_ptr));
  if (told.rows != window_rows) return std::nullopt;
  s.out.shape.window_rows = s.a.window_rows = window_rows;
  const Counts counts = s.counts();
  if (told.sums.long_windows > 0) {
    if (s.all_counted) counts.count_parts();
    else {
      counts.count_rest(*s.told);
      s.device.synchronize();
    }
  }
  const bool is_placed = told.is_placed;
  const Counted counted = counts.take(*s.told);
  if (is_placed) place_long(s.csr, s.a, counted, s.device, s.out);
  else place(s.csr, s.a, s.division, counted, s.device, s.out);
  return std::move(s.out);
}

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
  build(csr, view, division, counts, device, out);
  return out;
}

DeviceWcsr build_wcsr(const DeviceCsr& csr, const WcsrShape& shape, const std::int32_t* row_of,
                      std::int64_t places, Device& device, StageTimer& stages) {
  require_countable(csr.nnz);
  const auto timed = stages.scope("build");
  DeviceWcsr out = unbuilt(shape, places);
  const Division division = divide(csr, out.windows(), device);
  MemoryLayout layout;
  const CountsLayout counts(layout, out.windows(), division);
  out.input = device.allocate(layout.bytes());
  build(csr, {csr.row_ptr, csr.col_idx, row_of, places, shape.window_rows}, division, counts,
        device, out);
  return out;
}

DeviceWcsr build_wcsr(const DeviceCsr& csr, const WcsrShape& shape, const std::int32_t* row_of,
                      std::span<const std::int32_t> distinct, std::int64_t places, Device& device,
                      StageTimer& stages) {
  require_countable(csr.nnz);
  const auto timed = stages.scope("build");
  DeviceWcsr out = unbuilt(shape, places);
  const Counted counted = take_counts(distinct, device, out);
  Division division = divide(csr, out.windows(), device);
  constexpr std::int64_t kLong = 2048;  // columns of a window for which others would wait
  if (out.sizes.longest * std::int64_t{shape.tile_columns} >= kLong)
    division.by = Division::By::large_ctas;
  place(csr, {csr.row_ptr, csr.col_idx, row_of, places, shape.window_rows}, division, counted,
        device, out);
  return out;
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
  allocate_arrays(shape, out.windows(), out.tiles(), device, out);
  device.upload(out.window_ptr, out.window_ptr_host.data(), bytes_of(out.window_ptr_host));
  device.upload(out.col_idx, host.col_idx.data(), bytes_of(host.col_idx));
  device.upload(out.values, host.values16.data(), bytes_of(host.values16));
  device.upload(out.values, host.values32.data(), bytes_of(host.values32));
  return out;
}

}  // namespace spmmbench
