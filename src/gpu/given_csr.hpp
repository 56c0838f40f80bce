#pragma once
// CSR in the memory of a GPU, in whatever types its owner has it: checked and brought into those of
// DeviceCsr there. No array goes to the host. given_csr_stub.cpp stands for it without CUDA.

#include <cstdint>

#include "gpu/csr_on_device.hpp"
#include "spmmbench/device.hpp"
#include "spmmbench/precision.hpp"

namespace spmmbench {

struct GivenCsr {
  std::int64_t rows = 0, cols = 0, nnz = 0;         // from 0 on, rows and cols below 2^31
  const void* row_ptr = nullptr;                    // rows + 1
  const void* col_idx = nullptr;                    // nnz
  const void* values = nullptr;                     // nnz; null: all are 1
  bool wide_row_ptr = false, wide_col_idx = false;  // int64, else int32
  ElementType value_type = ElementType::f32;
  float scale = 1;      // in fp8, of whatever type the values have
  bool checked = true;  // false: it is a matrix whose columns ascend, as the caller knows
};

// CSR whose entries have another order than those that it was made of.
struct ReorderedCsr {
  CsrOnDevice a;
  Buffer source;    // an int32 for each entry: which one of the others it is; null: the same one
  float scale = 1;  // of the values, in fp8
};

// A copy with ascending columns: checked in one pass over the arrays, and sorted only where columns
// do not ascend. Values are rounded to `precision`, in fp8 those of other types with a scale of the
// matrix, for whose greatest magnitude the host waits. Throws Error with the first place that is
// wrong, before anything is launched where an array is not memory of the device. Works in the order
// of the legacy default stream, on which callers' arrays are made as a rule, and returns when it is
// done, or enqueued where nothing is checked.
ReorderedCsr read_csr_on_device(const GivenCsr& given, Precision precision, Device& device);

// A^T of such arrays, with at most one wait for both; refuses what read_csr_on_device refuses.
ReorderedCsr read_transposed_on_device(const GivenCsr& given, Precision precision, Device& device);

// A^T, by a stable radix sort of the columns, which need not ascend. The source of its entries is
// that of A's. Throws Error from 2^31 - 1 nonzeros on. Returns when it is done.
ReorderedCsr transpose_on_device(const ReorderedCsr& a, Device& device);
ReorderedCsr transpose_on_device(const DeviceCsr& a, Device& device);

// to[i] = from[source[i]], or from[i] without `source`, rounded to `precision` and in its storage
// type. All lie on the device. Enqueues on `stream`.
void convert_values(const void* from, ElementType type, const std::int32_t* source, void* to,
                    Precision precision, std::int64_t count, Stream stream);

// Throws Error, naming `what`, where `bytes` bytes from `data` on are not memory of the device.
void require_device_memory(const void* data, std::int64_t bytes, const char* what, Device& device);

}  // namespace spmmbench
