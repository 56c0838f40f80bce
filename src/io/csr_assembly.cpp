#include "io/csr_assembly.hpp"

#include <functional>
#include <type_traits>
#include <utility>

#include "core/parallel.hpp"

namespace spmmbench {
namespace {

template <class Entry>
constexpr bool kHasValue = std::is_same_v<Entry, ValueEntry>;

// Calls place(entry) for every entry of the expanded matrix that lies in rows [first, last), in
// file order. Blocks that do not touch these rows are not read, so row-major files cost one pass
// however many threads take part.
template <class Entry, class Place>
void for_each_in_rows(const std::vector<EntryBlock<Entry>>& blocks, Symmetry symmetry,
                      std::int64_t first, std::int64_t last, Place place) {
  const auto count = static_cast<std::uint64_t>(last - first);
  const auto inside = [&](std::int32_t row) {
    return static_cast<std::uint64_t>(row - first) < count;
  };
  for (const EntryBlock<Entry>& block : blocks) {
    if (block.last_row < first || block.first_row >= last) continue;
    for (const Entry& entry : block.entries) {
      if (inside(entry.row)) place(entry);
      if (symmetry == Symmetry::general || entry.row == entry.col || !inside(entry.col)) continue;
      Entry mirrored = entry;
      std::swap(mirrored.row, mirrored.col);
      if constexpr (kHasValue<Entry>)
        if (symmetry == Symmetry::skew_symmetric) mirrored.value = -mirrored.value;
      place(mirrored);
    }
  }
}

// Sorts one row and adds its duplicates in the order of the file; `values` is null for a pattern,
// `values64` where there are none. Returns the number of entries that are left.
std::int64_t sort_row(std::int32_t* cols, float* values, double* values64, std::int64_t length,
                      std::vector<ValueEntry>& scratch) {
  if (values == nullptr) {
    std::sort(cols, cols + length);
    return std::unique(cols, cols + length) - cols;
  }
  scratch.resize(length);
  for (std::int64_t i = 0; i < length; ++i)
    scratch[i] = {0, cols[i], values64 != nullptr ? values64[i] : values[i]};
  std::stable_sort(scratch.begin(), scratch.end(),
                   [](const ValueEntry& a, const ValueEntry& b) { return a.col < b.col; });
  std::int64_t kept = 0;
  for (std::int64_t i = 0; i < length; ++kept) {
    double sum = scratch[i].value;
    std::int64_t next = i + 1;
    for (; next < length && scratch[next].col == scratch[i].col; ++next) sum += scratch[next].value;
    cols[kept] = scratch[i].col;
    values[kept] = static_cast<float>(sum);
    if (values64 != nullptr) values64[kept] = sum;
    i = next;
  }
  return kept;
}

// Gives the rows in `merged` the sums of their entries before these were rounded.
template <class Entry>
void sum_exactly(CsrMatrix& csr, const std::vector<EntryBlock<Entry>>& blocks, Symmetry symmetry,
                 const std::vector<std::int64_t>& merged, int threads) {
  std::vector<char> is_merged(csr.rows);
  for (const std::int64_t row : merged) is_merged[row] = 1;
  const auto count = static_cast<std::int64_t>(merged.size());
  ExceptionTrap trap;
#pragma omp parallel for schedule(static, 1) num_threads(threads)
  for (int part = 0; part < threads; ++part)
    trap.run([&] {
      const std::int64_t first = count * part / threads, last = count * (part + 1) / threads;
      if (first == last) return;
      std::vector<ValueEntry> entries;
      for_each_in_rows(blocks, symmetry, merged[first], merged[last - 1] + 1,
                       [&](const Entry& entry) {
                         if (is_merged[entry.row]) entries.push_back(entry);
                       });
      set_sums(csr, std::move(entries));
    });
  trap.rethrow();
}

// Closes the gaps that merged duplicates left: row r keeps its first kept[r] entries.
void compact(CsrMatrix& csr, const std::vector<std::int64_t>& removed_before) {
  for (std::int64_t row = 0; row < csr.rows; ++row) {
    const std::int64_t from = csr.row_ptr[row], to = from - removed_before[row];
    const std::int64_t kept = csr.row_length(row) - (removed_before[row + 1] - removed_before[row]);
    std::copy_n(csr.col_idx.begin() + from, kept, csr.col_idx.begin() + to);
    if (!csr.values.empty()) std::copy_n(csr.values.begin() + from, kept, csr.values.begin() + to);
    if (!csr.values64.empty())
      std::copy_n(csr.values64.begin() + from, kept, csr.values64.begin() + to);
  }
  for (std::int64_t row = 0; row <= csr.rows; ++row) csr.row_ptr[row] -= removed_before[row];
  csr.col_idx.resize(csr.nnz());
  if (!csr.values.empty()) csr.values.resize(csr.nnz());
  if (!csr.values64.empty()) csr.values64.resize(csr.nnz());
}

}  // namespace

void set_sums(CsrMatrix& csr, std::vector<ValueEntry> entries) {
  std::stable_sort(entries.begin(), entries.end(), [](const ValueEntry& a, const ValueEntry& b) {
    return std::pair(a.row, a.col) < std::pair(b.row, b.col);
  });
  std::int64_t at = 0;
  for (std::size_t i = 0; i < entries.size(); ++at) {
    const ValueEntry& of = entries[i];
    if (i == 0 || of.row != entries[i - 1].row) at = csr.row_ptr[of.row];
    double sum = entries[i].value;
    for (++i; i < entries.size() && entries[i].row == of.row && entries[i].col == of.col; ++i)
      sum += entries[i].value;
    csr.values[at] = static_cast<float>(sum);
  }
}

std::vector<std::int64_t> sort_rows(CsrMatrix& csr, int threads) {
  ExceptionTrap trap;
  std::vector<std::pair<std::int64_t, std::int64_t>> shrunk;  // row, entries removed
#pragma omp parallel num_threads(threads)
  {
    std::vector<ValueEntry> scratch;
    std::vector<std::pair<std::int64_t, std::int64_t>> own_shrunk;
#pragma omp for schedule(dynamic, 4096)
    for (std::int64_t row = 0; row < csr.rows; ++row) {
      std::int32_t* const first = csr.col_idx.data() + csr.row_ptr[row];
      const std::int64_t length = csr.row_length(row);
      if (std::adjacent_find(first, first + length, std::greater_equal<>()) == first + length)
        continue;
      trap.run([&] {
        const std::int64_t kept =
            sort_row(first, csr.values.empty() ? nullptr : csr.values.data() + csr.row_ptr[row],
                     csr.values64.empty() ? nullptr : csr.values64.data() + csr.row_ptr[row],
                     length, scratch);
        if (kept < length) own_shrunk.emplace_back(row, length - kept);
      });
    }
#pragma omp critical
    trap.run([&] { shrunk.insert(shrunk.end(), own_shrunk.begin(), own_shrunk.end()); });
  }
  trap.rethrow();
  std::vector<std::int64_t> merged;
  if (!shrunk.empty()) {
    std::vector<std::int64_t> removed_before(csr.rows + 1);
    for (const auto& [row, removed] : shrunk) removed_before[row + 1] = removed;
    for (std::int64_t row = 0; row < csr.rows; ++row)
      removed_before[row + 1] += removed_before[row];
    compact(csr, removed_before);
    merged.reserve(shrunk.size());
    for (const auto& [row, removed] : shrunk) merged.push_back(row);
    std::sort(merged.begin(), merged.end());
  }
  return merged;
}

template <class Entry>
CsrMatrix assemble_csr(std::int64_t rows, std::int64_t cols, Symmetry symmetry,
                       std::vector<EntryBlock<Entry>> blocks, int threads, bool fp64) {
  constexpr bool has_value = kHasValue<Entry>;
  CsrMatrix csr{rows, cols, std::vector<std::int64_t>(rows + 1), {}, {}};
  std::int64_t* const row_ptr = csr.row_ptr.data();

  // Every thread owns a range of rows, so nothing is shared and the order within a row is the
  // file's.
#pragma omp parallel for schedule(static, 1) num_threads(threads)
  for (int part = 0; part < threads; ++part)
    for_each_in_rows(blocks, symmetry, rows * part / threads, rows * (part + 1) / threads,
                     [&](const Entry& entry) { ++row_ptr[entry.row]; });

  std::int64_t nnz = 0;
  for (std::int64_t row = 0; row <= rows; ++row) nnz += std::exchange(row_ptr[row], nnz);

  // The zero fill of a vector is most of its cost (first touch), hence one thread for each.
  ExceptionTrap trap;
#pragma omp parallel sections num_threads(std::min(threads, fp64 ? 3 : 2))
  {
#pragma omp section
    trap.run([&] { csr.col_idx.resize(nnz); });
#pragma omp section
    trap.run([&] { csr.values.resize(has_value ? nnz : 0); });
#pragma omp section
    trap.run([&] { csr.values64.resize(has_value && fp64 ? nnz : 0); });
  }
  trap.rethrow();

  std::vector<std::int64_t> first_row(threads + 1, rows);  // ranges of about equal nonzeros
  for (int part = 0; part < threads; ++part)
    first_row[part] = std::lower_bound(row_ptr, row_ptr + rows, nnz / threads * part) - row_ptr;
  first_row[0] = 0;
  // row_ptr[r] moves from the start of row r to its end, which is the start of row r + 1.
#pragma omp parallel for schedule(static, 1) num_threads(threads)
  for (int part = 0; part < threads; ++part)
    for_each_in_rows(blocks, symmetry, first_row[part], first_row[part + 1],
                     [&](const Entry& entry) {
                       const std::int64_t at = row_ptr[entry.row]++;
                       csr.col_idx[at] = entry.col;
                       if constexpr (has_value) csr.values[at] = static_cast<float>(entry.value);
                       if constexpr (has_value)
                         if (fp64) csr.values64[at] = entry.value;
                     });
  std::copy_backward(row_ptr, row_ptr + rows, row_ptr + rows + 1);
  row_ptr[0] = 0;

  if (!has_value) blocks = {};
  const std::vector<std::int64_t> merged = sort_rows(csr, threads);
  if constexpr (has_value)
    if (!merged.empty() && !fp64) sum_exactly(csr, blocks, symmetry, merged, threads);
  return csr;
}

template CsrMatrix assemble_csr(std::int64_t, std::int64_t, Symmetry,
                                std::vector<EntryBlock<PatternEntry>>, int, bool);
template CsrMatrix assemble_csr(std::int64_t, std::int64_t, Symmetry,
                                std::vector<EntryBlock<ValueEntry>>, int, bool);

}  // namespace spmmbench
