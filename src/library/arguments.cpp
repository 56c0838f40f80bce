#include "library/arguments.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <numeric>
#include <tuple>

#include "core/dense_bytes.hpp"
#include "core/greatest_magnitude.hpp"
#include "core/limits.hpp"
#include "plugin/description.hpp"

namespace spmmbench {
namespace {

template <class Enum, class Known>
Enum checked_enum(std::int32_t value, const Known& known, const char* what) {
  for (const Enum entry : known)
    if (static_cast<std::int32_t>(entry) == value) return entry;
  throw Error(fmt::format("{} {}: not one of plugin.h", what, value));
}

Layout checked_layout(std::int32_t value) {
  return checked_enum<Layout>(value, std::array{Layout::row_major, Layout::col_major}, "layout");
}

ElementType checked_element_type(std::int32_t value, const char* what) {
  return checked_enum<ElementType>(value, kElementTypes, what);
}

// Reads an array that lies on the host or on the device.
class Reader {
 public:
  Reader(std::int32_t memory, Device& device) : memory_(memory), device_(device) {}

  // `name`: of the array, for what is wrong with it.
  template <class From>
  std::vector<From> read(const void* from, std::int64_t count, const char* name) const {
    std::vector<From> out(count);
    const std::size_t bytes = out.size() * sizeof(From);
    if (count == 0) return out;
    if (from == nullptr) throw Error(fmt::format("spmmbench_csr: {} is NULL", name));
    if (memory_ == SPMMBENCH_CUDA) device_.download(out.data(), from, bytes);
    else std::memcpy(out.data(), from, bytes);
    return out;
  }

  // Indices of either width, as To. `limit`: the largest that is allowed.
  template <class To>
  std::vector<To> read_indices(const void* from, std::int64_t count, std::int32_t type,
                               std::int64_t limit, const char* name) const {
    const auto narrow = [&](const auto& wide) {
      std::vector<To> out(wide.size());
      for (std::size_t i = 0; i < wide.size(); ++i) {
        if (wide[i] < 0 || wide[i] > limit)
          throw Error(fmt::format("spmmbench_csr: index {} is not in [0, {}]: {}[{}]", wide[i],
                                  limit, name, i));
        out[i] = static_cast<To>(wide[i]);
      }
      return out;
    };
    if (is_wide(type)) return narrow(read<std::int64_t>(from, count, name));
    return narrow(read<std::int32_t>(from, count, name));
  }

  // As Value: float or double.
  template <class Value>
  std::vector<Value> read_values(const void* from, std::int64_t count, ElementType type) const {
    return visit_element(type, [&](auto element) {
      const auto bits = read<typename decltype(element)::Bits>(from, count, "values");
      std::vector<Value> out(bits.size());
      std::transform(bits.begin(), bits.end(), out.begin(),
                     [&](auto each) { return static_cast<Value>(element.decode(each)); });
      return out;
    });
  }

