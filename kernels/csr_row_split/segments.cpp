#include "csr_row_split/segments.hpp"

namespace spmmbench::row_split {

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
  const auto cut = [&](std::int64_t row, std::int64_t parts, std::int32_t to) {
    const std::int64_t length = a.row_length(row);
    for (std::int64_t part = 0; part < parts; ++part) {
      const std::int64_t begin = length * part / parts;
      const std::int64_t end = length * (part + 1) / parts;
      out.segments.push_back({a.row_ptr[row] + begin, static_cast<std::int32_t>(end - begin), to});
    }
  };
  const auto count = [&] { return static_cast<std::int64_t>(out.segments.size()); };
  if (join) {
    for (std::int64_t row = 0; row < a.rows; ++row)
      if (parts_of_row(row) == kMostJoined) cut(row, kMostJoined, target(row));
    out.fours_end = count();
    for (std::int64_t row = 0; row < a.rows; ++row)
      if (parts_of_row(row) == 2) cut(row, 2, target(row));
    out.twos_end = count();
  }
  for (std::int64_t row = 0; row < a.rows; ++row) {
    const std::int64_t parts = parts_of_row(row);
    if (parts <= (join ? kMostJoined : 1)) continue;
    cut(row, parts, ~static_cast<std::int32_t>(out.split_rows.size()));
    out.split_rows.push_back({target(row), static_cast<std::int32_t>(parts)});
  }
  const std::int64_t cut_end = count();
  for (std::int64_t row = 0; row < a.rows; ++row)
    if (a.row_length(row) <= split) cut(row, 1, target(row));
  const auto begin = out.segments.begin();
  const std::int64_t end = count();
#pragma omp parallel for
  for (std::int64_t from = cut_end; from < end; from += kSortedRows)
    std::stable_sort(begin + from, begin + std::min(from + kSortedRows, end),
                     [](const Segment& x, const Segment& y) { return x.length > y.length; });
  return out;
}

DeviceSegments upload(const Segments& segments, Device& device) {
  return {.segments = device.upload(segments.segments),
          .split_rows = device.upload(segments.split_rows),
          .count = static_cast<std::int64_t>(segments.segments.size()),
          .fours_end = segments.fours_end,
          .twos_end = segments.twos_end,
          .split_count = static_cast<std::int64_t>(segments.split_rows.size())};
}

}  // namespace spmmbench::row_split
