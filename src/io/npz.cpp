#include "io/npz.hpp"

#include <fmt/format.h>
#include <omp.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <vector>

#include "core/numbered.hpp"
#include "io/csr_assembly.hpp"
#include "io/file.hpp"
#include "io/npy.hpp"
#include "io/zip.hpp"
#include "spmmbench/error.hpp"
#include "spmmbench/precision.hpp"

namespace spmmbench {
namespace {

constexpr const char* kMembers[] = {"format", "shape", "data", "indices", "indptr", "row", "col"};
constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();  // rows, columns

struct Array {
  std::string label;  // for messages
  NpyArray npy;
  char kind = 0;                  // NumPy's: f, i, u, b, S, U
  std::size_t element_bytes = 0;  // characters of U
  std::size_t count = 0;          // values, as many as the data hold
};

Array open(const NpzMembers& members, const std::string& name, const std::string& path) {
  const auto found = members.find(name);
  if (found == members.end())
    throw Error(
        fmt::format("{}: expected a matrix of scipy.sparse.save_npz, got no '{}'", path, name));
  Array array{fmt::format("{}({}.npy)", path, name), {}, 0, 0, 0};
  array.npy = parse_npy(found->second, array.label);
  const std::string& type = array.npy.type;
  if (type.size() < 3 || (type[0] != '<' && type[0] != '|'))
    throw Error(
        fmt::format("{}: expected a little-endian array, got type {}", array.label, quote(type)));
  array.kind = type[1];
  for (const char digit : std::string_view(type).substr(2)) {
    if (digit < '0' || digit > '9' || array.element_bytes > 1000)
      throw Error(fmt::format("{}: expected a plain type, got {}", array.label, quote(type)));
    array.element_bytes = 10 * array.element_bytes + static_cast<std::size_t>(digit - '0');
  }
  return array;
}

// Checks that the array has that many dimensions and that its data fill them.
Array open_filled(const NpzMembers& members, const std::string& name, std::string_view kinds,
                  const std::string& path, std::size_t dimensions = 1) {
  Array array = open(members, name, path);
  const bool known_size = array.element_bytes == 1 || array.element_bytes == 2 ||
                          array.element_bytes == 4 || array.element_bytes == 8;
  if (kinds.find(array.kind) == std::string_view::npos || !known_size)
    throw Error(fmt::format("{}: expected {}{}, got type {}", array.label,
                            kinds == "i" ? "signed integers" : "real numbers",
                            known_size ? "" : " of 1, 2, 4 or 8 bytes", quote(array.npy.type)));
  array.count = array.npy.data.size() / array.element_bytes;
  const std::vector<std::int64_t>& shape = array.npy.shape;
  if (shape.size() != dimensions)
    throw Error(fmt::format("{}: expected {}, got {}", array.label,
                            numbered(dimensions, "dimension"), shape.size()));
  std::size_t rest = array.count;  // what the dimensions so far leave of it
  bool fits = array.npy.data.size() % array.element_bytes == 0;
  for (std::size_t i = 0; fits && i < dimensions; ++i) {
    const auto size = static_cast<std::size_t>(shape[i]);
    fits = shape[i] >= 0 && (size == 0 ? array.count == 0 : rest % size == 0);
    if (size > 0) rest /= size;
  }
  const bool has_zero = std::find(shape.begin(), shape.end(), 0) != shape.end();
  if (!fits || rest != (has_zero ? 0U : 1U))
    throw Error(fmt::format("{}: expected {} as long as its header says, got {}", array.label,
                            dimensions == 1 ? "a vector" : "blocks",
                            numbered(array.npy.data.size(), "byte")));
  return array;
}

template <class T>
T value_at(const Array& array, std::size_t index) {
  T value{};
  std::memcpy(&value, array.npy.data.data() + index * sizeof(T), sizeof value);
  return value;
}

// Calls body(read), where read(i) gives element i in the type of the array.
template <class Body>
void visit(const Array& array, Body body) {
  const auto as = [&]<class T>(T) { body([&](std::size_t i) { return value_at<T>(array, i); }); };
  const std::size_t bytes = array.element_bytes;
  if (array.kind == 'f') {
    if (bytes == 2)
      body([&](std::size_t i) {
        return Element<ElementType::f16>::decode(value_at<std::uint16_t>(array, i));
      });
    else if (bytes == 4) as(float{});
    else if (bytes == 8) as(double{});
    else throw Error(fmt::format("{}: expected floats of 2, 4 or 8 bytes", array.label));
  } else if (array.kind == 'i') {
    if (bytes == 1) as(std::int8_t{});
    else if (bytes == 2) as(std::int16_t{});
    else if (bytes == 4) as(std::int32_t{});
    else as(std::int64_t{});
  } else {  // unsigned and truth values
    if (bytes == 1) as(std::uint8_t{});
    else if (bytes == 2) as(std::uint16_t{});
    else if (bytes == 4) as(std::uint32_t{});
    else as(std::uint64_t{});
  }
}

// 'csr' from bytes, or from a string of four bytes a character.
std::string read_format(const NpzMembers& members, const std::string& path) {
  const Array array = open(members, "format", path);
  const std::size_t step = array.kind == 'U' ? 4 : 1;
  std::string text;
  for (std::size_t at = 0; at < array.npy.data.size() && text.size() < 8; at += step)
    if (array.npy.data[at] != '\0') text += array.npy.data[at];
  return text;
}

std::vector<std::int64_t> read_integers(const Array& array, std::int64_t low, std::int64_t high,
                                        std::string_view what) {
  std::vector<std::int64_t> out(array.count);
  visit(array, [&](auto read) {
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<std::int64_t>(read(i));
  });
  for (std::size_t i = 0; i < out.size(); ++i)
    if (out[i] < low || out[i] > high)
      throw Error(fmt::format("{}: expected {} from {} to {}, got {} at {}", array.label, what, low,
                              high, out[i], i));
  return out;
}

// Gives the rows in `merged` the sums of their values before these were rounded to fp32.
void sum_exactly(CsrMatrix& csr, const std::vector<std::int64_t>& merged, const Array& offsets,
                 const Array& columns, const Array& values) {
  std::vector<ValueEntry> entries;
  visit(offsets, [&](auto offset) {
    for (const std::int64_t row : merged)
      for (auto i = static_cast<std::int64_t>(offset(row));
           i < static_cast<std::int64_t>(offset(row + 1)); ++i)
        entries.push_back({static_cast<std::int32_t>(row), 0, static_cast<double>(i)});
  });
  // Until here `value` is where an entry stands.
  visit(columns, [&](auto column) {
    for (ValueEntry& entry : entries)
      entry.col = static_cast<std::int32_t>(column(static_cast<std::size_t>(entry.value)));
  });
  visit(values, [&](auto value) {
    for (ValueEntry& entry : entries)
      entry.value = static_cast<double>(value(static_cast<std::size_t>(entry.value)));
  });
  set_sums(csr, std::move(entries));
}

// The arrays of one matrix.
class Npz {
 public:
  Npz(const NpzMembers& members, const std::string& path, bool fp64, std::size_t memory_bytes)
      : members_(members), path_(path), fp64_(fp64), memory_bytes_(memory_bytes) {
    const Array shape = vector("shape", "i");
    if (shape.count != 2)
      throw Error(fmt::format("{}: expected rows and columns, got {}", shape.label,
                              numbered(shape.count, "number")));
    const std::vector<std::int64_t> sizes = read_integers(shape, 0, kMost, "rows and columns");
    rows_ = sizes[0];
    cols_ = sizes[1];
  }

