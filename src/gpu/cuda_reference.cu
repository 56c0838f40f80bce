// The reference on the GPU, in two steps: a straight CSR loop computes Cref and |A||B|, one
// block per (row of A, 32 columns of C); then C is compared with them, one warp per 32 elements.
//
//   warp w takes the row's nonzeros w, w + 8, ...; lane j owns column j of the slab
//   -> shared [8 warps][32 columns] partial sums -> warp 0 adds them in order
//
// Sums are as in spmmbench/reference_sum.hpp. Where Cref and |A||B| fit in the given share of the
// free memory they are computed once for all checks; else in as many bands of rows as it takes, for
// every check. Warps walk over the tasks with a fixed stride and each keeps its own worst element
// and sums, so the verdict is the same on every run.

#include <cuda_runtime.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <type_traits>
#include <vector>

#include "core/word_hash.hpp"
#include "gpu/backend.hpp"
#include "gpu/cuda_check.hpp"
#include "gpu/element.cuh"
#include "spmmbench/block_scales.hpp"
#include "spmmbench/reference_sum.hpp"

namespace spmmbench {
namespace {

constexpr int kWarps = 8;
constexpr int kCompareThreads = 32 * kWarps;
constexpr int kSlab = 32;  // columns of C per task: one per lane
constexpr int kBlocksPerSm = 8;
constexpr int kFindingThreads = 1024;  // of one block; one warp would take 0.1 ms
constexpr unsigned kFullWarp = 0xFFFFFFFFU;

struct UploadedCsr {
  const std::int64_t* row_ptr;
  const std::int32_t* col_idx;
  const void* values;           // of fp64 where B is, else of fp32
  const std::int32_t* row_ids;  // null: identity
  float scale;
  const float* block_scales;  // null: blocks have none
  std::int64_t cols;
};

// The reference of the rows [first, first + rows) of A, row by row.
template <class Sum>
struct Band {
  std::int64_t first;
  std::int64_t rows;
  Sum* sums;
};

// What one warp found. `ratio` is -1 where it had no element.
struct Finding {
  double ratio;  // largest error / bound
  std::int64_t row;
  std::int64_t col;
  double typical;  // largest error / typical error
  std::int64_t incomparable;
  double squared_error;
  double squared_reference;
};
constexpr Finding kNothing{-1, 0, 0, 0, 0, 0, 0};

__device__ std::int64_t index_of(const DenseView& view, std::int64_t row, std::int64_t col) {
  return view.layout == Layout::row_major ? row * view.ld + col : col * view.ld + row;
}

// The worst element of both, and both sums.
__host__ __device__ Finding join(const Finding& a, const Finding& b) {
  const bool first = a.ratio != b.ratio ? a.ratio > b.ratio
                     : a.row != b.row   ? a.row < b.row
                                        : a.col < b.col;
  const Finding& worst = first ? a : b;
  return {worst.ratio,
          worst.row,
          worst.col,
          fmax(a.typical, b.typical),
          a.incomparable + b.incomparable,
          a.squared_error + b.squared_error,
          a.squared_reference + b.squared_reference};
}

__device__ Finding shuffle_down(const Finding& f, int distance) {
  return {__shfl_down_sync(kFullWarp, f.ratio, distance),
          __shfl_down_sync(kFullWarp, f.row, distance),
          __shfl_down_sync(kFullWarp, f.col, distance),
          __shfl_down_sync(kFullWarp, f.typical, distance),
          __shfl_down_sync(kFullWarp, f.incomparable, distance),
          __shfl_down_sync(kFullWarp, f.squared_error, distance),
          __shfl_down_sync(kFullWarp, f.squared_reference, distance)};
}

// In the first lane.
__device__ Finding join_warp(Finding found) {
  for (int distance = 16; distance > 0; distance /= 2)
    found = join(found, shuffle_down(found, distance));
  return found;
}

// The product of the scales of the two blocks that hold A(row, k) and B(k, col).
__device__ double block_scale(const UploadedCsr& a, const DenseView& b, std::int64_t row,
                              std::int64_t k, std::int64_t col) {
  return static_cast<double>(a.block_scales[scale_at_a(row, k, a.cols)]) *
         b.block_scales[scale_at_b(k, col, b.cols)];
}

template <class TB>
__global__ void __launch_bounds__(kCompareThreads)
    multiply_kernel(UploadedCsr a, DenseView b, double least, Band<ReferenceSumOf<TB>> out) {
  using Sum = ReferenceSumOf<TB>;
  using TA = std::conditional_t<std::is_same_v<TB, double>, double, float>;
  __shared__ __align__(16) double memory[kWarps * kSlab * sizeof(Sum) / sizeof(double)];
  auto* const sums = reinterpret_cast<Sum*>(memory);  // [warp][lane]
  const int lane = threadIdx.x % 32;
  const int warp = threadIdx.x / 32;
  const std::int64_t slabs = (b.cols + kSlab - 1) / kSlab;
  for (std::int64_t task = blockIdx.x; task < out.rows * slabs; task += gridDim.x) {
    const std::int64_t row = task / slabs;
    const std::int64_t col = task % slabs * kSlab + lane;
    const std::int64_t begin = a.row_ptr[out.first + row];
    const std::int64_t end = a.row_ptr[out.first + row + 1];
    Sum sum;
    if (sizeof(TB) == 1 && a.block_scales != nullptr && col < b.cols) {
      for (std::int64_t e = begin + warp; e < end; e += kWarps) {
        const std::int64_t k = a.col_idx[e];
        sum.add_scaled(static_cast<const TA*>(a.values)[e],
                       to_double(static_cast<const TB*>(b.data)[index_of(b, k, col)]), least,
                       block_scale(a, b, out.first + row, k, col));
      }
    } else if (col < b.cols) {
#pragma unroll 4
      for (std::int64_t e = begin + warp; e < end; e += kWarps)
        sum.add(static_cast<const TA*>(a.values)[e],
                to_double(static_cast<const TB*>(b.data)[index_of(b, a.col_idx[e], col)]), least);
    }
    sums[warp * kSlab + lane] = sum;
    __syncthreads();
    if (warp == 0 && col < b.cols) {
      for (int w = 1; w < kWarps; ++w) sum.add(sums[w * kSlab + lane]);
      sum.finish(static_cast<double>(a.scale) * b.scale);
      out.sums[row * b.cols + col] = sum;
    }
    __syncthreads();
  }
}

// Judges an element of C against its bound.
struct WithinBound {
  ErrorBound bound;
  template <class TC, class Sum>
  __device__ ElementVerdict operator()(TC c, const Sum& reference, double k) const {
    return judge(to_double(c), reference.sum, reference.magnitude, k, bound, reference.low);
  }
};
// Judges whether it is the reference rounded once, which fp32, or fp64 for its own, must hold
// exactly.
struct Equal {
  template <class TC, class Sum>
  __device__ ElementVerdict operator()(TC c, const Sum& reference, double) const {
    return judge_equal(to_double(c), to_double(from_double<TC>(reference.sum)));
  }
};

// Adds to `findings`, one per warp, what the band shows.
template <class TC, class Judge>
__global__ void __launch_bounds__(kCompareThreads)
    compare_kernel(UploadedCsr a, Band<ReferenceSumOf<TC>> band, DenseView c, Update update,
                   Judge judge_element, Finding* findings) {
  const int lane = threadIdx.x % 32;
  const std::int64_t warp = std::int64_t{blockIdx.x} * kWarps + threadIdx.x / 32;
  const std::int64_t slabs = (c.cols + kSlab - 1) / kSlab;
  Finding found = kNothing;
  for (std::int64_t task = warp; task < band.rows * slabs;
       task += std::int64_t{gridDim.x} * kWarps) {
    const std::int64_t row = task / slabs;
    const std::int64_t col = task % slabs * kSlab + lane;
    if (col >= c.cols) continue;
    const std::int64_t a_row = band.first + row;
    const std::int64_t c_row = a.row_ids == nullptr ? a_row : a.row_ids[a_row];
    const ReferenceSumOf<TC> reference = updated(band.sums[row * c.cols + col], update, c_row, col);
    const ElementVerdict element =
        judge_element(static_cast<const TC*>(c.data)[index_of(c, c_row, col)], reference,
                      static_cast<double>(a.row_ptr[a_row + 1] - a.row_ptr[a_row]));
    found = join(found, {element.over_bound, c_row, col, element.over_typical,
                         element.comparable ? 0 : 1, element.error * element.error,
                         isfinite(reference.sum) ? reference.sum * reference.sum : 0.0});
  }
  found = join_warp(found);
  if (lane == 0) findings[warp] = join(findings[warp], found);
}

__global__ void __launch_bounds__(kCompareThreads) start_kernel(Finding* findings, int count) {
  const int at = static_cast<int>(blockIdx.x) * kCompareThreads + static_cast<int>(threadIdx.x);
  if (at < count) findings[at] = kNothing;
}

// One block leaves what all of them show in the first.
__global__ void __launch_bounds__(kFindingThreads) join_kernel(Finding* findings, int count) {
  __shared__ Finding of_warps[kFindingThreads / 32];
  const int lane = threadIdx.x % 32;
  const int warp = threadIdx.x / 32;
  Finding found = kNothing;
  for (int i = static_cast<int>(threadIdx.x); i < count; i += kFindingThreads)
    found = join(found, findings[i]);
  found = join_warp(found);
  if (lane == 0) of_warps[warp] = found;
  __syncthreads();
  if (warp != 0) return;
  found = join_warp(of_warps[lane]);
  if (lane == 0) findings[0] = found;
}
static_assert(kFindingThreads / 32 == 32);  // a lane for each warp

using Word = unsigned long long;  // atomicAdd takes no std::uint64_t

constexpr int kMostMemories = 4;  // of a launch
struct Memory {
  const std::byte* data = nullptr;
  std::int64_t bytes = 0;
};
using Memories = std::array<Memory, kMostMemories>;

// Adds the checksum of memory blockIdx.y to its sum, in an order that does not matter.
__global__ void __launch_bounds__(kCompareThreads)
    checksum_kernel(const __grid_constant__ Memories memories, Word* sums) {
  const Memory& memory = memories[blockIdx.y];
  const auto* const words = reinterpret_cast<const Word*>(memory.data);
  const std::int64_t count = memory.bytes / std::int64_t{sizeof(Word)};
  const std::int64_t step = std::int64_t{gridDim.x} * kCompareThreads;
  const std::int64_t first = std::int64_t{blockIdx.x} * kCompareThreads + threadIdx.x;
  Word own = 0;
  for (std::int64_t i = first; i < count; i += step) own += word_hash(i, words[i]);
  if (const std::int64_t rest = memory.bytes % std::int64_t{sizeof(Word)}; first == 0 && rest != 0)
    own += word_hash(count, last_word(memory.data + memory.bytes - rest, rest));
  for (int distance = 16; distance > 0; distance /= 2)
    own += __shfl_down_sync(kFullWarp, own, distance);
  if (threadIdx.x % 32 == 0 && own != 0) atomicAdd(sums + blockIdx.y, own);
}

// A as references read it.
struct CopyOfA {
  CopyOfA(const CsrMatrix& a, std::span<const std::int32_t> row_ids, bool fp64, Device& device)
      : row_ptr(device.upload(a.row_ptr)),
        col_idx(device.upload(a.col_idx)),
        values(fp64 ? device.upload(a.values64) : device.upload(a.values)),
        row_ids(device.upload(row_ids)),
        block_scales(device.upload(a.block_scales)) {}
  Buffer row_ptr, col_idx, values, row_ids, block_scales;
};

class CudaReference final : public ReferenceChecker {
 public:
  CudaReference(const CsrMatrix& a, std::shared_ptr<const CopyOfA> copy, const DenseView& b,
                Device& device, double memory_share)
      : device_(device),
        memory_share_(memory_share),
        rows_(a.rows),
        b_(b),
        blocks_(kBlocksPerSm * device.info().sm_count),
        copy_(std::move(copy)),
        scale_(a.scale),
        cols_(a.cols) {}

