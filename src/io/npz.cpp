#include "io/npz.hpp"

#include <fmt/format.h>
#include <omp.h>

#include <cstring>
#include <limits>
#include <vector>

#include "io/csr_assembly.hpp"
#include "io/file.hpp"
#include "io/npy.hpp"
#include "io/zip.hpp"
#include "spmmbench/error.hpp"
#include "spmmbench/precision.hpp"

namespace spmmbench {
namespace {

constexpr const char* kMembers[] = {"format", "shape", "data", "indices", "indptr"};

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

// Checks that the array is a vector that its data fill.
Array open_vector(const NpzMembers& members, const std::string& name, std::string_view kinds,
                  const std::string& path) {
  Array array = open(members, name, path);
  const bool known_size = array.element_bytes == 1 || array.element_bytes == 2 ||
                          array.element_bytes == 4 || array.element_bytes == 8;
  if (kinds.find(array.kind) == std::string_view::npos || !known_size)
    throw Error(fmt::format("{}: expected {}{}, got type {}", array.label,
                            kinds == "i" ? "signed integers" : "real numbers",
                            known_size ? "" : " of 1, 2, 4 or 8 bytes", quote(array.npy.type)));
  array.count = array.npy.data.size() / array.element_bytes;
  if (array.npy.shape.size() != 1 || array.npy.shape[0] < 0 ||
      static_cast<std::size_t>(array.npy.shape[0]) != array.count ||
      array.npy.data.size() % array.element_bytes != 0)
    throw Error(fmt::format("{}: expected a vector as long as its header says, got {} bytes",
                            array.label, array.npy.data.size()));
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

}  // namespace

CsrMatrix csr_from_npz(const NpzMembers& members, const std::string& path) {
  if (const std::string format = read_format(members, path); format != "csr")
    throw Error(fmt::format("{}: expected a CSR matrix, got format {}: save matrix.tocsr()", path,
                            quote(format)));
  const auto vector = [&](const char* name, std::string_view kinds) {
    return open_vector(members, name, kinds, path);
  };
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  const Array shape = vector("shape", "i"), offsets = vector("indptr", "i");
  const Array columns = vector("indices", "i"), values = vector("data", "fiub");
  if (shape.count != 2)
    throw Error(
        fmt::format("{}: expected rows and columns, got {} numbers", shape.label, shape.count));
  const std::vector<std::int64_t> sizes = read_integers(shape, 0, kMost, "rows and columns");
  CsrMatrix csr;
  csr.rows = sizes[0];
  csr.cols = sizes[1];
  if (offsets.count != static_cast<std::size_t>(csr.rows) + 1)
    throw Error(fmt::format("{}: expected {} offsets for {} rows, got {}", offsets.label,
                            csr.rows + 1, csr.rows, offsets.count));
  if (columns.count != values.count)
    throw Error(fmt::format("{}: expected as many columns as values, got {} and {}", path,
                            columns.count, values.count));
  csr.row_ptr = read_integers(offsets, 0, static_cast<std::int64_t>(columns.count), "an offset");
  for (std::int64_t row = 0; row < csr.rows; ++row)
    if (csr.row_ptr[row] > csr.row_ptr[row + 1])
      throw Error(fmt::format("{}: expected rising offsets, got {} after {}", offsets.label,
                              csr.row_ptr[row + 1], csr.row_ptr[row]));
  if (csr.row_ptr.front() != 0)
    throw Error(
        fmt::format("{}: expected offsets from 0 on, got {}", offsets.label, csr.row_ptr.front()));
  const std::int64_t nnz = csr.nnz();  // what lies behind the last offset is spare room
  csr.col_idx.resize(nnz);
  csr.values.resize(nnz);
  visit(columns, [&](auto read) {
    for (std::int64_t i = 0; i < nnz; ++i) {
      const auto col = static_cast<std::int64_t>(read(i));
      if (col < 0 || col >= csr.cols)
        throw Error(fmt::format("{}: expected columns from 0 to {}, got {} at {}", columns.label,
                                csr.cols - 1, col, i));
      csr.col_idx[i] = static_cast<std::int32_t>(col);
    }
  });
  visit(values, [&](auto read) {
    for (std::int64_t i = 0; i < nnz; ++i) csr.values[i] = static_cast<float>(read(i));
  });
  const std::vector<std::int64_t> merged = sort_rows(csr, omp_get_max_threads());
  if (!merged.empty()) sum_exactly(csr, merged, offsets, columns, values);
  return csr;
}

CsrMatrix read_npz(const std::string& path) {
  std::vector<std::string> names;
  for (const char* const member : kMembers) names.push_back(fmt::format("{}.npy", member));
  NpzMembers members;
  for (auto& [name, bytes] : unzip_members(path, names))
    members[name.substr(0, name.size() - 4)] = std::move(bytes);
  return csr_from_npz(members, path);
}

}  // namespace spmmbench
