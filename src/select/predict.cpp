#include "select/predict.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>

#include "format/slot_streams.hpp"
#include "format/wcsr.hpp"
#include "select/bitmap_bytes.hpp"
#include "select/coefficients.hpp"
#include "select/dense_split.hpp"
#include "select/window_cost.hpp"
#include "select/window_cut.hpp"
#include "spmmbench/device.hpp"

namespace spmmbench {
namespace {

// bf16 has the coefficients of fp16: it moves the same bytes through the same units.
Precision fitted_precision(Precision precision) {
  return precision == Precision::bf16 ? Precision::fp16 : precision;
}

// One unit is 100 of them on each multiprocessor, so that all coefficients are of a similar size.
double per_sm(double count, const DeviceModel& device) { return count / device.sm_count / 100; }

struct WindowCut {   // of a window of mean length
  double parts = 0;  // CTAs that share it
  double depth = 0;  // tiles that each of their warps walks
};
struct WindowCost {
  double gather = 0, tiles = 0;  // as in Terms: gather_window, tiles
  WindowCut cut;
};
// The warps that an SM holds at each height of windows. Feature tiles of 64 bytes take fewer
// registers; those of 32 bytes, which hold a few warps more, count as these.
double resident_warps(std::size_t height, int value_bytes, double row_bytes) {
  constexpr std::array<double, 3> kNarrow = {36, 32, 20}, kOthers = {28, 20, 16};
  return (value_bytes == 2 && row_bytes <= window::kNarrowRow ? kNarrow : kOthers)[height];
}
// Windows longer than four warps may walk are cut, and their sums added: what choose_cut
// (kernels/window) does with windows of mean length. That it keeps short ones whole is not
// predicted.
WindowCut cut_of_window(double tiles, double windows, double warps_of_sm, double feature_tiles,
                        const DeviceModel& device) {
  constexpr int kWarps = 4;  // of a CTA
  const int most = window::cta_feature_tiles(kWarps, windows, feature_tiles, device.sm_count);
  const double groups = std::ceil(feature_tiles / most);
  const window::WindowWork work = {
      .tiles = tiles,
      .windows = windows,
      .feature_tiles = feature_tiles,
      .ctas_of_window = groups,
      .team = std::max(1, kWarps / static_cast<int>(std::ceil(feature_tiles / groups))),
      .sms = device.sm_count,
      .warps = device.sm_count * warps_of_sm};
  const window::PartTiles of_warp = window::part_tiles(work);
  const double of_window = work.mean_window();
  const bool is_split = of_window > work.team * of_warp.part;
  const double parts = is_split ? std::ceil(of_window / (work.team * of_warp.split)) : 1;
  return {parts, of_window / (work.team * parts)};
}

// Rows that are in windows: async_wcsr leaves out empty ones where they are many. One at least,
// since all rows of the sample may be empty.
double filled_rows(const MatrixFeatures& f) {
  return std::max(1.0, f.empty_rows < kLeastEmptyShare ? f.rows : f.rows * (1 - f.empty_rows));
}

// Shares of windows of `height` rows by those of the three measured heights: a straight line over
// the logarithm of the height between two of them. Beyond the highest the line goes on, but twice
// the rows share at most half of the columns.
double at_height(const std::array<double, 3>& shares, double height) {
  const double place = std::log2(height / kWcsrHeights[0]);  // 0, 1 and 2 at these heights
  const std::size_t i = place < 1 ? 0 : 1;
  const double share = shares[i] + (place - static_cast<double>(i)) * (shares[i + 1] - shares[i]);
  return std::max(share, shares[2] / 2);
}

// The shares of windows that hold rows with nonzeros only. Where half of the rows are empty, eight
// such rows have the columns of sixteen neighbours.
WcsrEstimate filled_windows(const MatrixFeatures& f) {
  const WcsrEstimate all = windows_of(f);
  const double apart = f.rows / filled_rows(f);
  WcsrEstimate out = all;
  for (std::size_t h = 0; h < kWcsrHeights.size() && apart > 1; ++h) {
    const double height = std::min(kWcsrHeights[h] * apart, 2.0 * kWcsrHeights.back());
    out.gathered_share[h] = std::min(all.gathered_share[h], at_height(all.gathered_share, height));
    out.stored_share[h] = std::max(
        out.gathered_share[h], std::min(all.stored_share[h], at_height(all.stored_share, height)));
  }
  return out;
}

constexpr double kSectorBytes = 32;

// Windows of the height that async_wcsr takes.
WindowCost best_windows(const MatrixFeatures& f, std::int64_t n, int value_bytes, double row_bytes,
                        const DeviceModel& device) {
  const window::FormatCost format = window::dense_box_cost(value_bytes);
  const auto h = static_cast<std::size_t>(
      window::best_height(windows_of(f), f.rows, n, value_bytes, format, device.sm_count).index);
  const WcsrEstimate windows = filled_windows(f);
  const double feature_tiles = std::ceil(row_bytes / 128);
  const double count = std::max(1.0, filled_rows(f) / kWcsrHeights[h]);
  const double stored_tiles = std::max(windows.stored_share[h] * f.nnz / 16, count);
  const double fetched = std::max(row_bytes, kSectorBytes);
  return {windows.gathered_share[h] * f.nnz * fetched / device.gather_bytes_per_us,
          per_sm(stored_tiles * feature_tiles, device) * format.gathers(n, value_bytes).penalty[h],
          cut_of_window(stored_tiles, count, resident_warps(h, value_bytes, row_bytes),
                        feature_tiles, device)};
}

// The share of so many bytes that the L2 cache cannot hold while other data streams through it.
double spilled(double bytes, const DeviceModel& device) {
  constexpr double kL2Share = 0.6;
  return std::max(0.0, 1 - kL2Share * device.l2_bytes / std::max(bytes, 1.0));
}

// The slots that gather_mma reads (format/slot_streams.hpp). All eight slots of a row in a chunk of
// columns are as long as the longest: with scattered nonzeros 1.42 deviations above their mean,
// which is what the largest of eight normal numbers is on average. Groups of four add half of
// three.
double slots_of(const MatrixFeatures& f) {
  constexpr double kLongest = 1.42, kGroupEnd = (SlotStreams::kGroupQuads - 1) / 2.0;
  const auto chunks = static_cast<double>(SlotStreams::chunks(static_cast<std::int64_t>(f.cols)));
  const double slots = std::max(1.0, f.rows * chunks * SlotStreams::kOctet);
  const double mean = f.nnz / slots;
  return slots * (mean + kLongest * std::sqrt(mean) + kGroupEnd);
}

// The bytes of values and gaps in gap_slices (format/gap_slices.hpp), where nonzeros lie at random.
// Wherever the widest gap goes by without a nonzero, a zero is stored before the next one.
double gap_bytes(const MatrixFeatures& f) {
  constexpr double kValueBytes = 2, kLeastShare = 1e-9;  // so that nothing is divided by 0
  const double empty = 1 - f.nnz / std::max(1.0, f.rows * f.cols);
  const auto of_bits = [&](double bits) {
    const double widest = std::exp2(bits) - 1;
    const double share_of_nonzeros = std::max(1 - std::pow(empty, widest), kLeastShare);
    return f.nnz / share_of_nonzeros * (kValueBytes + bits / 8);
  };
  return std::min(of_bits(4), of_bits(8));
}

// Whether kernels that can search for a row order do so on this matrix.
bool searches_order(const MatrixFeatures& f, std::int64_t n, Precision precision) {
  const auto value_bytes = static_cast<int>(bytes_of(storage_type(precision)));
  return window::worth_order(windows_of(f), f.rows, f.cols, f.nnz, n, value_bytes,
                             window::dense_box_cost(value_bytes));
}

// Thousands of columns of A that the busiest multiprocessor walks, one after the other, for its
// tiles of C. Where at most a quarter of the multiprocessors has a tile, cuBLAS splits the columns
// beyond 2304: 512 rows take 4.9 us at 2048 columns and 6.0 at 4608 (H200, N = 64, fp16).
double dense_depth(const MatrixFeatures& f, double tiles_of_c, const DeviceModel& device) {
  constexpr double kFew = 0.25, kUnsplit = 2304, kSplit = 3;
  double columns = f.cols;
  if (tiles_of_c <= kFew * device.sm_count)
    columns = std::min(columns, kUnsplit) + std::max(0.0, columns - kUnsplit) / kSplit;
  return std::ceil(tiles_of_c / device.sm_count) * columns / 1000;
}

// What is left of the gathers in natural order once rows are reordered. Windows of 8 rows then
// gather the fewer rows of B per nonzero the more of a row's columns similar rows have, less
// clearly where rows differ in length. The constants lose least on matrices that were left out of
// the fit (docs/decisions/selection-model.md).
double left_by_order(const MatrixFeatures& f) {
  constexpr double kGain = 1.25, kLeastShare = 0.35;
  if (f.gathered_8 == 0) return 1;
  const double overlap = f.row_overlap / std::max(1.0, f.cv_row);
  return std::min(f.gathered_8, std::max(kLeastShare, 1 - kGain * overlap)) / f.gathered_8;
}

template <class T>
struct Term {
  const char* name;
  double T::*value;
};

// The members of Terms and PrepareTerms, in the order of the table's columns.
constexpr Term<Terms> kTerms[] = {
    {"launch", &Terms::launch},
    {"a_csr", &Terms::a_csr},
    {"b", &Terms::b},
    {"c", &Terms::c},
    {"spill", &Terms::spill},
    {"gather_rows", &Terms::gather_rows},
    {"gather_distinct", &Terms::gather_distinct},
    {"gather_spill", &Terms::gather_spill},
    {"gather_window", &Terms::gather_window},
    {"tiles", &Terms::tiles},
    {"window_parts", &Terms::window_parts},
    {"window_depth", &Terms::window_depth},
    {"nonzeros", &Terms::nonzeros},
    {"loads", &Terms::loads},
    {"rows", &Terms::rows},
    {"filled_rows", &Terms::filled_rows},
    {"longest_row", &Terms::longest_row},
    {"variation", &Terms::variation},
    {"uneven_rows", &Terms::uneven_rows},
    {"mean_row", &Terms::mean_row},
    {"dense_flops", &Terms::dense_flops},
    {"dense_a", &Terms::dense_a},
    {"dense_spill", &Terms::dense_spill},
    {"dense_depth", &Terms::dense_depth},
    {"dense_odd", &Terms::dense_odd},
    {"dense_a_odd", &Terms::dense_a_odd},
    {"block_steps", &Terms::block_steps},
    {"block_spill", &Terms::block_spill},
    {"positions", &Terms::positions},
    {"bitmap_spill", &Terms::bitmap_spill},
    {"slots", &Terms::slots},
    {"slot_groups", &Terms::slot_groups},
    {"slot_passes", &Terms::slot_passes},
    {"packed", &Terms::packed},
    {"packed_spill", &Terms::packed_spill},
    {"cluster_us", &Terms::cluster_us},
    {"cluster_copies", &Terms::cluster_copies},
    {"gaps", &Terms::gaps},
    {"gap_spill", &Terms::gap_spill},
    {"ordered_gather", &Terms::ordered_gather},
    {"ordered_tiles", &Terms::ordered_tiles},
    {"scattered", &Terms::scattered},
    {"ordered_rows", &Terms::ordered_rows},
    {"ordered_scattered", &Terms::ordered_scattered},
};
constexpr Term<PrepareTerms> kPrepareTerms[] = {
    {"constant", &PrepareTerms::constant},
    {"nonzeros", &PrepareTerms::nonzeros},
    {"rows", &PrepareTerms::rows},
    {"entries", &PrepareTerms::entries},
    {"stored", &PrepareTerms::stored},
    {"search", &PrepareTerms::search},
    {"search_nonzeros", &PrepareTerms::search_nonzeros},
    {"search_rows", &PrepareTerms::search_rows},
};
static_assert(sizeof(Terms) == std::size(kTerms) * sizeof(double));
static_assert(sizeof(PrepareTerms) == std::size(kPrepareTerms) * sizeof(double));

// The terms times their factors, added up. Terms and table differ in length after a term was added
// or removed, until scripts/fit_selection.py has asked this build for the terms and written the
// table again. A host test fails until then.
template <class T, std::size_t kCount, std::size_t kFactors>
double weighted_sum(const T& terms, const Term<T> (&named)[kCount],
                    const std::array<double, kFactors>& factors) {
  double sum = 0;
  for (std::size_t i = 0; i < std::min(kCount, kFactors); ++i)
    sum += terms.*named[i].value * factors[i];
  return sum;
}

template <class T, std::size_t kCount>
std::vector<std::pair<std::string, double>> with_names(const T& terms,
                                                       const Term<T> (&named)[kCount]) {
  std::vector<std::pair<std::string, double>> out;
  out.reserve(kCount);
  for (const Term<T>& term : named) out.emplace_back(term.name, terms.*term.value);
  return out;
}

// What terms are made of.
struct Product {
  Product(const MatrixFeatures& features, std::int64_t n_columns, Layout layout_of_b,
          Precision of_values, const DeviceModel& model)
      : f(features), n(n_columns), layout(layout_of_b), precision(of_values), device(model) {}

