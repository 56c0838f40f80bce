#pragma once
// One product divided among several GPUs: which rows of A, B and C each has, which rows of B it
// lacks, and what is sent for them. Nothing here knows a device.

#include <cstdint>
#include <string_view>
#include <vector>

#include "spmmbench/matrix.hpp"
#include "spmmbench/reordering.hpp"

namespace spmmbench {

// `columns`: B and C by columns, A on every GPU. `rows` and those after it: A, B and C by rows, and
// what a part lacks of B is gathered; with `peer` and those after it, it is read from the memory of
// other GPUs. `grid`: by rows, and B and C by columns too.
enum class Split { columns, rows, rows_all, rows_needed, peer, peer_in_place, peer_pulled, grid };
inline constexpr const char* kSplitNames =
    "columns, rows, rows_all, rows_needed, peer, peer_in_place, peer_pulled or grid";
std::string_view to_string(Split split);
Split parse_split(std::string_view text);  // throws Error
// Whether a product needs rows of B that another GPU has.
inline bool gathers_rows(Split split) { return split != Split::columns; }

// This many parts by rows, each in this many by columns. Part (i, j) has rank i * columns + j.
struct Grid {
  int rows = 1, columns = 1;
  int row_of(int rank) const { return rank / columns; }
  int column_of(int rank) const { return rank % columns; }
  // The ranks that have the same columns as this one, by their part of the rows.
  std::vector<int> same_columns(int rank) const;
};
// A grid is as near to a square as the number of GPUs allows, and has as many parts by rows or
// more.
Grid grid_of(Split split, int gpus);

struct Range {
  std::int64_t begin = 0, end = 0;
  std::int64_t size() const { return end - begin; }
  bool has(std::int64_t at) const { return begin <= at && at < end; }
  bool operator==(const Range&) const = default;
};

// [0, count) in this many ranges whose sizes differ by at most 1.
std::vector<Range> equal_ranges(std::int64_t count, int parts);
// The rows of A in ranges that should take the same time: equal sums of nonzeros and of
// kRowInNonzeros for each row.
inline constexpr std::int64_t kRowInNonzeros = 4;
std::vector<Range> balanced_rows(const CsrMatrix& a, int parts);

// A window of async_wcsr. csr_row_split reads a row of another GPU for each nonzero that refers to
// it.
inline constexpr std::int64_t kRowsReadTogether = 16;

// A, B and C by rows. A part's rows of B have the numbers of its rows of A where A is square, so
// that the C of one product is the B of the next; else there are equally many in each part.
struct RowParts {
  std::vector<Range> a, b;
  // For each part the rows of B that its rows of A refer to and that other parts have, ascending.
  std::vector<std::vector<std::int32_t>> needed;
  // By part: how many rows its kernel reads of those where they lie: each once for every
  // kRowsReadTogether rows of A that refer to it; and at the most: once for each nonzero.
  std::vector<std::int64_t> reads_in_place, most_reads_in_place;
  // For each part how many of its first rows of A refer to its own rows of B alone.
  std::vector<std::int64_t> inner;

  int count() const { return static_cast<int>(a.size()); }
  std::int64_t largest_b() const;  // rows
};
RowParts split_rows(const CsrMatrix& a, const std::vector<Range>& rows);
// An order of A's rows in which each part has the same, those first that refer to its own rows of B
// alone. Where A is square, the rows of B that another part needs lie in one run of that order if
// there are two parts, and in few if there are more. Else rows keep their order.
Permutation inner_rows_first(const CsrMatrix& a, const RowParts& parts);

// Rows of B that a part receives from others and sends to them.
struct Moved {
  std::int64_t received = 0, sent = 0;
};
// The most of any part, where all rows are gathered, in blocks of largest_b() rows, and where only
// needed ones are.
Moved most_moved_by_all(const RowParts& parts);
Moved most_moved_by_needed(const RowParts& parts);

// `peer`: the kernel reads rows of others where they lie. `pulled`: each part copies the rows that
// it needs from the memory of others, once.
enum class Way { none, all_gather, needed_rows, peer, pulled };
std::string_view to_string(Way way);
// Whether a part then has a B of its own rows and those that it needs, the inner rows of A first.
inline bool has_needed_rows(Way way) { return way == Way::needed_rows || way == Way::pulled; }
// Rows that are needed must be packed, and each pair of GPUs exchanges its own number of them: this
// pays where less than kNeededShare of all rows move.
inline constexpr double kNeededShare = 0.75;
// `peer` reads rows of other GPUs in place if both conditions hold; else it pulls.
//   - Even most_reads_in_place take less time than a part's own rows of B and C take in memory, so
//     that they hide behind the product of any kernel. A row over the link counts as
//     kRowsOfARowRead rows in memory (345 GB/s and 4.3 TB/s of two H200), a row of C in fp32 as two
//     of B in fp16.
//   - They are at most kFewReads. That many rows of 256 bytes take 6 us over the link, about what a
//     pull beside the product takes for its second stream and launch.
inline constexpr std::int64_t kRowsOfARowRead = 12, kFewReads = 8192;
Way choose_way(Split split, const RowParts& parts);

// How one part comes by the B that its kernel reads. Rows keep their order. Where needed rows are
// received, its own begin at a multiple of kOwnAlign: of 16 bytes each, they are aligned as the
// memory of a Buffer is.
inline constexpr std::int64_t kOwnAlign = 16;
struct Gather {
  Way way = Way::none;
  std::int64_t rows = 0;  // of that B
  Range own;              // where the part's rows lie in it
  // By part: where the rows that it sends lie, and which of its own rows, counted from its first,
  // it is sent or copies.
  std::vector<Range> from;
  std::vector<std::vector<std::int32_t>> to;
  std::vector<std::int32_t> in_place;  // rows of others that are read where they lie; none is sent
  // Row of B by row of the gathered B; -1 for what only makes parts equally large.
  std::vector<std::int32_t> original;

  std::int64_t rows_received() const;
  std::int64_t rows_sent() const;
};
Gather make_gather(const RowParts& parts, Way way, int part);

// Row-major B in pages of memory, each on the GPU of one part.
struct Pages {
  std::size_t lead = 0;            // bytes before the first row; a multiple of 256
  std::vector<std::size_t> bytes;  // of each part's pages
};
// The first part ends at the end of a page, give or take a row, and others at the nearest to it.
// Throws Unsupported where a part would have no page.
Pages make_pages(const std::vector<Range>& b, std::size_t line_bytes, std::size_t page_bytes);

// The part's rows of A, with columns of the gathered B.
CsrMatrix part_of_a(const CsrMatrix& a, const RowParts& parts, const Gather& gather, int part);

// A with rows and columns in this order: row and column i of the result are row and column order[i]
// of `a`. Where A is not square, the columns stay.
CsrMatrix permute_both(const CsrMatrix& a, const Permutation& order);

}  // namespace spmmbench
