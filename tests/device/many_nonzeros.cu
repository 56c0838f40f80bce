#include "many_nonzeros.hpp"

#include <cuda_fp16.h>

#include "gpu/cuda_check.hpp"

namespace spmmbench::test {
namespace {

__global__ void fill_row(ManyNonzeros a, std::int64_t* row_ptr, std::int32_t* col_idx,
                         __half* values) {
  const std::int64_t row = blockIdx.x;
  if (threadIdx.x == 0) row_ptr[row] = row * a.per_row;
  if (threadIdx.x == 0 && row + 1 == a.rows) row_ptr[a.rows] = a.nnz();
  for (std::int64_t j = threadIdx.x; j < a.per_row; j += blockDim.x) {
    col_idx[row * a.per_row + j] = a.column(row, j);
    values[row * a.per_row + j] = __int2half_rn(a.value(row, j));
  }
}

}  // namespace

void fill_csr(const ManyNonzeros& a, std::int64_t* row_ptr, std::int32_t* col_idx, void* values,
              Stream stream) {
  fill_row<<<static_cast<unsigned>(a.rows), 256, 0, static_cast<cudaStream_t>(stream.handle)>>>(
      a, row_ptr, col_idx, static_cast<__half*>(values));
  SPMMBENCH_CUDA_LAUNCHED();
}

}  // namespace spmmbench::test
