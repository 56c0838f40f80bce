#include "csr_row_split/segments.hpp"

#include <functional>

namespace spmmbench::row_split {

namespace {

// Within blocks of rows, the longest first.
void sort_by_length(std::span<Segment> rows) {
  const auto end = static_cast<std::int64_t>(rows.size());
#pragma omp parallel for
  for (std::int64_t from = 0; from < end; from += kSortedRows)
    std::ranges::stable_sort(rows.subspan(from, std::min(kSortedRows, end - from)),
                             std::ranges::greater{}, &Segment::length);
}

}  // namespace

Segments cut_rows(const CsrMatrix& a, std::span<const std::int32_t> row_ids, std::int64_t split) {
  const auto target = [&](std::int64_t row) {
    return row_ids.empty() ? static_cast<std::int32_t>(row) : row_ids[row];
  };
  std::int64_t joined = 0, all = 0;
  for (std::int64_t row = 0; row < a.rows; ++row) {
    const std::int64_t parts = segments_of(a.row_length(row), split);
    all += parts;
    if (parts > 1 && parts <= kMostJoined) joined += parts;
  }
  const bool join = worth_joining(joined, all);
  const auto parts_of_row = [&](std::int64_t row) {
    return parts_of(a.row_length(row), split, join);
  };
  Segments out;
  out.segments.reserve(a.rows + a.nnz() / split + 1);
  const auto cut = [&](std::int64_t row, std::int64_t parts, auto target_of_part) {
    const std::int64_t length = a.row_length(row);
    for (std::int64_t part = 0; part < parts; ++part) {
      const std::int64_t begin = length * part / parts;
      const std::int64_t end = length * (part + 1) / parts;
      out.segments.push_back(
          {a.row_ptr[row] + begin, static_cast<std::int32_t>(end - begin), target_of_part(part)});
    }
  };
  const auto keep_together = [&](std::int64_t row, std::int64_t parts) {
    cut(row, parts, [to = target(row)](std::int64_t) { return to; });
  };
  const auto count = [&] { return static_cast<std::int64_t>(out.segments.size()); };
  if (join) {
    for (std::int64_t row = 0; row < a.rows; ++row)
      if (parts_of_row(row) == kMostJoined) keep_together(row, kMostJoined);
    out.fours_end = count();
    for (std::int64_t row = 0; row < a.rows; ++row)
      if (parts_of_row(row) == 2) keep_together(row, 2);
    out.twos_end = count();
  }
  for (std::int64_t row = 0; row < a.rows; ++row) {
    const std::int64_t parts = parts_of_row(row);
    if (parts <= (join ? kMostJoined : 1)) continue;
    const SlotsOfRow slots{slots_before(count() - out.twos_end, out.cut_rows), parts};
    cut(row, parts, [&](std::int64_t part) { return slots.target_of(part); });
    out.slots.resize(slots.first);
    out.slots.push_back(slots.upper_slot(target(row)));
    for (std::int64_t i = 0; !slots.one() && i < slots.lower_slots(); ++i)
      out.slots.push_back(slots.lower_slot(i));
    ++out.cut_rows;
  }
  const std::int64_t cut_end = count();
  out.slots.resize(slots_before(cut_end - out.twos_end, out.cut_rows));
  for (std::int64_t row = 0; row < a.rows; ++row)
    if (a.row_length(row) <= split) keep_together(row, 1);
  sort_by_length(std::span(out.segments).subspan(cut_end));
  return out;
}

DeviceSegments upload(const Segments& segments, Device& device) {
  return {.segments = device.upload(segments.segments),
          .slots = device.upload(segments.slots),
          .count = static_cast<std::int64_t>(segments.segments.size()),
          .fours_end = segments.fours_end,
          .twos_end = segments.twos_end,
          .slot_count = static_cast<std::int64_t>(segments.slots.size()),
          .cut_rows = segments.cut_rows};
}

}  // namespace spmmbench::row_split