  Verdict check(const DenseView& c, const ErrorBound& bound) override {
    return compare(c, WithinBound{bound});
  }
  Verdict check_equal(const DenseView& c) override { return compare(c, Equal{}); }

  void release_memory() override {
    sums_ = {};
    computed_ = kNone;
  }

 private:
  static constexpr std::int64_t kNone = -1;

  template <class Judge>
  Verdict compare(const DenseView& c, const Judge& judge_element) {
    const std::int64_t tasks = rows_ * ((b_.cols + kSlab - 1) / kSlab);
    const int blocks = static_cast<int>(std::clamp<std::int64_t>(tasks / kWarps, 1, blocks_));
    const int count = blocks * kWarps;
    const Buffer on_device = device_.allocate(count * sizeof(Finding));
    start_kernel<<<blocks, kCompareThreads, 0, stream()>>>(on_device.as<Finding>(), count);
    SPMMBENCH_CUDA_LAUNCHED();
    if (b_.cols > 0) {
      if (sums_.data() == nullptr) allocate_band();
      for (std::int64_t first = 0; first < rows_; first += band_rows_) {
        if (first != computed_) compute(first);
        visit_element_type<sizeof(__half), sizeof(double)>(c.type, [&](auto* tag) {
          using TC = std::remove_pointer_t<decltype(tag)>;
          compare_kernel<TC><<<blocks, kCompareThreads, 0, stream()>>>(
              a(), band<TC>(first), c, expected(), judge_element, on_device.as<Finding>());
        });
        SPMMBENCH_CUDA_LAUNCHED();
      }
    }
    join_kernel<<<1, kFindingThreads, 0, stream()>>>(on_device.as<Finding>(), count);
    SPMMBENCH_CUDA_LAUNCHED();
    Finding all = kNothing;
    device_.download(&all, on_device.data(), sizeof all);
    return verdict_of(all);
  }