  CsrMatrix from_csr() const {
    const Array offsets = vector("indptr", "i"), columns = vector("indices", "i"),
                values = vector("data", kReal);
    require_as_many(columns, "columns", values, values.count);
    CsrMatrix csr;
    csr.rows = rows_;
    csr.cols = cols_;
    csr.row_ptr = read_offsets(offsets, rows_, "rows", columns.count);
    csr.col_idx = read_indices(columns, csr.nnz(), cols_, "columns");
    csr.values.resize(csr.nnz());
    visit(values, [&](auto read) {
      for (std::int64_t i = 0; i < csr.nnz(); ++i) csr.values[i] = static_cast<float>(read(i));
      if (!fp64_) return;
      csr.values64.resize(csr.nnz());
      for (std::int64_t i = 0; i < csr.nnz(); ++i) csr.values64[i] = static_cast<double>(read(i));
    });
    const std::vector<std::int64_t> merged = sort_rows(csr, omp_get_max_threads());
    if (!merged.empty() && !fp64_) sum_exactly(csr, merged, offsets, columns, values);
    return csr;
  }

  CsrMatrix from_csc() const {
    const Array offsets = vector("indptr", "i"), rows = vector("indices", "i"),
                values = vector("data", kReal);
    require_as_many(rows, "rows", values, values.count);
    const std::vector<std::int64_t> col_ptr = read_offsets(offsets, cols_, "columns", rows.count);
    const std::vector<std::int32_t> row = read_indices(rows, col_ptr.back(), rows_, "rows");
    return assembled(col_ptr.back(), values, [&](auto read, const auto& add) {
      for (std::int64_t col = 0; col < cols_; ++col)
        for (std::int64_t i = col_ptr[col]; i < col_ptr[col + 1]; ++i) add(row[i], col, read(i));
    });
  }

