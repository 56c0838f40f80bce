#include "multi/partition.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <numeric>
#include <utility>

#include "spmmbench/error.hpp"

namespace spmmbench {
namespace {

constexpr std::array kSplits = {Split::columns,     Split::rows, Split::rows_all,
                                Split::rows_needed, Split::peer, Split::peer_in_place,
                                Split::peer_pulled, Split::grid};

std::vector<bool> referenced_by(const CsrMatrix& a, const Range& rows) {
  std::vector<bool> referenced(a.cols, false);
  for (std::int64_t e = a.row_ptr[rows.begin]; e < a.row_ptr[rows.end]; ++e)
    referenced[a.col_idx[e]] = true;
  return referenced;
}

bool is_inner(const CsrMatrix& a, std::int64_t row, const Range& own) {
  return std::all_of(a.col_idx.begin() + a.row_ptr[row], a.col_idx.begin() + a.row_ptr[row + 1],
                     [&](std::int32_t column) { return own.has(column); });
}

constexpr int kBits = 64;  // of a set of parts; parts that many apart share one

// For each row of B a bit for every part that needs the row and does not have it.
std::vector<std::uint64_t> receivers_of(const RowParts& parts) {
  std::vector<std::uint64_t> receivers(parts.b.back().end, 0);
  for (int part = 0; part < parts.count(); ++part)
    for (const std::int32_t row : parts.needed[part])
      receivers[row] |= std::uint64_t{1} << (part % kBits);
  return receivers;
}

// The place of a set in an order in which neighbours differ by one element: so the sets that have
// an element lie in few runs.
std::uint64_t gray_rank(std::uint64_t set) {
  for (int shift = 1; shift < kBits; shift *= 2) set ^= set >> shift;
  return set;
}

// The positions of those of the ascending rows that lie in `range`.
Range within(const std::vector<std::int32_t>& rows, const Range& range) {
  const auto first = std::lower_bound(rows.begin(), rows.end(), range.begin);
  const auto last = std::lower_bound(first, rows.end(), range.end);
  return {first - rows.begin(), last - rows.begin()};
}

struct Reads {
  std::int64_t together = 0, single = 0;
};

// Counts reads of rows of B that are not `own`: once for each block of neighbouring rows of A, and
// once for each nonzero.
Reads count_reads(const CsrMatrix& a, const Range& rows, const Range& own) {
  std::vector<std::int64_t> last_read(a.cols, -1);  // by which rows of A, counted in blocks
  Reads reads;
  for (std::int64_t row = rows.begin; row < rows.end; ++row) {
    const std::int64_t block = (row - rows.begin) / kRowsReadTogether;
    for (std::int64_t at = a.row_ptr[row]; at < a.row_ptr[row + 1]; ++at) {
      const std::int32_t column = a.col_idx[at];
      if (own.has(column)) continue;
      ++reads.single;
      if (last_read[column] == block) continue;
      last_read[column] = block;
      ++reads.together;
    }
  }
  return reads;
}

// Whether, in every part, reads in place take less time than what the product moves in memory.
bool reads_in_place_hide(const RowParts& parts) {
  for (int part = 0; part < parts.count(); ++part) {
    const std::int64_t reads = parts.most_reads_in_place[part];
    if (reads > kFewReads ||
        reads * kRowsOfARowRead > parts.b[part].size() + 2 * parts.a[part].size())
      return false;
  }
  return true;
}

}  // namespace

std::string_view to_string(Split split) {
  switch (split) {
    case Split::columns: return "columns";
    case Split::rows: return "rows";
    case Split::rows_all: return "rows_all";
    case Split::rows_needed: return "rows_needed";
    case Split::peer: return "peer";
    case Split::peer_in_place: return "peer_in_place";
    case Split::peer_pulled: return "peer_pulled";
    case Split::grid: return "grid";
  }
  return {};
}

Split parse_split(std::string_view text) {
  for (const Split split : kSplits)
    if (text == to_string(split)) return split;
  throw Error(fmt::format("--split {}: expected {}", text, kSplitNames));
}

std::string_view to_string(Way way) {
  switch (way) {
    case Way::none: return "none";
    case Way::all_gather: return "all_gather";
    case Way::needed_rows: return "needed_rows";
    case Way::peer: return "peer";
    case Way::pulled: return "pulled";
  }
  return {};
}

std::vector<int> Grid::same_columns(int rank) const {
  std::vector<int> ranks(rows);
  for (int row = 0; row < rows; ++row) ranks[row] = row * columns + column_of(rank);
  return ranks;
}

Grid grid_of(Split split, int gpus) {
  if (split == Split::columns) return {1, gpus};
  if (split != Split::grid) return {gpus, 1};
  int columns = 1;
  for (int divisor = 1; divisor * divisor <= gpus; ++divisor)
    if (gpus % divisor == 0) columns = divisor;
  return {gpus / columns, columns};
}

std::vector<Range> equal_ranges(std::int64_t count, int parts) {
  std::vector<Range> ranges(parts);
  for (int part = 0; part < parts; ++part)
    ranges[part] = {count * part / parts, count * (part + 1) / parts};
  return ranges;
}

std::vector<Range> balanced_rows(const CsrMatrix& a, int parts) {
  const auto weight = [&](std::int64_t row) { return a.row_ptr[row] + row * kRowInNonzeros; };
  const std::int64_t all = weight(a.rows);
  std::vector<Range> ranges(parts);
  for (int part = 0; part < parts; ++part) {
    const std::int64_t begin = part == 0 ? 0 : ranges[part - 1].end;
    const std::int64_t goal = all / parts * (part + 1) + all % parts * (part + 1) / parts;
    // The first row boundary whose rows weigh at least the goal.
    std::int64_t low = begin, high = a.rows;
    while (low < high) {
      const std::int64_t middle = low + (high - low) / 2;
      if (weight(middle) < goal) low = middle + 1;
      else high = middle;
    }
    ranges[part] = {begin, part + 1 == parts ? a.rows : low};
  }
  return ranges;
}

std::int64_t RowParts::largest_b() const {
  std::int64_t largest = 0;
  for (const Range& range : b) largest = std::max(largest, range.size());
  return largest;
}

RowParts split_rows(const CsrMatrix& a, const std::vector<Range>& rows) {
  const int parts = static_cast<int>(rows.size());
  RowParts split;
  split.a = rows;
  split.b = a.rows == a.cols ? split.a : equal_ranges(a.cols, parts);
  split.needed.resize(parts);
  split.reads_in_place.resize(parts);
  split.most_reads_in_place.resize(parts);
  split.inner.resize(parts);
  for (int part = 0; part < parts; ++part) {
    const std::vector<bool> referenced = referenced_by(a, split.a[part]);
    const Range& own = split.b[part];
    for (std::int64_t row = 0; row < a.cols; ++row)
      if (referenced[row] && !own.has(row))
        split.needed[part].push_back(static_cast<std::int32_t>(row));
    const Reads reads = count_reads(a, rows[part], own);
    split.reads_in_place[part] = reads.together;
    split.most_reads_in_place[part] = reads.single;
    while (split.inner[part] < rows[part].size() &&
           is_inner(a, rows[part].begin + split.inner[part], own))
      ++split.inner[part];
  }
  return split;
}

Permutation inner_rows_first(const CsrMatrix& a, const RowParts& parts) {
  // Columns have the numbers of rows in a square A alone.
  const std::vector<std::uint64_t> receivers =
      a.rows == a.cols ? receivers_of(parts) : std::vector<std::uint64_t>(a.rows, 0);
  Permutation order;
  order.reserve(a.rows);
  for (int part = 0; part < parts.count(); ++part) {
    Permutation inner_sent, outer_sent, outer_kept;
    for (std::int64_t i = parts.a[part].begin; i < parts.a[part].end; ++i) {
      const auto row = static_cast<std::int32_t>(i);
      const bool inner = is_inner(a, row, parts.b[part]), sent = receivers[row] != 0;
      (inner ? (sent ? inner_sent : order) : (sent ? outer_sent : outer_kept)).push_back(row);
    }
    // Those of the same receivers lie together, and those that both kinds have meet.
    std::ranges::stable_sort(inner_sent, {}, [&](auto row) { return gray_rank(receivers[row]); });
    std::ranges::stable_sort(outer_sent, std::greater<>(),
                             [&](auto row) { return gray_rank(receivers[row]); });
    for (const Permutation& rows : {inner_sent, outer_sent, outer_kept})
      order.insert(order.end(), rows.begin(), rows.end());
  }
  return order;
}

Moved most_moved_by_all(const RowParts& parts) {
  const std::int64_t rows = (parts.count() - 1) * parts.largest_b();
  return {rows, rows};
}

Moved most_moved_by_needed(const RowParts& parts) {
  Moved most;
  for (int part = 0; part < parts.count(); ++part) {
    std::int64_t sent = 0;
    for (const auto& needed : parts.needed) sent += within(needed, parts.b[part]).size();
    most.sent = std::max(most.sent, sent);
    most.received = std::max(most.received, static_cast<std::int64_t>(parts.needed[part].size()));
  }
  return most;
}

Way choose_way(Split split, const RowParts& parts) {
  if (split == Split::rows_all) return Way::all_gather;
  if (split == Split::rows_needed) return Way::needed_rows;
  if (split == Split::peer_in_place) return Way::peer;
  if (split == Split::peer_pulled) return Way::pulled;
  if (split == Split::peer) return reads_in_place_hide(parts) ? Way::peer : Way::pulled;
  const Moved all = most_moved_by_all(parts), needed = most_moved_by_needed(parts);
  const auto most = static_cast<double>(std::max(needed.received, needed.sent));
  return most < kNeededShare * static_cast<double>(all.received) ? Way::needed_rows
                                                                 : Way::all_gather;
}

std::int64_t Gather::rows_received() const {
  auto sum = static_cast<std::int64_t>(in_place.size());
  for (const Range& range : from) sum += range.size();
  return sum;
}

std::int64_t Gather::rows_sent() const {
  std::int64_t sum = 0;
  for (const auto& rows : to) sum += static_cast<std::int64_t>(rows.size());
  // In an all-gather every row of the part, and what makes it as large as others, goes to each.
  return way == Way::all_gather ? rows_received() : sum;
}

Gather make_gather(const RowParts& parts, Way way, int part) {
  Gather gather;
  gather.way = way;
  gather.from.resize(parts.count());
  gather.to.resize(parts.count());
  if (way == Way::peer) {
    gather.rows = parts.b.back().end;
    gather.own = parts.b[part];
    gather.in_place = parts.needed[part];
    gather.original.resize(gather.rows);
    std::iota(gather.original.begin(), gather.original.end(), 0);
    return gather;
  }
  const auto add = [&](std::int64_t row) {
    gather.original.push_back(static_cast<std::int32_t>(row));
  };
  for (int other = 0; other < parts.count(); ++other) {
    const Range& rows = parts.b[other];
    while (has_needed_rows(way) && other == part && gather.original.size() % kOwnAlign != 0)
      add(-1);
    const auto begin = static_cast<std::int64_t>(gather.original.size());
    if (way == Way::all_gather || other == part) {
      for (std::int64_t row = rows.begin; row < rows.end; ++row) add(row);
      if (way == Way::all_gather) gather.original.resize((other + 1) * parts.largest_b(), -1);
    } else {
      const Range of_other = within(parts.needed[part], rows);
      for (std::int64_t i = of_other.begin; i < of_other.end; ++i) add(parts.needed[part][i]);
      const std::vector<std::int32_t>& wanted = parts.needed[other];
      const Range of_mine = within(wanted, parts.b[part]);
      for (std::int64_t i = of_mine.begin; i < of_mine.end; ++i)
        gather.to[other].push_back(static_cast<std::int32_t>(wanted[i] - parts.b[part].begin));
    }
    const Range placed = {begin, static_cast<std::int64_t>(gather.original.size())};
    (other == part ? gather.own : gather.from[other]) = placed;
  }
  gather.rows = static_cast<std::int64_t>(gather.original.size());
  return gather;
}

Pages make_pages(const std::vector<Range>& b, std::size_t line_bytes, std::size_t page_bytes) {
  constexpr std::size_t kAlign = 256;  // bytes, as of a Buffer
  const auto past = [&](const Range& rows) {
    return static_cast<std::size_t>(rows.end) * line_bytes;
  };
  Pages pages;
  const std::size_t in_last_page = past(b.front()) % page_bytes;
  if (in_last_page > 0) pages.lead = (page_bytes - in_last_page) / kAlign * kAlign;
  std::size_t begin = 0;
  for (const Range& rows : b) {
    const bool is_last = &rows == &b.back();
    const std::size_t round_up = is_last ? page_bytes - 1 : page_bytes / 2;
    const std::size_t end = (pages.lead + past(rows) + round_up) / page_bytes * page_bytes;
    if (end <= begin) throw Unsupported("B is too small: a GPU would have no page of it");
    pages.bytes.push_back(end - begin);
    begin = end;
  }
  return pages;
}

CsrMatrix part_of_a(const CsrMatrix& a, const RowParts& parts, const Gather& gather, int part) {
  std::vector<std::int32_t> place(a.cols, -1);
  for (std::int64_t at = 0; at < gather.rows; ++at)
    if (gather.original[at] >= 0) place[gather.original[at]] = static_cast<std::int32_t>(at);
  const Range& rows = parts.a[part];
  const std::int64_t first = a.row_ptr[rows.begin], last = a.row_ptr[rows.end];
  CsrMatrix out;
  out.rows = rows.size();
  out.cols = gather.rows;
  out.row_ptr.resize(out.rows + 1);
  for (std::int64_t row = 0; row <= out.rows; ++row)
    out.row_ptr[row] = a.row_ptr[rows.begin + row] - first;
  out.col_idx.resize(last - first);
#pragma omp parallel for schedule(static)
  for (std::int64_t e = first; e < last; ++e) out.col_idx[e - first] = place[a.col_idx[e]];
  out.values.assign(a.values.begin() + first, a.values.begin() + last);
  if (!a.values64.empty())
    out.values64.assign(a.values64.begin() + first, a.values64.begin() + last);
  return out;
}

CsrMatrix permute_both(const CsrMatrix& a, const Permutation& order) {
  CsrMatrix out = permute_rows(a, order);
  if (a.rows != a.cols) return out;
  std::vector<std::int32_t> place(a.cols);
  for (std::int64_t i = 0; i < a.cols; ++i) place[order[i]] = static_cast<std::int32_t>(i);
#pragma omp parallel
  {
    std::vector<std::pair<std::int32_t, std::int64_t>> sorted;  // column and where its value is
    std::vector<float> values;
    std::vector<double> values64;
#pragma omp for schedule(dynamic, 1024)
    for (std::int64_t row = 0; row < out.rows; ++row) {
      const std::int64_t first = out.row_ptr[row], length = out.row_length(row);
      sorted.clear();
      for (std::int64_t e = first; e < first + length; ++e)
        sorted.emplace_back(place[out.col_idx[e]], e);
      std::sort(sorted.begin(), sorted.end());
      values.assign(out.values.begin() + first, out.values.begin() + first + length);
      if (!out.values64.empty())
        values64.assign(out.values64.begin() + first, out.values64.begin() + first + length);
      for (std::int64_t i = 0; i < length; ++i) {
        out.col_idx[first + i] = sorted[i].first;
        out.values[first + i] = values[sorted[i].second - first];
        if (!out.values64.empty()) out.values64[first + i] = values64[sorted[i].second - first];
      }
    }
  }
  return out;
}

}  // namespace spmmbench
