#pragma once
// CSR in the memory of a GPU, in whatever types its owner has it: checked and brought into those of
// DeviceCsr there. No array goes to the host. given_csr_stub.cpp stands for it without CUDA.

#include <cstdint>
#include <memory>

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

// The check of arrays that kernels may read before its result is known.
class PendingCheck {
 public:
  virtual ~PendingCheck() = default;
  // `finish` waits for what was enqueued before this, and for nothing behind it.
  virtual void mark() = 0;
  // Waits for the check. Sorts `a`, in the memory where it lies, where columns do not ascend.
  // Throws what read_csr_on_device throws of arrays that are no matrix. The given arrays are still
  // there.
  virtual void finish(ReorderedCsr& a) = 0;
};

struct CsrReadAhead {
  ReorderedCsr a;
  std::unique_ptr<PendingCheck> check;
};

// As read_csr_on_device and read_transposed_on_device, but without a wait. Until the check is
// finished, columns may ascend or not. Where the arrays are no matrix, `a` is one all the same: all
// entries lie in the last row and in column 0, so that a kernel for plain CSR reads and writes
// nothing outside.
CsrReadAhead read_csr_ahead(const GivenCsr& given, Precision precision, Device& device);
CsrReadAhead read_transposed_ahead(const GivenCsr& given, Precision precision, Device& device);

// A^T of arrays that were read, without a wait. Its check waits for what is enqueued and finds
// nothing, since whatever is wrong with A is found by A's own check.
CsrReadAhead transpose_ahead(const ReorderedCsr& a, Device& device);

// Whether A equals its transpose, to the bit of each value. Its columns ascend. Waits.
bool is_symmetric(const DeviceCsr& a, Device& device);

// A^T, by a stable radix sort of the columns, which need not ascend. The source of its entries is
// that of A's. Throws Error from 2^31 - 1 nonzeros on. Returns when it is done.
ReorderedCsr transpose_on_device(const ReorderedCsr& a, Device& device);
ReorderedCsr transpose_on_device(const DeviceCsr& a, Device& device);
// The same, enqueued on the legacy default stream. Whatever the entries of `a` are, nothing outside
// of its arrays is read, and memory that is not used any more may be freed at once.
ReorderedCsr enqueue_transpose(const ReorderedCsr& a, Device& device);

// to[i] = from[source[i]], or from[i] without `source`, rounded to `precision` and in its storage
// type. All lie on the device. Enqueues on `stream`.
void convert_values(const void* from, ElementType type, const std::int32_t* source, void* to,
                    Precision precision, std::int64_t count, Stream stream);

// Throws Error, naming `what`, where `bytes` bytes from `data` on are not memory of the device.
void require_device_memory(const void* data, std::int64_t bytes, const char* what, Device& device);

}  // namespace spmmbench
