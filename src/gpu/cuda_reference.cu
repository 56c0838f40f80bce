// The fp64 reference on the GPU, fused with the comparison so that Cref never exists in memory:
// one block per (row of A, 32 columns of C) computes Cref and |A||B| with a straight CSR loop and
// compares the 32 elements of C.
//
//   warp w takes the row's nonzeros w, w + 8, ...; lane j owns column j of the slab
//   -> shared [8 warps][32 columns] partial sums -> warp 0 adds them in order and compares
//
// Blocks walk over the tasks with a fixed stride and each keeps its own worst element and sums, so
// the verdict is the same on every run.

#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>
#include <vector>

#include "gpu/backend.hpp"
#include "gpu/cuda_check.hpp"
#include "gpu/element.cuh"

namespace spmmbench {
namespace {

constexpr int kWarps = 8;
constexpr int kSlab = 32;  // columns of C per task: one per lane
constexpr int kBlocksPerSm = 8;
constexpr unsigned kFullWarp = 0xFFFFFFFFU;

struct CsrOnDevice {
  std::int64_t rows;
  const std::int64_t* row_ptr;
  const std::int32_t* col_idx;
  const float* values;
  const std::int32_t* row_ids;  // null: identity
};

// What one block found. `ratio` is -1 when it had no element.
struct Finding {
  double ratio;
  std::int64_t row;
  std::int64_t col;
  double squared_error;
  double squared_reference;
};

__device__ std::int64_t index_of(const DenseView& view, std::int64_t row, std::int64_t col) {
  return view.layout == Layout::row_major ? row * view.ld + col : col * view.ld + row;
}

__device__ double error_over_bound(double c, double reference, double magnitude, std::int64_t nnz,
                                   const ErrorBound& bound) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (!isfinite(c)) return kInfinity;
  const double error = fabs(c - reference);
  const double growth = fmin(static_cast<double>(nnz) * bound.unit, 1.0) * magnitude;
  const double allowed =
      nnz == 0 ? 0.0
               : growth + bound.output_unit * (fabs(reference) + growth) + bound.output_absolute;
  if (error == 0.0) return 0.0;
  return allowed == 0.0 ? kInfinity : error / allowed;
}

__device__ bool is_worse(const Finding& a, const Finding& b) {
  if (a.ratio != b.ratio) return a.ratio > b.ratio;
  return a.row != b.row ? a.row < b.row : a.col < b.col;
}

__device__ Finding shuffle_down(const Finding& f, int distance) {
  return {__shfl_down_sync(kFullWarp, f.ratio, distance),
          __shfl_down_sync(kFullWarp, f.row, distance),
          __shfl_down_sync(kFullWarp, f.col, distance),
          __shfl_down_sync(kFullWarp, f.squared_error, distance),
          __shfl_down_sync(kFullWarp, f.squared_reference, distance)};
}

template <class TB, class TC>
__global__ void __launch_bounds__(kWarps * 32)
    check_kernel(CsrOnDevice a, DenseView b, DenseView c, ErrorBound bound, Finding* findings) {
  __shared__ double sums[kWarps][kSlab];
  __shared__ double magnitudes[kWarps][kSlab];
  const int lane = threadIdx.x % 32;
  const int warp = threadIdx.x / 32;
  const std::int64_t slabs = (c.cols + kSlab - 1) / kSlab;
  Finding worst{-1, 0, 0, 0, 0};

  for (std::int64_t task = blockIdx.x; task < a.rows * slabs; task += gridDim.x) {
    const std::int64_t row = task / slabs;
    const std::int64_t col = task % slabs * kSlab + lane;
    const std::int64_t begin = a.row_ptr[row];
    const std::int64_t end = a.row_ptr[row + 1];
    double sum = 0;
    double magnitude = 0;
    if (col < c.cols) {
#pragma unroll 4
      for (std::int64_t e = begin + warp; e < end; e += kWarps) {
        const double value = a.values[e];
        const double x = to_float(static_cast<const TB*>(b.data)[index_of(b, a.col_idx[e], col)]);
        sum += value * x;
        magnitude += fabs(value * x);
      }
    }
    sums[warp][lane] = sum;
    magnitudes[warp][lane] = magnitude;
    __syncthreads();
    if (warp == 0 && col < c.cols) {
      for (int w = 1; w < kWarps; ++w) {
        sum += sums[w][lane];
        magnitude += magnitudes[w][lane];
      }
      const std::int64_t c_row = a.row_ids == nullptr ? row : a.row_ids[row];
      const double value = to_float(static_cast<const TC*>(c.data)[index_of(c, c_row, col)]);
      const Finding here{error_over_bound(value, sum, magnitude, end - begin, bound), c_row, col,
                         worst.squared_error + (value - sum) * (value - sum),
                         worst.squared_reference + sum * sum};
      if (is_worse(here, worst)) {
        worst = here;
      } else {
        worst.squared_error = here.squared_error;
        worst.squared_reference = here.squared_reference;
      }
    }
    __syncthreads();
  }

  if (warp != 0) return;
  for (int distance = 16; distance > 0; distance /= 2) {
    Finding other = shuffle_down(worst, distance);
    other.squared_error += worst.squared_error;
    other.squared_reference += worst.squared_reference;
    if (!is_worse(other, worst)) {
      other.ratio = worst.ratio;
      other.row = worst.row;
      other.col = worst.col;
    }
    worst = other;
  }
  if (lane == 0) findings[blockIdx.x] = worst;
}

class CudaReference final : public ReferenceChecker {
 public:
  CudaReference(const CsrMatrix& a, std::span<const std::int32_t> row_ids, Device& device)
      : device_(device),
        rows_(a.rows),
        blocks_(kBlocksPerSm * device.info().sm_count),
        row_ptr_(device.upload(a.row_ptr)),
        col_idx_(device.upload(a.col_idx)),
        values_(device.upload(a.values)),
        row_ids_(device.upload(row_ids)),
        findings_(device.allocate(blocks_ * sizeof(Finding))) {}

