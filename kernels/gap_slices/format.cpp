#include "gap_slices/format.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/row_lengths.hpp"
#include "format/nonzeros.hpp"
#include "spmmbench/registry.hpp"

namespace spmmbench::gap_slices {
namespace {

using Shape = GapSlices::Shape;

// Visits the entries of one lane in a row, from left to right: visit(column, entry of `matrix`). On
// the way to a nonzero that is farther than the widest gap the entry is -1, a zero.
template <class Visit>
void for_lane(const CsrMatrix& matrix, const GapSlices& format, std::int64_t row, int lane,
              Visit&& visit) {
  const std::int64_t first = lane % format.shape.row_lanes * format.part_cols;
  const auto begin = matrix.col_idx.begin();
  const auto row_end = begin + matrix.row_ptr[row + 1];
  const int most = format.shape.most_gap();
  std::int64_t at = format.first_column(lane);
  for (auto it = std::lower_bound(begin + matrix.row_ptr[row], row_end, first);
       it != row_end && *it < first + format.part_cols; ++it) {
    for (; *it - at > most; at += most) visit(at + most, std::int64_t{-1});
    at = *it;
    visit(at, it - begin);
  }
}

// How many entries the lanes of all rows have, at gaps of 4 and of 8 bits.
std::array<std::int64_t, 2> count_entries(const CsrMatrix& matrix) {
  std::int64_t zeros_4 = 0, zeros_8 = 0;
#pragma omp parallel for schedule(static) reduction(+ : zeros_4, zeros_8)
  for (std::int64_t row = 0; row < matrix.rows; ++row) {
    std::int32_t at = 0;
    for (std::int64_t e = matrix.row_ptr[row]; e < matrix.row_ptr[row + 1]; ++e) {
      const std::int32_t gap = matrix.col_idx[e] - at;
      if (gap > Shape{.gap_bits = 4}.most_gap()) {
        zeros_4 += (gap - 1) / Shape{.gap_bits = 4}.most_gap();
        zeros_8 += (gap - 1) / Shape{.gap_bits = 8}.most_gap();
      }
      at = matrix.col_idx[e];
    }
  }
  return {matrix.nnz() + zeros_4, matrix.nnz() + zeros_8};
}

// Columns of a lane. Elements of B lie in 32 banks of shared memory, two in a word. Where rows are
// regular (2:4 structured sparsity) all lanes move on alike, and so the lanes of a row begin evenly
// spread over the banks.
std::int64_t columns_of_lane(std::int64_t cols, int row_lanes) {
  constexpr std::int64_t kBankColumns = 64;  // after which banks repeat
  const std::int64_t even = (cols + row_lanes - 1) / row_lanes;
  if (row_lanes == 1) return even;
  const std::int64_t apart = kBankColumns / row_lanes;  // or an odd multiple of it
  return (even + apart - 1) / (2 * apart) * 2 * apart + apart;
}

// Groups of the longest lane of every row. Zeros on the way are counted, not visited: on matrices
// with few nonzeros, which are only inspected, they are many.
std::vector<std::int32_t> groups_of_rows(const CsrMatrix& matrix, const GapSlices& format) {
  const std::int64_t most_gap = format.shape.most_gap();
  std::vector<std::int32_t> groups(matrix.rows);
#pragma omp parallel for schedule(dynamic, 64)
  for (std::int64_t row = 0; row < matrix.rows; ++row) {
    std::int64_t longest = 0, entries = 0, at = 0, part_end = 0;
    for (std::int64_t e = matrix.row_ptr[row]; e < matrix.row_ptr[row + 1]; ++e) {
      const std::int64_t column = matrix.col_idx[e];
      if (column >= part_end) {
        const std::int64_t part = column / format.part_cols;
        at = format.first_column(static_cast<int>(part));
        part_end = (part + 1) * format.part_cols;
        entries = 0;
      }
      entries += 1 + std::max<std::int64_t>(column - at - 1, 0) / most_gap;
      at = column;
      longest = std::max(longest, entries);
    }
    groups[row] = static_cast<std::int32_t>((longest + GapSlices::kGroup - 1) / GapSlices::kGroup);
  }
  return groups;
}

// Rows by falling number of groups.
std::vector<std::int32_t> sorted_rows(const std::vector<std::int32_t>& groups) {
  std::vector<std::int32_t> order(groups.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, std::greater{}, [&](std::int32_t row) { return groups[row]; });
  return order;
}

void cut_into_slices(GapSlices& out, const std::vector<std::int32_t>& groups) {
  out.slice_rows = sorted_rows(groups);
  out.slice_ptr = {0};
  for (std::int64_t first = 0; first < out.rows; first += out.shape.rows())
    out.slice_ptr.push_back(out.slice_ptr.back() + groups[out.slice_rows[first]]);
  out.slice_rows.resize(out.slices() * out.shape.rows(), -1);
}

// `longest`: groups of the first slice.
FormatStats stats_from(const Shape& shape, std::int64_t nnz, std::int64_t slices,
                       std::int64_t groups, std::int64_t longest) {
  FormatStats out;
  out.name = "gap_slices";
  out.stored = groups * GapSlices::kLanes * GapSlices::kGroup;
  out.index_bytes = out.stored * shape.gap_bits / 8;
  out.bytes = out.index_bytes + out.stored * shape.value_bits / 8;
  out.windows = slices;
  out.extra["gap_bits"] = shape.gap_bits;
  out.extra["row_lanes"] = shape.row_lanes;
  if (groups == 0) return out;
  out.fill = static_cast<double>(nnz) / static_cast<double>(out.stored);
  out.nnz_per_window = static_cast<double>(nnz) / static_cast<double>(slices);
  out.window_imbalance =
      static_cast<double>(longest) * static_cast<double>(slices) / static_cast<double>(groups);
  return out;
}

// Deals slices to `blocks`, each of which takes the next ones until it has its share.
void deal_slices(GapSlices& out, std::int64_t blocks) {
  const std::int64_t most = GapSlices::kMostBlockRows / out.shape.rows();
  out.block_ptr = {0};
  for (std::int64_t s = 0; s < out.slices(); ++s) {
    const std::int64_t begun = std::ssize(out.block_ptr);  // blocks, this one included
    const std::int64_t middle = std::int64_t{out.slice_ptr[s]} + out.slice_ptr[s + 1];
    const bool has_share = middle * blocks > 2 * out.groups() * begun;
    if (s > out.block_ptr.back() && (has_share || s - out.block_ptr.back() == most))
      out.block_ptr.push_back(static_cast<std::int32_t>(s));
  }
  if (out.slices() > 0) out.block_ptr.push_back(static_cast<std::int32_t>(out.slices()));
}

void cut_into_ranges(GapSlices& out) {
  out.slice_warps.resize(out.slices());
  for (std::size_t block = 0; block + 1 < out.block_ptr.size(); ++block) {
    std::int32_t slice = out.block_ptr[block];
    const std::int64_t begin = out.slice_ptr[slice];
    const std::int64_t groups = out.slice_ptr[out.block_ptr[block + 1]] - begin;
    for (int warp = 0; warp < out.warps; ++warp) {
      const auto first = static_cast<std::int32_t>(begin + groups * warp / out.warps);
      const auto end = static_cast<std::int32_t>(begin + groups * (warp + 1) / out.warps);
      if (first < end)
        while (out.slice_ptr[slice + 1] <= first) ++slice;
      out.ranges.push_back({first, end - first, slice});
      for (std::int32_t s = slice; first < end && out.slice_ptr[s] < end; ++s) {
        GapSlices::Warps& of_slice = out.slice_warps[s];
        if (of_slice.end == 0) of_slice.first = static_cast<std::int16_t>(warp);
        of_slice.end = static_cast<std::int16_t>(warp + 1);
      }
    }
  }
}

// Writes one slice to `words`, which are zero.
void fill_slice(const CsrMatrix& matrix, const GapSlices& format, std::int64_t slice,
                std::vector<std::uint32_t>& words) {
  const Shape& shape = format.shape;
  const auto first = words.begin() + format.slice_ptr[slice] * shape.group_words();
  for (int lane = 0; lane < GapSlices::kLanes; ++lane) {
    const std::int32_t row = format.slice_rows[slice * shape.rows() + lane / shape.row_lanes];
    if (row < 0) continue;
    std::int64_t at = format.first_column(lane), entry = 0;
    for_lane(matrix, format, row, lane, [&](std::int64_t column, std::int64_t e) {
      const auto group = first + entry / GapSlices::kGroup * shape.group_words();
      const auto place = static_cast<int>(entry++ % GapSlices::kGroup);
      group[GapSlices::gap_word(shape, lane, place)] |= static_cast<std::uint32_t>(column - at)
                                                        << GapSlices::gap_shift(shape, place);
      if (e >= 0)
        group[GapSlices::value_word(shape, lane, place)] |= encode(format.type, matrix.values[e])
                                                            << GapSlices::value_shift(shape, place);
      at = column;
    });
  }
}

std::int64_t gap_at(const GapSlices& format, std::int64_t group, int lane, int place) {
  const std::uint32_t word = format.words[group * format.shape.group_words() +
                                          GapSlices::gap_word(format.shape, lane, place)];
  return word >> GapSlices::gap_shift(format.shape, place) & format.shape.most_gap();
}

// Where the lanes of a range begin: in the middle of a slice, after the groups before.
void find_starts(GapSlices& format, std::int64_t range) {
  const GapSlices::Range& of_warp = format.ranges[range];
  for (int lane = 0; lane < GapSlices::kLanes; ++lane) {
    std::int64_t column = format.first_column(lane);
    if (of_warp.groups > 0)
      for (std::int64_t g = format.slice_ptr[of_warp.first_slice]; g < of_warp.first_group; ++g)
        for (int place = 0; place < GapSlices::kGroup; ++place)
          column += gap_at(format, g, lane, place);
    format.starts[range * GapSlices::kLanes + lane] = static_cast<std::int32_t>(column);
  }
}

}  // namespace

GapSlices::RowLanes GapSlices::choose_row_lanes(const Counts& counts, int blocks) {
  constexpr double kLongest = 2.07;  // deviations by which the largest of 32 normal numbers exceeds
  constexpr double kGroupEnd = (kGroup - 1) / 2.0;  // zeros at the end of a lane, mean
  if (counts.nnz == 0) return {};
  const auto rows = static_cast<double>(counts.rows), nnz = static_cast<double>(counts.nnz);
  const double share = nnz / (rows * static_cast<double>(counts.cols));
  const auto of_longest_row = static_cast<double>(counts.longest_row);
  RowLanes best = {.times = std::numeric_limits<double>::infinity()};
  for (int row_lanes = 1; row_lanes <= kLanes; row_lanes *= 2) {
    // The most that a block has to do over the mean: whole slices, of which one may be long.
    const double slices = std::ceil(rows * row_lanes / kLanes);
    const double uneven = std::max(std::ceil(slices / blocks) * blocks / slices,
                                   kLanes * of_longest_row / row_lanes * blocks / nnz);
    // Rows are sorted, so lanes of one slice differ by chance only where a row has several.
    const double entries = nnz / (rows * row_lanes);
    const double longest = row_lanes == 1 ? 0 : kLongest * std::sqrt(entries * (1 - share));
    // A root, since blocks with more to do have the memory for themselves when others have ended:
    // of the powers tried the one that chose best (docs/decisions/scattered-weights.md).
    const double stored = std::max(double{kGroup}, entries + longest + kGroupEnd);
    const double times = std::cbrt(uneven) * stored / entries;
    if (times < best.times) best = {row_lanes, times};
  }
  return best;
}

GapSlices::Shape GapSlices::choose(const Counts& counts, int blocks, int value_bits) {
  const bool narrow = counts.entries_4 * (value_bits + 4) <= counts.entries_8 * (value_bits + 8);
  return {choose_row_lanes(counts, blocks).count, narrow ? 4 : 8, value_bits};
}

GapSlices::Counts GapSlices::count(const CsrMatrix& matrix) {
  const auto [entries_4, entries_8] = count_entries(matrix);
  return {matrix.rows, matrix.cols, matrix.nnz(), longest_row(matrix), entries_4, entries_8};
}

GapSlices GapSlices::header_of(std::int64_t rows, std::int64_t cols, std::int64_t nnz,
                               const Shape& shape) {
  GapSlices out;
  out.rows = rows;
  out.cols = cols;
  out.nnz = nnz;
  out.shape = shape;
  out.part_cols = columns_of_lane(cols, shape.row_lanes);
  return out;
}

void GapSlices::deal(int blocks) {
  deal_slices(*this, blocks);
  cut_into_ranges(*this);
}

GapSlices GapSlices::build(const CsrMatrix& matrix, ElementType type, const Shape& shape,
                           int blocks, int warps) {
  GapSlices out = header_of(matrix.rows, matrix.cols, matrix.nnz(), shape);
  out.type = type;
  out.warps = warps;
  cut_into_slices(out, groups_of_rows(matrix, out));
  out.deal(blocks);
  out.words.resize(out.groups() * shape.group_words());
  const std::int64_t slices = out.slices();
#pragma omp parallel for schedule(dynamic, 4)
  for (std::int64_t slice = 0; slice < slices; ++slice) fill_slice(matrix, out, slice, out.words);
  out.starts.resize(out.ranges.size() * kLanes);
#pragma omp parallel for schedule(dynamic, 4)
  for (std::int64_t range = 0; range < std::ssize(out.ranges); ++range) find_starts(out, range);
  return out;
}

CsrMatrix GapSlices::unpack() const {
  std::vector<Nonzero> all;
  for (std::int64_t r = 0; r < std::ssize(ranges); ++r)
    for (int lane = 0; lane < kLanes; ++lane) {
      std::int64_t column = starts[r * kLanes + lane], slice = ranges[r].first_slice;
      const std::int64_t first = ranges[r].first_group;
      for (std::int64_t group = first; group < first + ranges[r].groups; ++group) {
        for (; slice_ptr[slice + 1] <= group; ++slice) column = first_column(lane);
        for (int place = 0; place < kGroup; ++place) {
          column += gap_at(*this, group, lane, place);
          const std::uint32_t word =
              words[group * shape.group_words() + value_word(shape, lane, place)];
          const std::uint32_t mask = (1U << shape.value_bits) - 1;
          const float value = decode(type, word >> value_shift(shape, place) & mask);
          if (value != 0)
            all.push_back({slice_rows[slice * shape.rows() + lane / shape.row_lanes],
                           static_cast<std::int32_t>(column), value});
        }
      }
    }
  return csr_of(rows, cols, std::move(all));
}

FormatStats GapSlices::stats() const {
  return stats_from(shape, nnz, slices(), groups(), slices() > 0 ? slice_ptr[1] : 0);
}

FormatStats GapSlices::stats_of(const CsrMatrix& matrix, const Shape& shape) {
  const std::vector<std::int32_t> groups =
      groups_of_rows(matrix, header_of(matrix.rows, matrix.cols, matrix.nnz(), shape));
  const std::vector<std::int32_t> order = sorted_rows(groups);
  std::int64_t slices = 0, total = 0;
  for (std::int64_t first = 0; first < matrix.rows; first += shape.rows(), ++slices)
    total += groups[order[first]];
  return stats_from(shape, matrix.nnz(), slices, total, slices > 0 ? groups[order[0]] : 0);
}

namespace {

class GapSlicesFormat final : public Format {
 public:
  std::string name() const override { return "gap_slices"; }
  std::string summary() const override {
    return "values and the gaps between their columns, a row for each lane of a warp (gap_slices)";
  }
  FormatStats analyze(const CsrMatrix& matrix, const Options& /*options*/) const override {
    return GapSlices::stats_of(matrix, GapSlices::choose(GapSlices::count(matrix), 1));
  }
};

SPMMBENCH_REGISTER_FORMAT(GapSlicesFormat);

}  // namespace
}  // namespace spmmbench::gap_slices