  cudaStream_t stream() const { return static_cast<cudaStream_t>(device_.stream().handle); }
  UploadedCsr a() const {
    return {copy_->row_ptr.as<std::int64_t>(),
            copy_->col_idx.as<std::int32_t>(),
            copy_->values.data(),
            copy_->row_ids.as<std::int32_t>(),
            scale_,
            copy_->block_scales.as<float>(),
            cols_};
  }
  template <class T>
  Band<ReferenceSumOf<T>> band(std::int64_t first) const {
    return {first, std::min(band_rows_, rows_ - first), sums_.as<ReferenceSumOf<T>>()};
  }
  bool is_fp64() const { return b_.type == ElementType::f64; }

  void allocate_band() {
    const auto row_bytes = static_cast<std::int64_t>(
        b_.cols * (is_fp64() ? sizeof(TwoTermSum) : sizeof(ReferenceSum)));
    const auto most = static_cast<std::int64_t>(
        memory_share_ * static_cast<double>(device_.free_bytes()) / static_cast<double>(row_bytes));
    band_rows_ = std::clamp<std::int64_t>(most, 1, std::max<std::int64_t>(rows_, 1));
    sums_ = device_.allocate(band_rows_ * row_bytes);
  }
  void compute(std::int64_t first) {
    visit_every_element_type(b_.type, [&](auto* tag) {
      using TB = std::remove_pointer_t<decltype(tag)>;
      multiply_kernel<TB><<<blocks_, kCompareThreads, 0, stream()>>>(
          a(), b_, smallest_normal(b_.type), band<TB>(first));
    });
    SPMMBENCH_CUDA_LAUNCHED();
    computed_ = first;
  }

