#include "jagged_slices/format.hpp"

#include <algorithm>
#include <iterator>

#include "core/worth_threads.hpp"

namespace spmmbench::jagged {
namespace {

using Slice = JaggedSlices::Slice;

// What a slice's row was made of.
struct Source {
  std::int64_t begin;
  std::int32_t length;
};

class Builder {
 public:
  Builder(const CsrMatrix& a, std::span<const std::int32_t> row_order,
          std::span<const std::int32_t> row_ids, JaggedSlices& out)
      : a_(a),
        row_order_(row_order),
        row_ids_(row_ids),
        out_(out),
        log2_slice_(out.shape.log2_places()) {}

  void build() {
    sort_by_places();
    for (const std::int32_t row : too_long_) share_teams(row);
    for (int log2 = log2_slice_; log2 >= 0; --log2) share_slices(rows_of_[log2], log2);
    out_.row_lengths.resize(sources_.size());
    std::transform(sources_.begin(), sources_.end(), out_.row_lengths.begin(),
                   [](const Source& s) { return static_cast<std::uint16_t>(s.length); });
    fill();
  }

 private:
  void sort_by_places() {
    rows_of_.resize(log2_slice_ + 1);
    const std::int64_t rows = row_order_.empty() ? a_.rows : std::ssize(row_order_);
    for (std::int64_t place = 0; place < rows; ++place) {
      const std::int64_t row = row_order_.empty() ? place : row_order_[place];
      const std::int64_t length = a_.row_length(row);
      (out_.shape.is_too_long(length) ? too_long_ : rows_of_[out_.shape.log2_places_of(length)])
          .push_back(static_cast<std::int32_t>(row));
    }
  }

  std::int32_t target(std::int32_t row) const { return row_ids_.empty() ? row : row_ids_[row]; }

  void add_slice(std::int64_t entries, std::int64_t steps, int log2_places, std::int32_t target) {
    out_.slices.push_back({.first_entry = static_cast<std::uint64_t>(entries_),
                           .steps = static_cast<std::uint64_t>(steps),
                           .log2_places = static_cast<std::uint64_t>(log2_places),
                           .packed = 0,
                           .first_row = static_cast<std::int32_t>(sources_.size()),
                           .target = target});
    entries_ += entries;
  }

  void share_teams(std::int32_t row) {
    constexpr std::int64_t kTeam = JaggedShape::kTeam;
    const std::int64_t length = a_.row_length(row);
    const std::int64_t parts = out_.shape.parts_of(length);
    const auto first = static_cast<std::int32_t>(out_.part_of.size());
    for (std::int64_t slice = 0; slice < parts * kTeam; ++slice) {
      const std::int64_t begin = length * slice / (parts * kTeam);
      const std::int64_t end = length * (slice + 1) / (parts * kTeam);
      const auto part = first + static_cast<std::int32_t>(slice / kTeam);
      add_slice(end - begin, JaggedShape::steps_of(end - begin, log2_slice_), log2_slice_,
                Slice::kListed - 1 - part);
      sources_.push_back({a_.row_ptr[row] + begin, static_cast<std::int32_t>(end - begin)});
      out_.row_ids.push_back(-1);
    }
    out_.part_of.insert(out_.part_of.end(), parts,
                        static_cast<std::int32_t>(out_.long_rows.size()));
    out_.long_rows.push_back({target(row), first, static_cast<std::int32_t>(parts)});
  }

  void share_slices(const std::vector<std::int32_t>& rows, int log2_places) {
    const std::size_t per_slice = std::size_t{1} << (log2_slice_ - log2_places);
    for (std::size_t first = 0; first < rows.size(); first += per_slice) {
      const std::size_t count = std::min(per_slice, rows.size() - first);
      std::int64_t entries = 0, longest = 0;
      bool consecutive = count == per_slice;
      for (std::size_t i = 0; i < count; ++i) {
        const std::int64_t length = a_.row_length(rows[first + i]);
        entries += length;
        longest = std::max(longest, length);
        consecutive &=
            target(rows[first + i]) == target(rows[first]) + static_cast<std::int32_t>(i);
      }
      add_slice(entries, JaggedShape::steps_of(longest, log2_places), log2_places,
                consecutive ? target(rows[first]) : Slice::kListed);
      for (std::size_t i = 0; i < per_slice; ++i) {
        const bool is_row = i < count;
        const std::int32_t row = is_row ? rows[first + i] : 0;
        sources_.push_back(
            is_row ? Source{a_.row_ptr[row], static_cast<std::int32_t>(a_.row_length(row))}
                   : Source{0, 0});
        out_.row_ids.push_back(is_row ? target(row) : -1);
      }
    }
  }

  void fill() {
    out_.col_idx.resize(a_.nnz());
    out_.values.resize(a_.nnz());
    out_.values64.resize(a_.values64.size());
    const auto count = static_cast<std::int64_t>(out_.slices.size());
#pragma omp parallel for schedule(dynamic, 64) if (a_.nnz() >= kWorthThreads)
    for (std::int64_t s = 0; s < count; ++s) fill_slice(out_.slices[s]);
  }

