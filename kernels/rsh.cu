// rsh: hybrid SpMM of RSH-SpMM (arXiv 2603.08734). Rows that share columns with the rows around
// them go in windows of bitmap-compressed 8 x 8 blocks to the tensor cores (rsh/windows.cuh,
// rsh/tile.cuh), short isolated rows to the CUDA cores (rsh/residual.cuh), in one launch: the
// blocks of the grid take one role or the other, and as every row of C belongs to one of them,
// nothing has to be added up or cleared between the two.
//
// Where it differs from the paper's kernel: rows of B pass through a ring of asynchronous copies in
// shared memory (the paper loads them straight to registers, which then bound the bytes in flight),
// windows of 16 or 32 rows where the matrix shares enough columns over them, and split windows are
// added up in a workspace in a fixed order (reduce=atomic keeps the atomics).

#include <cuda_runtime.h>
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <limits>

#include "common/dependent_launch.hpp"
#include "common/upload_values.hpp"
#include "format/rs_tile.hpp"
#include "gpu/cuda_check.hpp"
#include "rsh/choice.hpp"
#include "rsh/residual.cuh"
#include "rsh/windows.cuh"
#include "spmmbench/registry.hpp"
#include "spmmbench/reordering.hpp"

namespace spmmbench {
namespace {

constexpr int kStages = 3;
constexpr int kMaxWarps = 4;                    // per block
constexpr int kShortRow = 128, kLongRow = 256;  // bytes of a strip
constexpr std::int64_t kMaxGridY = 65535;

// Resident blocks that the registers must allow: the sums grow with height and strip.
constexpr int min_blocks(int height, int row_bytes) {
  const int size = height * row_bytes / 128;
  return size == 1 ? 3 : size == 2 ? 2 : 1;
}

template <class Input, int kHeight, int kRowBytes, bool kAtomic>
__global__ void __launch_bounds__(kMaxWarps * 32, min_blocks(kHeight, kRowBytes))
    rsh_kernel(const __grid_constant__ rsh::Arguments in) {
  extern __shared__ __align__(1024) unsigned char shared[];  // stages are addressed by xor
  if (blockIdx.x < in.span_blocks) {
    rsh::multiply_windows<Input, kHeight, kRowBytes, kStages, kAtomic>(in, shared);
  } else {
    wait_for_predecessor();
    release_successor();
    rsh::multiply_residual<Input, kRowBytes>(in, blockIdx.x - in.span_blocks);
  }
}

struct Variant {
  void (*kernel)(rsh::Arguments) = nullptr;
  int features = 0;    // of a strip
  int warp_bytes = 0;  // of shared memory, without values
  int quads = 0;
  int (*residual_rows)(int threads, int strips) = nullptr;  // per block
};

template <class Input, int kHeight, int kRowBytes>
Variant make_variant(bool atomic) {
  using Shape = rsh::Shape<Input, kHeight, kRowBytes, kStages>;
  return {atomic ? rsh_kernel<Input, kHeight, kRowBytes, true>
                 : rsh_kernel<Input, kHeight, kRowBytes, false>,
          Shape::kFeatures, Shape::kRingBytes + Shape::kColumnBytes + Shape::kBitmapBytes,
          Shape::kQuads, rsh::residual_rows_per_block<Input, kRowBytes>};
}

template <class Input>
Variant variant_of(int window_rows, int row_bytes, bool atomic) {
  // 32 rows of 256 bytes would need more accumulators than a thread has registers to spare.
  if (window_rows == 32) return make_variant<Input, 4, kShortRow>(atomic);
  if (window_rows == 16)
    return row_bytes == kLongRow ? make_variant<Input, 2, kLongRow>(atomic)
                                 : make_variant<Input, 2, kShortRow>(atomic);
  return row_bytes == kLongRow ? make_variant<Input, 1, kLongRow>(atomic)
                               : make_variant<Input, 1, kShortRow>(atomic);
}

Variant variant_of(Precision precision, int window_rows, int row_bytes, bool atomic) {
  switch (precision) {
    case Precision::fp16: return variant_of<__half>(window_rows, row_bytes, atomic);
    case Precision::bf16: return variant_of<__nv_bfloat16>(window_rows, row_bytes, atomic);
    default: return variant_of<mma::Tf32>(window_rows, row_bytes, atomic);
  }
}

int blocks_per_sm(const Variant& variant, int warps, std::size_t shared_bytes) {
  int blocks = 0;
  SPMMBENCH_CUDA(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, variant.kernel, warps * 32,
                                                               shared_bytes));
  return std::max(blocks, 1);
}

// On the device, padded with zeros to a multiple of 16 bytes.
template <class T>
Buffer upload_padded(Device& device, std::vector<T> host) {
  constexpr std::size_t kPerPiece = 16 / sizeof(T);
  host.resize((host.size() + kPerPiece - 1) / kPerPiece * kPerPiece);
  return device.upload(host);
}

// Tiles of kTileColumns before every window.
std::vector<std::int32_t> window_tiles(const RsTile& a) {
  std::vector<std::int32_t> out(a.windows.size(), 0);
  for (std::int64_t w = 0; w < a.window_count(); ++w)
    out[w + 1] = out[w] + (a.windows[w + 1].column - a.windows[w].column + rsh::kTileColumns - 1) /
                              rsh::kTileColumns;
  return out;
}

// Where each span lies in the arrays of the format.
std::vector<rsh::SpanRange> span_ranges(const RsTile& a, const RsWork& work,
                                        const std::vector<std::int32_t>& tiles_before) {
  std::vector<rsh::SpanRange> out(work.spans.size(), rsh::SpanRange{});
  const auto count = static_cast<std::int64_t>(work.spans.size());
  const std::int64_t height = a.blocks_per_group();
#pragma omp parallel for schedule(static)
  for (std::int64_t s = 0; s < count; ++s) {
    const RsSpan& span = work.spans[s];
    const int tiles = span.tiles & ~RsSpan::kShared;
    if (tiles == 0) continue;
    const RsTile::Window window = a.windows[span.first_window];
    rsh::SpanRange& out_range = out[s];
    if ((span.tiles & RsSpan::kShared) == 0) {
      const auto last = std::lower_bound(tiles_before.begin() + span.first_window,
                                         tiles_before.end(), span.first_tile + tiles);
      const RsTile::Window end = a.windows[last - tiles_before.begin()];
      out_range = {window.column, end.column, window.group, end.group, window.value, end.value, {}};
      continue;
    }
    const RsTile::Window next = a.windows[span.first_window + 1];
    const std::int32_t skipped = span.first_tile - tiles_before[span.first_window];
    out_range.column = window.column + skipped * rsh::kTileColumns;
    out_range.column_end = std::min(out_range.column + tiles * rsh::kTileColumns, next.column);
    out_range.group = window.group + 2 * skipped;
    out_range.group_end = std::min(out_range.group + 2 * tiles, next.group);
    const auto values = [&](std::int64_t from, std::int64_t to) {
      std::uint32_t sum = 0;
      for (std::int64_t block = from * height; block < to * height; ++block)
        sum += static_cast<std::uint32_t>(std::popcount(a.bitmap[block]));
      return sum;
    };
    out_range.value = window.value + values(window.group, out_range.group);
    out_range.value_end = out_range.value + values(out_range.group, out_range.group_end);
  }
  return out;
}

// Shared memory for the values of any span, with a piece at either end that it may begin and end
// inside, and one more that decoding may read into.
int value_bytes_of(const std::vector<rsh::SpanRange>& ranges, int value_bytes) {
  std::uint32_t most = 0;
  for (const rsh::SpanRange& range : ranges) most = std::max(most, range.value_end - range.value);
  return static_cast<int>(most * static_cast<unsigned>(value_bytes) / 16 + 3) * 16;
}

class RshPlan final : public Plan {
 public:
  RshPlan(const Problem& problem, Device& device, StageTimer& stages)
      : n_(problem.n), overlap_(device.info().compute_capability >= 90) {
    rsh::Choice choice;
    {
      const auto timed = stages.scope("choose");
      choice = rsh::choose(problem);
    }
    RsTile host;
    std::vector<std::int32_t>
        row_ids;  // row of the format -> row of C; empty when they are the same
    RsWork work;
    std::vector<rsh::SpanRange> ranges;
    {
      const auto timed = stages.scope("build");
      row_ids.assign(problem.row_ids.begin(), problem.row_ids.end());
      if (choice.by_degree) {
        const Permutation order = rsh::degree_order(*problem.a);
        host = RsTile::build(permute_rows(*problem.a, order), choice.format);
        row_ids = order;
        if (!problem.row_ids.empty())
          for (std::int32_t& row : row_ids) row = problem.row_ids[row];
      } else {
        host = RsTile::build(*problem.a, choice.format);
      }
      const std::vector<std::int32_t> tiles = window_tiles(host);
      choose_launch(problem, host.window_rows, tiles, device.info());
      work = cut_rs_windows(tiles, cut_);
      ranges = span_ranges(host, work, tiles);
      value_bytes_ =
          value_bytes_of(ranges, static_cast<int>(bytes_of(storage_type(problem.precision))));
    }
    const auto timed = stages.scope("upload");
    upload(problem.precision, host, row_ids, work, ranges, device);
    describe(host, work, choice, static_cast<int>(bytes_of(storage_type(problem.precision))));
  }