  static Verdict verdict_of(const Finding& all) {
    Verdict verdict;
    verdict.error_over_bound = std::max(all.ratio, 0.0);
    verdict.ok = verdict.error_over_bound <= 1.0;
    verdict.worst_row = all.row;
    verdict.worst_col = all.col;
    verdict.error_over_typical = all.typical;
    verdict.incomparable = all.incomparable;
    verdict.error_frobenius = std::sqrt(all.squared_error);
    verdict.relative_frobenius = relative(all.squared_error, all.squared_reference);
    return verdict;
  }

  static double relative(double squared_error, double squared_reference) {
    if (!std::isfinite(squared_error)) return std::numeric_limits<double>::quiet_NaN();
    return squared_error == 0 ? 0 : std::sqrt(squared_error / squared_reference);
  }

  Device& device_;
  double memory_share_;
  std::int64_t rows_;
  DenseView b_;
  int blocks_;
  std::shared_ptr<const CopyOfA> copy_;
  Buffer sums_;
  float scale_;  // of A
  std::int64_t cols_;
  std::int64_t band_rows_ = 0;
  std::int64_t computed_ = kNone;  // first row of the band that `sums_` holds
};

}  // namespace

std::vector<std::uint64_t> cuda_checksums(std::span<const ByteSpan> memories, Device& device,
                                          const std::function<void()>& meanwhile) {
  std::vector<Word> sums(memories.size());
  const Buffer on_device = device.allocate(sums.size() * sizeof(Word));
  device.fill_bytes(on_device.data(), 0, on_device.bytes());
  for (std::size_t first = 0; first < memories.size(); first += kMostMemories) {
    Memories launched;
    const std::size_t count = std::min<std::size_t>(memories.size() - first, kMostMemories);
    std::int64_t most = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const ByteSpan& bytes = memories[first + i];
      launched[i] = {bytes.data(), static_cast<std::int64_t>(bytes.size())};
      most = std::max(most, launched[i].bytes);
    }
    constexpr auto kBytesOfBlock = std::int64_t{kCompareThreads * sizeof(Word)};
    const std::int64_t blocks = std::clamp<std::int64_t>(
        most / kBytesOfBlock, 1, std::int64_t{kBlocksPerSm} * device.info().sm_count);
    const dim3 grid(static_cast<unsigned>(blocks), static_cast<unsigned>(count));
    checksum_kernel<<<grid, kCompareThreads, 0,
                      static_cast<cudaStream_t>(device.stream().handle)>>>(
        launched, on_device.as<Word>() + first);
    SPMMBENCH_CUDA_LAUNCHED();
  }
  meanwhile();
  device.download(sums.data(), on_device.data(), on_device.bytes());
  return {sums.begin(), sums.end()};
}

std::unique_ptr<ReferenceChecker> make_cuda_reference(const CsrMatrix& a,
                                                      std::span<const std::int32_t> row_ids,
                                                      const DenseView& b, Device& device,
                                                      double memory_share,
                                                      std::shared_ptr<void>* copy) {
  auto known = copy == nullptr ? nullptr : std::static_pointer_cast<CopyOfA>(*copy);
  if (!known) known = std::make_shared<CopyOfA>(a, row_ids, b.type == ElementType::f64, device);
  if (copy != nullptr) *copy = known;
  return std::make_unique<CudaReference>(a, std::move(known), b, device, memory_share);
}

}  // namespace spmmbench