  void fill_slice(const Slice& slice) {
    const std::int64_t places = std::int64_t{1} << slice.log2_places;
    const std::int64_t rows = out_.shape.places >> slice.log2_places;
    std::int64_t to = slice.first_entry;
    for (std::int64_t step = 0; step < static_cast<std::int64_t>(slice.steps); ++step)
      for (std::int64_t r = 0; r < rows; ++r) {
        const Source& source = sources_[slice.first_row + r];
        const std::int64_t end = std::min<std::int64_t>(source.length, (step + 1) * places);
        for (std::int64_t i = step * places; i < end; ++i, ++to) {
          out_.col_idx[to] = a_.col_idx[source.begin + i];
          out_.values[to] = a_.values[source.begin + i];
          if (!a_.values64.empty()) out_.values64[to] = a_.values64[source.begin + i];
        }
      }
  }

  const CsrMatrix& a_;
  std::span<const std::int32_t> row_order_, row_ids_;
  JaggedSlices& out_;
  int log2_slice_;                                  // places of a slice
  std::vector<std::vector<std::int32_t>> rows_of_;  // by log2 of their places, in order
  std::vector<std::int32_t> too_long_;
  std::vector<Source> sources_;
  std::int64_t entries_ = 0;
};

}  // namespace

JaggedSlices JaggedSlices::build(const CsrMatrix& a, std::span<const std::int32_t> row_order,
                                 std::span<const std::int32_t> row_ids, const JaggedShape& shape) {
  JaggedSlices out;
  out.rows = a.rows;
  out.cols = a.cols;
  out.shape = shape;
  Builder(a, row_order, row_ids, out).build();
  return out;
}

CsrMatrix JaggedSlices::unpack() const {
  struct Entry {
    std::int32_t col;
    float value;
    double value64;
  };
  std::vector<std::vector<Entry>> by_row(rows);
  for (const Slice& slice : slices) {
    const int places = 1 << slice.log2_places;
    std::int64_t from = slice.first_entry;
    for (int step = 0; step < static_cast<int>(slice.steps); ++step)
      for (int place = 0; place < shape.places; ++place) {
        const int r = place >> slice.log2_places;
        if (step * places + place % places >= row_lengths[slice.first_row + r]) continue;
        const std::int32_t row = slice.target >= 0 ? slice.target + r
                                 : slice.target == Slice::kListed
                                     ? row_ids[slice.first_row + r]
                                     : long_rows[part_of[slice.part()]].row;
        by_row[row].push_back({col_idx[from], values[from], values64.empty() ? 0 : values64[from]});
        ++from;
      }
  }
  CsrMatrix out{rows, cols, {0}, {}, {}};
  for (const std::vector<Entry>& row : by_row) {
    for (const Entry& entry : row) {
      out.col_idx.push_back(entry.col);
      out.values.push_back(entry.value);
      if (!values64.empty()) out.values64.push_back(entry.value64);
    }
    out.row_ptr.push_back(static_cast<std::int64_t>(out.col_idx.size()));
  }
  return out;
}

template <class Bits>
PackedEntries pack(JaggedSlices& slices, const std::vector<Bits>& value_bits) {
  const auto count = static_cast<std::int64_t>(slices.slices.size());
  // Read before any slice is written: `packed` shares its word with `first_entry`.
  std::vector<std::int64_t> begin_of(count + 1, std::ssize(slices.col_idx));
  for (std::int64_t s = 0; s < count; ++s)
    begin_of[s] = static_cast<std::int64_t>(slices.slices[s].first_entry);
  PackedEntries out;
  out.entries.resize(slices.col_idx.size());
  if constexpr (sizeof(Bits) == 2) out.first_columns.resize(count);
  bool all = true;
  const bool worth_threads = std::ssize(slices.col_idx) >= kWorthThreads;
#pragma omp parallel for schedule(static) reduction(&& : all) if (worth_threads)
  for (std::int64_t s = 0; s < count; ++s) {
    Slice& slice = slices.slices[s];
    const std::int64_t begin = begin_of[s], end = begin_of[s + 1];
    if (begin == end) continue;
    std::int32_t first_column = 0;
    if constexpr (sizeof(Bits) == 2) {
      const auto [least, most] =
          std::minmax_element(slices.col_idx.begin() + begin, slices.col_idx.begin() + end);
      if (*most - *least >= packed_span(sizeof(Bits))) {
        all = false;
        continue;
      }
      first_column = out.first_columns[s] = *least;
    }
    slice.packed = 1;
    for (std::int64_t i = begin; i < end; ++i)
      out.entries[i] = static_cast<std::uint32_t>(slices.col_idx[i] - first_column)
                           << kPackedValueBits<Bits> |
                       value_bits[i];
  }
  out.all = all;
  return out;
}
template PackedEntries pack(JaggedSlices& slices, const std::vector<std::uint8_t>& value_bits);
template PackedEntries pack(JaggedSlices& slices, const std::vector<std::uint16_t>& value_bits);

}  // namespace spmmbench::jagged