  void launch(const DenseView& b, const DenseView& c, Stream stream) override {
    if (blocks_ == 0) return;
    rsh::Arguments in = arguments_;
    in.b = b.data;
    in.b_row_bytes = static_cast<std::uint32_t>(b.ld * static_cast<std::int64_t>(bytes_of(b.type)));
    in.c = static_cast<float*>(c.data);
    in.ldc = c.ld;
    launch_dependent(variant_.kernel, dim3(blocks_, strip_groups_), dim3(warps_ * 32),
                     shared_bytes(), stream, overlap_, in);
  }

  PlanReport report() const override { return report_; }

 private:
  std::size_t shared_bytes() const {
    return static_cast<std::size_t>(warps_) * (variant_.warp_bytes + value_bytes_);
  }

  void choose_launch(const Problem& problem, int window_rows,
                     const std::vector<std::int32_t>& tiles_before, const DeviceInfo& device) {
    const Options& options = problem.options;
    const std::int64_t tiles = tiles_before.back();
    const std::int64_t row_bytes =
        n_ * static_cast<std::int64_t>(bytes_of(storage_type(problem.precision)));
    const std::int64_t short_strips = (row_bytes + kShortRow - 1) / kShortRow;
    const std::string strip = options.get_choice("strip", "auto", {"auto", "128", "256"});
    const bool is_long = strip == "auto"
                             ? rsh::prefers_long_strips(row_bytes, tiles * short_strips, device)
                             : strip == "256";
    atomic_ = options.get_choice("reduce", "fixup", {"fixup", "atomic"}) == "atomic";
    variant_ = variant_of(problem.precision, window_rows, is_long ? kLongRow : kShortRow, atomic_);

    const std::int64_t strips = (n_ + variant_.features - 1) / variant_.features;
    const auto wanted = static_cast<int>(options.get_int("warps", kMaxWarps, 1, kMaxWarps));
    strip_groups_ = static_cast<unsigned>((strips + wanted - 1) / wanted);
    strips_ = static_cast<int>((strips + strip_groups_ - 1) / strip_groups_);
    cut_.team = std::max(1, wanted / strips_);
    warps_ = cut_.team * strips_;
    const int most_shared = static_cast<int>(device.shared_per_block);
    SPMMBENCH_CUDA(cudaFuncSetAttribute(variant_.kernel,
                                        cudaFuncAttributeMaxDynamicSharedMemorySize, most_shared));
    const int resident = device.sm_count * blocks_per_sm(variant_, warps_, shared_bytes()) * warps_;
    rsh::choose_cut(tiles, static_cast<std::int64_t>(tiles_before.size()) - 1, strips, resident,
                    cut_);
    const auto given = [&](const char* key, int& tiles_of, int most) {
      if (options.get(key, "auto") != "auto")
        tiles_of = static_cast<int>(options.get_int(key, 1, 1, most));
    };
    given("span", cut_.span_tiles, rsh::kMaxSpanTarget);
    given("whole", cut_.whole_tiles, RsCut::kMaxSpanTiles);
    given("part", cut_.part_tiles, RsCut::kMaxSpanTiles);
  }