  CsrMatrix from_coo() const {
    const Array rows = vector("row", "i"), columns = vector("col", "i"),
                values = vector("data", kReal);
    require_as_many(rows, "rows", values, values.count);
    require_as_many(columns, "columns", values, values.count);
    const auto count = static_cast<std::int64_t>(values.count);
    const std::vector<std::int32_t> row = read_indices(rows, count, rows_, "rows");
    const std::vector<std::int32_t> col = read_indices(columns, count, cols_, "columns");
    return assembled(count, values, [&](auto read, const auto& add) {
      for (std::int64_t i = 0; i < count; ++i) add(row[i], col[i], read(i));
    });
  }

  // What a stored block holds are entries, its zeros too.
  CsrMatrix from_bsr() const {
    const Array offsets = vector("indptr", "i"), columns = vector("indices", "i");
    const Array values = open_filled(members_, "data", kReal, path_, 3);
    const std::vector<std::int64_t>& shape = values.npy.shape;  // blocks, and the sizes of one
    const std::int64_t height = shape[1], width = shape[2];
    if (values.npy.fortran_order || height < 1 || width < 1 || rows_ % height != 0 ||
        cols_ % width != 0)
      throw Error(fmt::format("{}: expected blocks in C order that divide {} x {}, got {} x {}{}",
                              values.label, rows_, cols_, height, width,
                              values.npy.fortran_order ? " in Fortran order" : ""));
    require_as_many(columns, "columns", values, static_cast<std::size_t>(shape[0]));
    const std::int64_t strips = rows_ / height;
    const std::vector<std::int64_t> ptr =
        read_offsets(offsets, strips, "rows of blocks", columns.count);
    const std::vector<std::int32_t> col =
        read_indices(columns, ptr.back(), cols_ / width, "columns of blocks");
    return assembled(ptr.back() * height * width, values, [&](auto read, const auto& add) {
      for (std::int64_t strip = 0; strip < strips; ++strip)
        for (std::int64_t block = ptr[strip]; block < ptr[strip + 1]; ++block)
          for (std::int64_t i = 0; i < height * width; ++i)
            add(strip * height + i / width, col[block] * width + i % width,
                read(block * height * width + i));
    });
  }

 private:
  static constexpr std::string_view kReal = "fiub";

  Array vector(const char* name, std::string_view kinds) const {
    return open_filled(members_, name, kinds, path_);
  }

  void require_as_many(const Array& places, std::string_view what, const Array& values,
                       std::size_t expected) const {
    if (places.count != expected)
      throw Error(fmt::format("{}: expected as many {} as {}, got {} and {}", path_, what,
                              values.npy.shape.size() == 1 ? "values" : "blocks", places.count,
                              expected));
  }