  const MatrixFeatures& f;
  std::int64_t n;
  Layout layout;
  Precision precision;
  const DeviceModel& device;
  double columns = static_cast<double>(n);
  double value_bytes = static_cast<double>(bytes_of(storage_type(precision)));
  double row_bytes = static_cast<double>(  // of B
      make_b_view(1, n, Layout::row_major, storage_type(precision)).bytes());
  double b_bytes = f.cols * row_bytes, c_bytes = f.rows * columns * 4;
  double entries = f.rows * f.cols;  // zeros included
  double memory = device.memory_bytes_per_us;

  // A in a format of so many bytes: the time for the part of it that every launch reads from
  // memory, because the L2 cache cannot hold A, B and C.
  double spill(double bytes) const {
    return bytes * spilled(bytes + b_bytes + c_bytes, device) / memory;
  }
};

constexpr double kTileOfC = 128;  // rows and columns of one in a dense product

// Rows of CSR and the rows of B that their nonzeros gather. What can grow without bound is capped.
void csr_terms(const Product& p, Terms& t) {
  constexpr double kPieceBytes = 256, kLoadBytes = 16;
  constexpr double kMostOfRow = 4000, kMostOfMeanRow = 256;           // nonzeros
  constexpr double kMostVariation = 3, kMostUnevenVariation = 2;      // deviation / mean
  constexpr double kNonzerosOfLongest = 1000, kNonzerosOfMean = 100;  // of one unit of the term
  const MatrixFeatures& f = p.f;
  const double gathered = f.nnz * std::ceil(p.row_bytes / kSectorBytes) * kSectorBytes;
  const double pieces = std::ceil(p.row_bytes / kPieceBytes);
  const double csr_bytes = f.nnz * (4 + p.value_bytes) + f.rows * 8;
  t.a_csr = csr_bytes / p.memory;
  t.b = p.b_bytes / p.memory;
  t.c = p.c_bytes / p.memory;
  const double all_bytes = csr_bytes + p.b_bytes + p.c_bytes;
  t.spill = all_bytes * spilled(all_bytes, p.device) / p.memory;
  t.gather_rows = gathered / p.device.gather_bytes_per_us;
  t.gather_distinct = t.gather_rows * f.gathered_8;
  t.gather_spill = gathered * spilled(p.b_bytes, p.device) / p.memory;
  t.nonzeros = per_sm(f.nnz * pieces, p.device);
  t.loads = per_sm(f.nnz * std::ceil(p.row_bytes / kLoadBytes), p.device);
  t.rows = per_sm(f.rows * pieces, p.device);
  t.filled_rows = per_sm(filled_rows(f) * pieces, p.device);
  t.longest_row = std::min(f.max_row, kMostOfRow) / kNonzerosOfLongest;
  t.variation = std::min(f.cv_row, kMostVariation);
  t.uneven_rows = t.gather_rows * std::min(f.cv_row, kMostUnevenVariation);
  t.mean_row = std::min(f.mean_row, kMostOfMeanRow) / kNonzerosOfMean;
}

void window_terms(const WindowCost& windows, Terms& t) {
  constexpr double kParts = 10, kDepth = 10;  // of one unit of the term
  t.gather_window = windows.gather;
  t.tiles = windows.tiles;
  t.window_parts = (windows.cut.parts - 1) / kParts;
  t.window_depth = windows.cut.depth / kDepth;
}

// All of A, and its blocks of 128 x 64.
void dense_terms(const Product& p, Terms& t) {
  constexpr double kBlockColumns = 64, kLoadBytes = 16;
  const MatrixFeatures& f = p.f;
  const double tiles_of_c = std::ceil(f.rows / kTileOfC) * std::ceil(p.columns / kTileOfC);
  const double dense_bytes = p.entries * p.value_bytes;
  const double block_bytes =
      std::ceil(f.rows / kTileOfC) * kTileOfC * f.band_blocks * kBlockColumns * p.value_bytes;
  // With lines that begin between two pieces of 16 bytes cuBLAS has narrower loads.
  const double aligned = kLoadBytes / p.value_bytes;
  const bool odd = std::fmod(p.columns, aligned) != 0 || std::fmod(f.cols, aligned) != 0;
  t.dense_flops = 2 * p.entries * p.columns / p.device.dense_flops_per_us;
  t.dense_a = dense_bytes / p.memory;
  t.dense_spill = p.spill(dense_bytes);
  t.dense_depth = dense_depth(f, tiles_of_c, p.device);
  t.dense_odd = odd ? t.dense_depth : 0;
  t.dense_a_odd = odd ? t.dense_a : 0;
  t.block_steps = std::ceil(std::ceil(f.rows / kTileOfC) * std::ceil(p.columns / (2 * kTileOfC)) /
                            p.device.sm_count) *
                  f.band_blocks;
  t.block_spill = p.spill(block_bytes);
  // A matrix of one column is the same in both layouts.
  const Layout layout_b = p.n == 1 ? Layout::col_major : p.layout;
  const auto m = static_cast<std::int64_t>(f.rows), k = static_cast<std::int64_t>(f.cols);
  const dense_cluster::Split split =
      dense_cluster::choose_split(m, k, p.n, layout_b, static_cast<int>(p.device.sm_count));
  t.cluster_us = split.us;
  t.cluster_copies =
      dense_cluster::copied_bytes(m, k, p.n, layout_b, split) / p.device.gather_bytes_per_us;
}

// Formats for pruned weights: bits, slots, pairs of four, gaps.
void packed_terms(const Product& p, Terms& t) {
  constexpr double kBitmapColumns = 256;                   // that bitmap_dense multiplies at once
  constexpr double kPositions = 1e6, kSlotsOfUnit = 1000;  // of one unit of the term
  const MatrixFeatures& f = p.f;
  const double packed_bytes = p.entries * (p.value_bytes / 2 + 1.0 / 8);  // an index: two bits
  const double groups = p.n <= 8 ? 1 : 2;  // of 8 columns that gather_mma multiplies at once
  const double passes = std::ceil(p.columns / (8 * groups));
  const double slots = slots_of(f) * passes;
  t.positions = p.entries * std::ceil(p.columns / kBitmapColumns) / p.device.sm_count / kPositions;
  t.bitmap_spill = p.spill(bitmap_dense::bytes_of(p.entries, f.nnz / std::max(1.0, p.entries),
                                                  p.columns, p.device.l2_bytes));
  t.slots = per_sm(slots, p.device) / kSlotsOfUnit;
  t.slot_groups = t.slots * groups;
  t.slot_passes = passes;
  t.packed = packed_bytes / p.memory;
  t.packed_spill = p.spill(packed_bytes);
  t.gaps = gap_bytes(f) / p.memory;
  t.gap_spill = p.spill(gap_bytes(f));
}

// What a row order leaves of the gathers. After csr_terms.
void ordered_terms(const Product& p, const WindowCost& windows, Terms& t) {
  const double left = left_by_order(p.f);
  const double left_in_windows = searches_order(p.f, p.n, p.precision) ? left : 1;
  t.ordered_gather = left_in_windows * windows.gather;
  t.ordered_tiles = left_in_windows * windows.tiles;
  t.scattered = p.f.gathered_32;
  t.ordered_rows = left * t.gather_rows;
  t.ordered_scattered = left * t.scattered;
}

}  // namespace

// two_four takes 2:4 structured sparsity alone, and asking it would read the whole matrix. Sliced
// ELLPACK stores every row as long as the longest of 32. Where rows overlap less than this, an
// order of them rarely gains, except for windows of rows that differ in length
// (docs/decisions/selection-model.md).
Standing standing_of(std::string_view kernel, const MatrixFeatures& f, std::int64_t n) {
  constexpr double kAlikeRows = 0.5, kLeastRowOverlap = 0.02, kOfRandomRows = 2;
  constexpr double kLeastScattered = 0.3;  // gathered_32; where it is less, neighbours share enough
  const auto full_if = [](bool holds, Standing otherwise = Standing::left_out) {
    return holds ? Standing::full : otherwise;
  };
  if (kernel == "two_four") return full_if(f.most_of_four <= kMostOfTwoFour);
  if (kernel == "async_bcsr") return full_if(f.block_fill >= kLeastBlockFill);
  if (kernel == "cusparse_spmv_sell") return full_if(f.cv_row <= kAlikeRows);
  const bool overlap =  // random rows share mean_row / cols of their columns
      f.row_overlap >= kLeastRowOverlap + kOfRandomRows * f.mean_row / f.cols;
  if (kernel == kWindowsSearch) return full_if(f.cv_row > kAlikeRows || overlap, Standing::trial);
  if (kernel == kSlicesSearch) {
    const bool reorders =
        f.gathered_32 >= kLeastScattered && (n > 1 || f.mean_row >= kLeastOrderedRow);
    return reorders ? full_if(overlap, Standing::trial) : Standing::left_out;
  }
  return Standing::full;
}

Terms terms_of(const MatrixFeatures& f, std::int64_t n, Layout layout, Precision precision,
               const DeviceModel& device) {
  const Product product(f, n, layout, precision, device);
  const WindowCost windows = best_windows(f, n, static_cast<int>(bytes_of(storage_type(precision))),
                                          product.row_bytes, device);
  Terms t;
  csr_terms(product, t);
  window_terms(windows, t);
  dense_terms(product, t);
  packed_terms(product, t);
  ordered_terms(product, windows, t);
  return t;
}

PrepareTerms prepare_terms_of(const MatrixFeatures& f, std::int64_t n, Precision precision) {
  PrepareTerms t;
  t.nonzeros = f.nnz * 1e-6;
  t.rows = f.rows * 1e-6;
  t.entries = f.rows * f.cols * 1e-6;
  if (f.block_fill > 0) t.stored = t.nonzeros / f.block_fill;
  if (searches_order(f, n, precision)) {
    t.search = 1;
    t.search_nonzeros = t.nonzeros;
    t.search_rows = t.rows;
  }
  return t;
}

std::vector<std::pair<std::string, double>> named_terms(const Terms& terms) {
  return with_names(terms, kTerms);
}
std::vector<std::pair<std::string, double>> named_terms(const PrepareTerms& terms) {
  return with_names(terms, kPrepareTerms);
}

std::vector<Candidate> predict(const MatrixFeatures& features, std::int64_t n, Layout layout,
                               Precision precision, const DeviceModel& device) {
  const Terms us_terms = terms_of(features, n, layout, precision, device);
  const PrepareTerms prepare_terms = prepare_terms_of(features, n, precision);
  std::vector<Candidate> out;
  for (const Coefficients& row : kCoefficients) {
    if (row.precision != fitted_precision(precision) || n < row.least_n || n > row.most_n) continue;
    const Standing standing = standing_of(row.candidate, features, n);
    if (standing == Standing::left_out) continue;
    Prediction one;
    one.us = weighted_sum(us_terms, kTerms, row.us);
    one.prepare_ms = weighted_sum(prepare_terms, kPrepareTerms, row.prepare_ms);
    one.rank_us = one.us * row.margin;
    out.push_back({row.candidate, one, standing});
  }
  return out;
}

}  // namespace spmmbench
