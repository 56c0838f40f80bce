// A for cuSPARSE from CSR on the device: only indices of another width and the rows of coordinates
// are made.

#include <cuda_runtime.h>

#include <cstdint>
#include <limits>
#include <type_traits>
#include <utility>

#include "cusparse/cusparse.hpp"
#include "gpu/cuda_check.hpp"

namespace spmmbench {
namespace {

constexpr int kConvertThreads = 256;

unsigned convert_ctas(std::int64_t threads) {
  return static_cast<unsigned>((threads + kConvertThreads - 1) / kConvertThreads);
}

template <class From, class To>
__global__ void convert_indices(const From* from, To* to, std::int64_t count) {
  const std::int64_t i = std::int64_t{blockIdx.x} * kConvertThreads + threadIdx.x;
  if (i < count) to[i] = static_cast<To>(from[i]);
}

// A warp for each row.
template <class Index>
__global__ void write_rows(DeviceCsr a, Index* rows) {
  const std::int64_t row = std::int64_t{blockIdx.x} * (kConvertThreads / 32) + threadIdx.x / 32;
  if (row >= a.rows) return;
  for (std::int64_t e = a.row_ptr[row] + threadIdx.x % 32; e < a.row_ptr[row + 1]; e += 32)
    rows[e] = static_cast<Index>(row);
}

// The same indices as `To`: themselves, or copies that `out` holds.
template <class To, class From>
To* indices_as(const From* from, std::int64_t count, Device& device, SparseOnDevice& out) {
  if constexpr (std::is_same_v<To, From>) {
    return const_cast<To*>(from);  // cuSPARSE only reads them
  } else {
    const Buffer& to = out.memory.emplace_back(device.allocate(count * sizeof(To)));
    if (count > 0) {
      convert_indices<<<convert_ctas(count), kConvertThreads, 0,
                        static_cast<cudaStream_t>(device.stream().handle)>>>(from, to.as<To>(),
                                                                             count);
      SPMMBENCH_CUDA_LAUNCHED();
      device.synchronize();
    }
    return to.as<To>();
  }
}

template <class Index>
constexpr cusparseIndexType_t kIndexType =
    std::is_same_v<Index, std::int32_t> ? CUSPARSE_INDEX_32I : CUSPARSE_INDEX_64I;

template <class Index>
void make_csr(const DeviceCsr& a, SparseOnDevice& out, Device& device) {
  Index* const row_ptr = indices_as<Index>(a.row_ptr, a.rows + 1, device, out);
  Index* const col_idx = indices_as<Index>(a.col_idx, a.nnz, device, out);
  out.describe = [a, row_ptr, col_idx] {
    cusparseSpMatDescr_t matrix = nullptr;
    SPMMBENCH_CUSPARSE(cusparseCreateCsr, &matrix, a.rows, a.cols, a.nnz, row_ptr, col_idx,
                       const_cast<void*>(a.values), kIndexType<Index>, kIndexType<Index>,
                       CUSPARSE_INDEX_BASE_ZERO, cuda_type(a.value_type));
    return SparseDescriptor(matrix);
  };
}

template <class Index>
void make_coo(SparseOnDevice& out, Device& device, StageTimer& stages) {
  const DeviceCsr a = out.csr->view();
  Index* const col_idx = indices_as<Index>(a.col_idx, a.nnz, device, out);
  const auto timed = stages.scope("build");
  Index* const rows =
      out.memory.emplace_back(device.allocate(a.nnz * sizeof(Index))).template as<Index>();
  if (a.rows > 0) {
    write_rows<<<convert_ctas(a.rows * 32), kConvertThreads, 0,
                 static_cast<cudaStream_t>(device.stream().handle)>>>(a, rows);
    SPMMBENCH_CUDA_LAUNCHED();
  }
  device.synchronize();
  out.describe = [a, rows, col_idx] {
    cusparseSpMatDescr_t matrix = nullptr;
    SPMMBENCH_CUSPARSE(cusparseCreateCoo, &matrix, a.rows, a.cols, a.nnz, rows, col_idx,
                       const_cast<void*>(a.values), kIndexType<Index>, CUSPARSE_INDEX_BASE_ZERO,
                       cuda_type(a.value_type));
    return SparseDescriptor(matrix);
  };
}

SparseOnDevice resident(const SparseOperand& a, Device& device, StageTimer& stages) {
  SparseOnDevice out;
  out.csr.emplace(a, device, stages);
  out.stored = a.nnz();
  return out;
}

// The bytes of indices that the CSR has in another width.
std::int64_t index_bytes(const SparseOperand& a, std::int64_t narrowed, std::int64_t widened) {
  return fits_32_bits(a) ? narrowed * 4 : widened * 8;
}

}  // namespace

bool fits_32_bits(const SparseOperand& a) {
  return a.nnz() < std::numeric_limits<std::int32_t>::max();
}

SparseOnDevice resident_csr(const SparseOperand& a, Device& device, StageTimer& stages) {
  SparseOnDevice out = resident(a, device, stages);
  if (fits_32_bits(a)) make_csr<std::int32_t>(out.csr->view(), out, device);
  else make_csr<std::int64_t>(out.csr->view(), out, device);
  return out;
}

SparseOnDevice resident_transposed(const SparseOperand& a, Device& device, StageTimer& stages) {
  const ResidentCsr given(a, device, stages);
  SparseOnDevice out;
  out.stored = a.nnz();
  {
    const auto timed = stages.scope("transpose");
    out.transposed.emplace(transpose_on_device(given.view(), device));
    out.transposed->source = {};
  }
  make_csr<std::int32_t>(out.transposed->a.view(), out, device);
  return out;
}

std::size_t transposed_bytes(const SparseOperand& a) {
  // A column, its number of 64 bits and which entry it is, and those of the sort.
  constexpr std::int64_t kSortBytes = 40;
  constexpr std::int64_t kRowBytes = sizeof(std::int64_t) + sizeof(std::int32_t);
  const std::int64_t entry = std::int64_t{sizeof(std::int32_t)} +
                             static_cast<std::int64_t>(bytes_of(storage_type(a.precision)));
  return resident_bytes(a) +
         static_cast<std::size_t>((a.k() + 1) * kRowBytes + a.nnz() * (entry + kSortBytes));
}

std::size_t csr_bytes(const SparseOperand& a) {
  return resident_bytes(a) + static_cast<std::size_t>(index_bytes(a, a.m() + 1, a.nnz()));
}

SparseOnDevice resident_coo(const SparseOperand& a, Device& device, StageTimer& stages) {
  SparseOnDevice out = resident(a, device, stages);
  if (fits_32_bits(a)) make_coo<std::int32_t>(out, device, stages);
  else make_coo<std::int64_t>(out, device, stages);
  return out;
}

std::size_t coo_bytes(const SparseOperand& a) {
  return resident_bytes(a) + static_cast<std::size_t>(index_bytes(a, a.nnz(), 2 * a.nnz()));
}

}  // namespace spmmbench