  // What lies behind the last offset is spare room.
  static std::vector<std::int64_t> read_offsets(const Array& offsets, std::int64_t lines,
                                                std::string_view what, std::size_t most) {
    if (offsets.count != static_cast<std::size_t>(lines) + 1)
      throw Error(fmt::format("{}: expected {} offsets for {} {}, got {}", offsets.label, lines + 1,
                              lines, what, offsets.count));
    std::vector<std::int64_t> ptr =
        read_integers(offsets, 0, static_cast<std::int64_t>(most), "an offset");
    for (std::int64_t i = 0; i < lines; ++i)
      if (ptr[i] > ptr[i + 1])
        throw Error(fmt::format("{}: expected rising offsets, got {} after {}", offsets.label,
                                ptr[i + 1], ptr[i]));
    if (ptr.front() != 0)
      throw Error(
          fmt::format("{}: expected offsets from 0 on, got {}", offsets.label, ptr.front()));
    return ptr;
  }

  // The first `count` of the array, each below `size`.
  static std::vector<std::int32_t> read_indices(const Array& array, std::int64_t count,
                                                std::int64_t size, std::string_view what) {
    std::vector<std::int32_t> indices(count);
    visit(array, [&](auto read) {
      for (std::int64_t i = 0; i < count; ++i) {
        const auto index = static_cast<std::int64_t>(read(i));
        if (index < 0 || index >= size)
          throw Error(fmt::format("{}: expected {} from 0 to {}, got {} at {}", array.label, what,
                                  size - 1, index, i));
        indices[i] = static_cast<std::int32_t>(index);
      }
    });
    return indices;
  }

  // The matrix of the `count` entries that `add_all(read, add)` adds as row, column and value.
  template <class AddAll>
  CsrMatrix assembled(std::int64_t count, const Array& values, const AddAll& add_all) const {
    require_memory(count);
    std::vector<EntryBlock<ValueEntry>> blocks(1);
    blocks[0].entries.reserve(count);
    const auto add = [&](std::int64_t row, std::int64_t col, auto value) {
      blocks[0].add({static_cast<std::int32_t>(row), static_cast<std::int32_t>(col),
                     static_cast<double>(value)},
                    Symmetry::general);
    };
    visit(values, [&](auto read) { add_all(read, add); });
    return assemble_csr(rows_, cols_, Symmetry::general, std::move(blocks), omp_get_max_threads(),
                        fp64_);
  }

  void require_memory(std::int64_t count) const {
    const std::size_t available = memory_bytes_ != 0 ? memory_bytes_ : available_memory_bytes();
    const double entry_bytes =
        sizeof(ValueEntry) + sizeof(std::int32_t) + sizeof(float) + (fp64_ ? sizeof(double) : 0);
    const double needed = sizeof(std::int64_t) * (static_cast<double>(rows_) + 1) +
                          entry_bytes * static_cast<double>(count);
    if (needed > static_cast<double>(available))
      throw Error(fmt::format(
          "{}: expected a matrix that fits in memory, got {} x {}: needs {}, {} available", path_,
          rows_, cols_, format_bytes(needed), format_bytes(static_cast<double>(available))));
  }

  const NpzMembers& members_;
  const std::string& path_;
  bool fp64_;
  std::size_t memory_bytes_;
  std::int64_t rows_ = 0, cols_ = 0;
};

}  // namespace

CsrMatrix csr_from_npz(const NpzMembers& members, const std::string& path, std::size_t memory_bytes,
                       bool fp64) {
  const std::string format = read_format(members, path);
  const auto npz = [&] { return Npz(members, path, fp64, memory_bytes); };
  if (format == "csr") return npz().from_csr();
  if (format == "csc") return npz().from_csc();
  if (format == "coo") return npz().from_coo();
  if (format == "bsr") return npz().from_bsr();
  throw Error(
      fmt::format("{}: expected a matrix in CSR, CSC, COO or BSR, got format {}: save "
                  "matrix.tocsr()",
                  path, quote(format)));
}

CsrMatrix read_npz(const std::string& path, bool fp64) {
  std::vector<std::string> names;
  for (const char* const member : kMembers) names.push_back(fmt::format("{}.npy", member));
  NpzMembers members;
  for (auto& [name, bytes] : unzip_members(path, names))
    members[name.substr(0, name.size() - 4)] = std::move(bytes);
  return csr_from_npz(members, path, 0, fp64);
}

}  // namespace spmmbench