 private:
  std::int32_t memory_;
  Device& device_;
};

void sort_rows(CsrMatrix& a, std::vector<std::int64_t>* source) {
  std::vector<std::int64_t> order;
  std::vector<std::int32_t> columns;
  std::vector<float> values;
  std::vector<double> values64;
  for (std::int64_t row = 0; row < a.rows; ++row) {
    const std::int64_t begin = a.row_ptr[row], end = a.row_ptr[row + 1];
    if (begin > end || std::is_sorted(a.col_idx.begin() + begin, a.col_idx.begin() + end)) continue;
    order.resize(end - begin);
    std::iota(order.begin(), order.end(), begin);
    std::sort(order.begin(), order.end(),
              [&](auto x, auto y) { return a.col_idx[x] < a.col_idx[y]; });
    if (source != nullptr) {
      if (source->empty()) {
        source->resize(a.nnz());
        std::iota(source->begin(), source->end(), 0);
      }
      std::copy(order.begin(), order.end(), source->begin() + begin);
    }
    columns.clear();
    values.clear();
    values64.clear();
    for (const std::int64_t entry : order) {
      columns.push_back(a.col_idx[entry]);
      values.push_back(a.values[entry]);
      if (!a.values64.empty()) values64.push_back(a.values64[entry]);
    }
    std::copy(columns.begin(), columns.end(), a.col_idx.begin() + begin);
    std::copy(values.begin(), values.end(), a.values.begin() + begin);
    std::copy(values64.begin(), values64.end(), a.values64.begin() + begin);
  }
}

}  // namespace

ElementType read_element_type(std::int32_t value_type) {
  return checked_element_type(value_type, "value_type");
}

bool is_wide(std::int32_t index_type) {
  if (index_type != SPMMBENCH_I32 && index_type != SPMMBENCH_I64)
    throw Error(fmt::format("spmmbench_csr: index type {}: expected I32 or I64", index_type));
  return index_type == SPMMBENCH_I64;
}

void check_sizes(const spmmbench_csr& given) {
  if (given.nnz < 0 || given.rows < 0 || given.rows > INT32_MAX || given.cols < 0 ||
      given.cols > INT32_MAX)
    throw Error("spmmbench_csr: expected sizes from 0, and rows and cols below 2^31");
  if (given.nnz > given.rows * given.cols)
    throw Error(fmt::format("spmmbench_csr: nnz is {}: expected at most {} x {}", given.nnz,
                            given.rows, given.cols));
}

std::vector<double> read_values(const void* values, std::int64_t count, ElementType type,
                                std::int32_t memory, Device& device) {
  return Reader(memory, device).read_values<double>(values, count, type);
}

CsrMatrix read_csr(const spmmbench_csr& given, Precision precision, Device& memory,
                   std::vector<std::int64_t>* source) {
  check_sizes(given);
  const Reader reader(given.memory, memory);
  CsrMatrix a{given.rows, given.cols, {}, {}, {}};
  a.row_ptr = reader.read_indices<std::int64_t>(given.row_ptr, given.rows + 1, given.row_ptr_type,
                                                given.nnz, "row_ptr");
  if (a.row_ptr.back() != given.nnz)
    throw Error(
        fmt::format("spmmbench_csr: row_ptr ends with {}, nnz is {}", a.row_ptr.back(), given.nnz));
  a.col_idx = reader.read_indices<std::int32_t>(given.col_idx, given.nnz, given.col_idx_type,
                                                given.cols - 1, "col_idx");
  if (given.values == nullptr) {
    a.values.assign(given.nnz, 1.0F);
  } else {
    const ElementType type = read_element_type(given.value_type);
    a.values = reader.read_values<float>(given.values, given.nnz, type);
    if (is_scaled(precision)) {
      a.scale = scale_of_given(given, "spmmbench_csr");
      if (type != storage_type(precision)) {
        const float own = nonzero_scale_of(precision, greatest_magnitude(a.values));
        for (float& value : a.values) value /= own;
        a.scale *= own;
      }
    }
    for (float& value : a.values) value = round_to(precision, value);
    if (precision == Precision::fp64)
      a.values64 = reader.read_values<double>(given.values, given.nnz, type);
  }
  if (precision == Precision::fp64 && given.values == nullptr) a.values64.assign(given.nnz, 1);
  sort_rows(a, source);
  validate(a);
  return a;
}

std::vector<std::int32_t> read_row_ids(const spmmbench_csr& given, Device& memory) {
  if (given.row_ids == nullptr) return {};
  auto row_ids =
      Reader(given.memory, memory).read<std::int32_t>(given.row_ids, given.rows, "row_ids");
  validate_permutation(row_ids, given.rows);
  return row_ids;
}

bool is_aligned_for_bulk(const void* data, std::int64_t distance) {
  constexpr std::int64_t kElementBytes = 2;
  return reinterpret_cast<std::uintptr_t>(data) % kVectorBytes == 0 &&
         distance * kElementBytes % kVectorBytes == 0;
}

ElementType read_16_bit_type(std::int32_t type, const char* taker) {
  if (type == SPMMBENCH_F16) return ElementType::f16;
  if (type == SPMMBENCH_BF16) return ElementType::bf16;
  throw Unsupported(fmt::format("{} takes fp16 and bf16", taker));
}

Precision read_precision(std::int32_t precision) {
  const auto read = checked_enum<Precision>(precision, kPrecisions, "precision");
  if (has_block_scales(read))
    throw Error(
        fmt::format("precision {}: this interface has no scales of blocks", to_string(read)));
  return read;
}

Accumulation read_accumulation(std::int32_t accumulation) {
  return checked_enum<Accumulation>(
      accumulation,
      std::array{Accumulation::fp32_fma, Accumulation::fp32_tensor_core, Accumulation::fp16},
      "accumulation");
}

Shape read_shape(const spmmbench_shape* given) {
  const spmmbench_shape& shape = checked(given, "spmmbench_shape", SPMMBENCH_SHAPE_SIZE_1);
  if (shape.n > kLargestN)
    throw Error(fmt::format("N = {}: expected at most {}", shape.n, kLargestN));
  if (shape.n < 1) throw Error(fmt::format("N = {}: expected at least 1", shape.n));
  return {shape.n, checked_element_type(shape.c_type, "c_type"), checked_layout(shape.layout)};
}

void check_bytes(std::int64_t rows, std::int64_t cols, Precision precision, const Shape& shape) {
  for (const auto& [name, lines, type] :
       {std::tuple{"B", cols, storage_type(precision)}, std::tuple{"C", rows, shape.c_type}})
    if (saturated_bytes(make_b_view(lines, shape.n, shape.layout, type)) == kBeyondMemory)
      throw Error(fmt::format("N = {}: {} would take 2^60 bytes or more", shape.n, name));
}

Options read_options(const char* const* given, const Kernel& kernel) {
  Options options;
  for (; given != nullptr && given[0] != nullptr; given += 2) {
    if (given[1] == nullptr) throw Error(fmt::format("option {} has no value", given[0]));
    options.set(given[0], given[1]);
  }
  check_options(kernel, options);
  return options;
}

DenseView read_dense(const spmmbench_dense* dense, const DenseView& expected, const char* name,
                     DeviceKind kind) {
  const spmmbench_dense& given = checked(dense, "spmmbench_dense", SPMMBENCH_DENSE_SIZE_1);
  DenseView view = expected;
  view.data = given.data;
  view.ld = given.ld;
  if (bytes_of(view.type) == 1) view.scale = scale_of_given(given, name);
  if (given.rows != view.rows || given.cols != view.cols ||
      given.layout != static_cast<std::int32_t>(view.layout) ||
      given.type != static_cast<std::int32_t>(view.type))
    throw Error(fmt::format("{} is {} x {}, layout {}, type {}: the plan expects {} x {}, {}, {}",
                            name, given.rows, given.cols, given.layout, given.type, view.rows,
                            view.cols, static_cast<int>(view.layout), static_cast<int>(view.type)));
  if (view.ld < view.line_length())
    throw Error(
        fmt::format("{}.ld is {}: expected at least {}", name, view.ld, view.line_length()));
  if (saturated_bytes(view) == kBeyondMemory)
    throw Error(fmt::format("{}.ld is {}: {} would take 2^60 bytes or more", name, view.ld, name));
  if (view.data == nullptr && view.rows > 0 && view.cols > 0)
    throw Error(fmt::format("{}.data is NULL", name));
  const std::size_t data_alignment =
      kind == DeviceKind::cuda ? std::size_t{kVectorBytes} : bytes_of(view.type);
  if (reinterpret_cast<std::uintptr_t>(view.data) % data_alignment != 0)
    throw Error(fmt::format("{}.data is no multiple of {} bytes", name, data_alignment));
  if (kind == DeviceKind::cuda) {
    const std::int64_t step = kVectorBytes / static_cast<std::int64_t>(bytes_of(view.type));
    // A vector: nothing lies at ld, but tensor maps want a multiple.
    if (view.layout == Layout::col_major && view.cols == 1)
      view.ld = (view.ld + step - 1) / step * step;
    if (view.ld % step != 0)
      throw Error(
          fmt::format("{}.ld is {}: expected a multiple of {} bytes", name, view.ld, kVectorBytes));
  }
  // Kernels take the distance of rows in 32 bits.
  constexpr std::int64_t kMostLineBytes = std::numeric_limits<std::uint32_t>::max();
  if (kind == DeviceKind::cuda && view.layout == Layout::row_major && view.lines() > 1 &&
      view.ld > kMostLineBytes / static_cast<std::int64_t>(bytes_of(view.type)))
    throw Error(fmt::format("{}.ld is {}: expected less than 4 GiB", name, view.ld));
  return view;
}

}  // namespace spmmbench