  void upload(Precision precision, RsTile& host, const std::vector<std::int32_t>& row_ids,
              const RsWork& work, const std::vector<rsh::SpanRange>& ranges, Device& device) {
    const ElementType type = storage_type(precision);
    spans_ = device.upload(work.spans);
    ranges_ = device.upload(ranges);
    parts_ = device.upload(work.parts);
    windows_ = device.upload(host.windows);
    host.row_bits.push_back(0);  // a window's 64 rows may begin in the last word
    row_bits_ = device.upload(host.row_bits);
    host.row_bits.pop_back();
    bitmap_ = upload_padded(device, host.bitmap);
    col_id_ = upload_padded(device, host.col_id);
    std::vector<float> padded = host.values;
    padded.resize((padded.size() + 7) / 8 * 8);  // to 16 bytes of any type
    values_ = upload_values(device, padded, type);
    row_ids_ = device.upload(row_ids);
    const std::size_t slots = work.parts.size() * strips_ * strip_groups_;
    sums_ = device.allocate(slots * variant_.quads * 32 * sizeof(float4));
    arrivals_ = device.allocate(slots * sizeof(unsigned));
    device.fill_bytes(sums_.data(), 0, sums_.bytes());
    device.fill_bytes(arrivals_.data(), 0, arrivals_.bytes());
    const rsh::Residual residual = upload_residual(type, host, row_ids, device);
    device.synchronize();

    const auto span_blocks = static_cast<unsigned>(work.spans.size() / cut_.team);
    const int rows_per_block = variant_.residual_rows(warps_ * 32, strips_);
    blocks_ =
        span_blocks + static_cast<unsigned>((residual.count + rows_per_block - 1) / rows_per_block);
    arguments_ = {.spans = spans_.as<RsSpan>(),
                  .ranges = ranges_.as<rsh::SpanRange>(),
                  .parts = parts_.as<RsPart>(),
                  .windows = windows_.as<RsTile::Window>(),
                  .row_bits = row_bits_.as<std::uint64_t>(),
                  .bitmap = bitmap_.as<std::uint64_t>(),
                  .col_id = col_id_.as<std::int32_t>(),
                  .values = values_.data(),
                  .row_ids = row_ids_.as<std::int32_t>(),
                  .window_count = static_cast<std::int32_t>(host.window_count()),
                  .span_blocks = span_blocks,
                  .residual = residual,
                  .b = nullptr,
                  .b_row_bytes = 0,
                  .c = nullptr,
                  .ldc = 0,
                  .n = n_,
                  .strips = strips_,
                  .value_bytes = value_bytes_,
                  .sums = sums_.as<float4>(),
                  .arrivals = arrivals_.as<unsigned>()};
  }

