#pragma once
// What callers of the C interface pass, checked and in the types of the library. A function throws
// Error, which says what was expected, for what plugin.h does not allow.

#include <fmt/format.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "spmmbench/error.hpp"
#include "spmmbench/kernel.hpp"
#include "spmmbench/plugin.h"

namespace spmmbench {

// `least`: its size in version 1 of the interface.
template <class Struct>
const Struct& checked(const Struct* given, const char* name, std::size_t least = sizeof(Struct)) {
  if (given == nullptr) throw Error(fmt::format("{}: expected one, got NULL", name));
  if (given->size < least)
    throw Error(
        fmt::format("{}.size is {}: expected sizeof({}), {}", name, given->size, name, least));
  return *given;
}

// Whether the caller of a struct, by its size, has this member.
template <class Struct, class Member>
bool has_member(const Struct& given, Member Struct::*member) {
  const auto* const end = reinterpret_cast<const char*>(&(given.*member) + 1);
  return static_cast<std::size_t>(end - reinterpret_cast<const char*>(&given)) <= given.size;
}

// The scale of A or B in fp8; 1 if the caller gives none. Throws Error for what is no scale.
template <class Struct>
float scale_of_given(const Struct& given, const char* name) {
  if (!has_member(given, &Struct::scale) || given.scale == 0) return 1;
  if (!(given.scale > 0) || !std::isfinite(given.scale))
    throw Error(
        fmt::format("{}.scale is {:g}: expected a finite number above 0", name, given.scale));
  return given.scale;
}

// What `given` points to. Throws Error, with the argument's name, where it is NULL.
template <class Pointee>
Pointee& required(Pointee* given, const char* name) {
  if (given == nullptr) throw Error(fmt::format("{} is NULL", name));
  return *given;
}

// Whether 16-bit elements can be copied in bulk: 16 bytes divide where they lie and the distance of
// one line from the next, which is in elements.
bool is_aligned_for_bulk(const void* data, std::int64_t distance);

// fp16 or bf16. Throws Unsupported, with what takes them, for another type.
ElementType read_16_bit_type(std::int32_t type, const char* taker);

Precision read_precision(std::int32_t precision);
Accumulation read_accumulation(std::int32_t accumulation);
Shape read_shape(const spmmbench_shape* given);
// Throws Error where B or C, for A of `rows` and `cols`, is larger than sizes can be counted.
void check_bytes(std::int64_t rows, std::int64_t cols, Precision precision, const Shape& shape);
// Name and value in turn, ended by a null.
Options read_options(const char* const* given, const Kernel& kernel);

ElementType read_element_type(std::int32_t value_type);
bool is_wide(std::int32_t index_type);         // SPMMBENCH_I64
void check_sizes(const spmmbench_csr& given);  // rows, cols and nnz
// Arrays of SPMMBENCH_CUDA are read through `memory`. The columns of a row are sorted, and values
// are rounded to `precision`, in fp8 with a scale of the matrix. `source`, where given: for each
// entry which of the given ones it is, empty where they are in that order.
CsrMatrix read_csr(const spmmbench_csr& given, Precision precision, Device& memory,
                   std::vector<std::int64_t>* source = nullptr);
// `count` values as they are.
std::vector<double> read_values(const void* values, std::int64_t count, ElementType type,
                                std::int32_t memory, Device& device);
// None where none are given.
std::vector<std::int32_t> read_row_ids(const spmmbench_csr& given, Device& memory);

// `expected`, with data and ld of what is given.
DenseView read_dense(const spmmbench_dense* dense, const DenseView& expected, const char* name,
                     DeviceKind kind);

}  // namespace spmmbench