  Verdict check(const DenseView& b, const DenseView& c, const ErrorBound& bound) override {
    const CsrOnDevice a{rows_, row_ptr_.as<std::int64_t>(), col_idx_.as<std::int32_t>(),
                        values_.as<float>(), row_ids_.as<std::int32_t>()};
    visit_element_type(b.type, [&](auto* b_tag) {
      using TB = std::remove_pointer_t<decltype(b_tag)>;
      visit_element_type(c.type, [&](auto* c_tag) {
        using TC = std::remove_pointer_t<decltype(c_tag)>;
        check_kernel<TB, TC>
            <<<blocks_, kWarps * 32, 0, static_cast<cudaStream_t>(device_.stream().handle)>>>(
                a, b, c, bound, findings_.as<Finding>());
      });
    });
    SPMMBENCH_CUDA_LAUNCHED();
    std::vector<Finding> findings(blocks_);
    device_.download(findings.data(), findings_.data(), findings_.bytes());
    return reduce(findings);
  }

 private:
  static Verdict reduce(const std::vector<Finding>& findings) {
    const auto before = [](const Finding& x, const Finding& y) {
      if (x.ratio != y.ratio) return x.ratio > y.ratio;
      return x.row != y.row ? x.row < y.row : x.col < y.col;
    };
    const Finding& worst = *std::min_element(findings.begin(), findings.end(), before);
    double squared_error = 0;
    double squared_reference = 0;
    for (const Finding& f : findings) {
      squared_error += f.squared_error;
      squared_reference += f.squared_reference;
    }
    Verdict verdict;
    verdict.error_over_bound = std::max(worst.ratio, 0.0);
    verdict.ok = verdict.error_over_bound <= 1.0;
    verdict.worst_row = worst.row;
    verdict.worst_col = worst.col;
    verdict.relative_frobenius = relative(squared_error, squared_reference);
    return verdict;
  }

  static double relative(double squared_error, double squared_reference) {
    if (!std::isfinite(squared_error)) return std::numeric_limits<double>::quiet_NaN();
    return squared_error == 0 ? 0 : std::sqrt(squared_error / squared_reference);
  }

  Device& device_;
  std::int64_t rows_;
  int blocks_;
  Buffer row_ptr_, col_idx_, values_, row_ids_, findings_;
};

}  // namespace

std::unique_ptr<ReferenceChecker> make_cuda_reference(const CsrMatrix& a,
                                                      std::span<const std::int32_t> row_ids,
                                                      Device& device) {
  return std::make_unique<CudaReference>(a, row_ids, device);
}

}  // namespace spmmbench