  // The residual rows of the format, and before them the rows that are in no part of it, which are
  // empty: C is written there too.
  rsh::Residual upload_residual(ElementType type, const RsTile& host,
                                const std::vector<std::int32_t>& row_ids, Device& device) {
    std::vector<std::uint64_t> taken = host.row_bits;
    for (const std::int32_t row : host.residual_row)
      taken[row / 64] |= std::uint64_t{1} << (row % 64);
    std::vector<std::int32_t> rows;
    for (std::int64_t row = 0; row < host.rows; ++row)
      if ((taken[row / 64] >> (row % 64) & 1) == 0) rows.push_back(static_cast<std::int32_t>(row));
    rsh::Residual out{};
    const auto empty = static_cast<std::int32_t>(rows.size());
    rows.insert(rows.end(), host.residual_row.begin(), host.residual_row.end());
    if (!row_ids.empty())
      for (std::int32_t& row : rows) row = row_ids[row];
    for (int length = 1; length <= rsh::Residual::kLengths; ++length)
      out.first[length] = empty + host.residual_offset[length];
    for (int length = 1; length < rsh::Residual::kLengths; ++length)
      out.entry[length] = host.residual_start(length);
    residual_rows_ = device.upload(rows);
    residual_cols_ = device.upload(host.residual_col);
    residual_values_ = upload_values(device, host.residual_value, type);
    out.rows = residual_rows_.as<std::int32_t>();
    out.cols = residual_cols_.as<std::int32_t>();
    out.values = residual_values_.data();
    out.count = static_cast<std::int32_t>(rows.size());
    return out;
  }

  void describe(const RsTile& host, const RsWork& work, const rsh::Choice& choice,
                int value_bytes) {
    for (const Buffer* buffer :
         {&spans_, &ranges_, &parts_, &windows_, &row_bits_, &bitmap_, &col_id_, &values_,
          &row_ids_, &sums_, &arrivals_, &residual_rows_, &residual_cols_, &residual_values_})
      report_.device_bytes += buffer->bytes();
    report_.format = host.stats(value_bytes);
    const auto number = [](std::int64_t value) { return fmt::format("{}", value); };
    report_.params = choice.format.values();
    report_.params["order"] = choice.by_degree ? "degree" : "natural";
    report_.params["strip"] = number(variant_.features);
    report_.params["warps"] = number(warps_);
    report_.params["reduce"] = atomic_ ? "atomic" : "fixup";
    report_.params["span"] = number(cut_.span_tiles);
    report_.params["whole"] = number(cut_.whole_tiles);
    report_.params["part"] = number(cut_.part_tiles);
    const std::int64_t columns = n_ * static_cast<std::int64_t>(host.residual_value.size());
    report_.issued_flops =
        2.0 *
        (static_cast<double>(host.windows.back().group) * RsTile::kGroupColumns * host.window_rows *
             static_cast<double>(strips_ * strip_groups_) * variant_.features +
         static_cast<double>(columns));
    report_.metrics["blocks"] = static_cast<double>(blocks_) * strip_groups_;
    report_.metrics["split_parts"] = static_cast<double>(work.parts.size());
  }

  std::int64_t n_;
  bool overlap_;
  bool atomic_ = false;
  Variant variant_;
  int strips_ = 1;  // of a block
  unsigned strip_groups_ = 1;
  int warps_ = 1;
  unsigned blocks_ = 0;
  int value_bytes_ = 0;  // of shared memory per warp
  RsCut cut_;
  Buffer spans_, ranges_, parts_, windows_, row_bits_, bitmap_, col_id_, values_, row_ids_, sums_,
      arrivals_, residual_rows_, residual_cols_, residual_values_;
  rsh::Arguments arguments_{};
  PlanReport report_;
};

class Rsh final : public Kernel {
 public:
  const KernelInfo& info() const override { return info_; }

  Support supports(const Problem& problem, const DeviceInfo&) const override {
    constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
    if (problem.m() > kMost || problem.nnz() > kMost)
      return Support::no("M or nonzeros above 2^31 - 1");
    const auto value_bytes = static_cast<std::int64_t>(bytes_of(storage_type(problem.precision)));
    const std::int64_t most = kMaxGridY * kMaxWarps * kShortRow / value_bytes;
    if (problem.n > most) return Support::no(fmt::format("N above {}", most));
    // Windows of 8 rows that share no column: a column and an eighth of a bitmap per nonzero.
    return Support::yes(
        static_cast<std::size_t>(problem.nnz() * (5 + value_bytes) + problem.m() * 10));
  }

  std::unique_ptr<Plan> prepare(const Problem& problem, Device& device,
                                StageTimer& stages) const override {
    return std::make_unique<RshPlan>(problem, device, stages);
  }

 private:
  KernelInfo info_ = {
      .name = "rsh",
      .summary = "bitmap windows on tensor cores, short rows on CUDA cores, one launch",
      .source = "RSH-SpMM, arXiv 2603.08734",
      .precisions = {Precision::tf32, Precision::fp16, Precision::bf16},
      .accumulation = Accumulation::fp32_tensor_core,
      .writes_row_ids = true,
      .options = {{"window", "auto", "rows per window: 8, 16 or 32"},
                  {"order", "auto", "row order inside the format: natural or degree"},
                  {"rule", "overlap", "rows for the CUDA cores: printed or overlap"},
                  {"members", "collected", "rows of a window: collected or consecutive"},
                  {"tau_delta", "auto", "printed: most new, overlap: most shared columns"},
                  {"tau_nnz", "auto", "longest row for the CUDA cores, 0 to 32"},
                  {"strip", "auto", "bytes of a row of B per warp: 128 or 256 (32 rows: 128)"},
                  {"warps", "4", "warps per block, 1 to 4"},
                  {"span", "auto", "tiles per warp, 1 to 12"},
                  {"whole", "auto", "tiles up to which one warp keeps a window, 1 to 16"},
                  {"part", "auto", "most tiles per warp of a window that is cut, 1 to 16"},
                  {"reduce", "fixup", "split windows: fixup (fixed order) or atomic"}},
  };
};

SPMMBENCH_REGISTER_KERNEL(Rsh);

}  // namespace
}  // namespace spmmbench
