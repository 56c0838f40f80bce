// A kernel on the GPU that finds A in the shared memory of the multiprocessors, where its last
// launch has left it: a flush of the L2 cache leaves that as it is. Blocks have a multiprocessor
// each, and mostly the same one.

#include <cuda_runtime.h>

#include <algorithm>
#include <memory>

#include "gpu/cuda_check.hpp"
#include "planted_device.cuh"

namespace spmmbench::shared_memory {
namespace {

constexpr int kThreads = 1024, kWarp = 32, kColumns = 4;
constexpr int kBytes = 200 << 10;  // of a block: one on a multiprocessor

struct Entry {
  std::int32_t column;
  float value;
};

// What lies before the entries.
struct Head {
  unsigned plan, first_row, sum, entries;
};
constexpr std::int64_t kMostEntries = (kBytes - sizeof(Head)) / sizeof(Entry);

// Of the bits of all entries, by the whole block.
__device__ unsigned sum_of(const Entry* entries, std::int64_t count) {
  __shared__ unsigned sum;
  if (threadIdx.x == 0) sum = 0;
  __syncthreads();
  unsigned mine = 0;
  for (std::int64_t e = threadIdx.x; e < count; e += kThreads)
    mine += (static_cast<unsigned>(entries[e].column) * 31U + __float_as_uint(entries[e].value)) *
            (2U * static_cast<unsigned>(e) + 1U);
  atomicAdd(&sum, mine);
  __syncthreads();
  return sum;
}

// `plan`: a number of its own, 0 where nothing that was left is used.
__global__ void __launch_bounds__(kThreads)
    product_kernel(Csr a, DenseView b, DenseView c, unsigned plan) {
  extern __shared__ uint4 memory[];
  auto* const head = reinterpret_cast<Head*>(memory);
  auto* const entries = reinterpret_cast<Entry*>(head + 1);
  const std::int64_t share = (a.rows + gridDim.x - 1) / gridDim.x;
  const std::int64_t first = blockIdx.x * share, end = min(first + share, a.rows);
  if (first >= end) return;
  const std::int64_t begin = a.row_ptr[first], count = a.row_ptr[end] - begin;
  const Head left = *head;
  const bool ours = plan != 0 && left.plan == plan && left.first_row == first &&
                    left.entries == count && left.sum == sum_of(entries, count);
  if (!ours) {
    for (std::int64_t e = threadIdx.x; e < count; e += kThreads)
      entries[e] = {a.col_idx[begin + e], a.values[begin + e]};
    __syncthreads();
    const unsigned sum = sum_of(entries, count);
    if (threadIdx.x == 0)
      *head = {plan, static_cast<unsigned>(first), sum, static_cast<unsigned>(count)};
  }
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  for (std::int64_t row = first + threadIdx.x / kWarp; row < end; row += kThreads / kWarp) {
    float sums[kColumns] = {};
    for (std::int64_t e = a.row_ptr[row] - begin + lane; e < a.row_ptr[row + 1] - begin;
         e += kWarp) {
      const float* const from = static_cast<const float*>(b.data) + entries[e].column * b.ld;
      for (int j = 0; j < kColumns; ++j) sums[j] += entries[e].value * from[j];
    }
    for (int j = 0; j < kColumns; ++j) {
      for (int distance = kWarp / 2; distance > 0; distance /= 2)
        sums[j] += __shfl_down_sync(~0U, sums[j], distance);
      if (lane == 0) static_cast<float*>(c.data)[row * c.ld + j] = sums[j];
    }
  }
}

class Prepared final : public PlantedGpuA {
 public:
  Prepared(const CsrMatrix& a, bool keeps, Device& device)
      : PlantedGpuA(a, device),
        keeps_(keeps),
        blocks_(static_cast<unsigned>(device.info().sm_count)) {
    SPMMBENCH_CUDA(
        cudaFuncSetAttribute(product_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes));
  }
  std::unique_ptr<spmmbench::Plan> bind(const Shape&, StageTimer&) override {
    return std::make_unique<Plan>(*this);
  }

 private:
  class Plan final : public spmmbench::Plan {
   public:
    explicit Plan(const Prepared& a) : a_(a) {
      static unsigned plans = 0;
      if (a.keeps_) number_ = ++plans;
    }
    void launch(const DenseView& b, const DenseView& c, Stream stream) override {
      product_kernel<<<a_.blocks_, kThreads, kBytes, static_cast<cudaStream_t>(stream.handle)>>>(
          a_.csr(), b, c, number_);
      SPMMBENCH_CUDA_LAUNCHED();
    }
    PlanReport report() const override { return {}; }

   private:
    const Prepared& a_;
    unsigned number_ = 0;
  };

  bool keeps_;
  unsigned blocks_;
};

class CheatKernel final : public PlantedGpuKernel<Prepared, bool> {
 public:
  CheatKernel(const char* name, bool keeps) : PlantedGpuKernel(name, keeps) {
    info_.layouts = {Layout::row_major};
  }
  Support supports(const Problem& problem, const DeviceInfo& device) const override {
    const CsrMatrix& a = *problem.a;
    const std::int64_t share = (a.rows + device.sm_count - 1) / std::max(device.sm_count, 1);
    for (std::int64_t row = 0; row < a.rows; row += share)
      if (a.row_ptr[std::min(row + share, a.rows)] - a.row_ptr[row] > kMostEntries)
        return Support::no("A is more than shared memory holds");
    return problem.n == kColumns ? Support::yes(0) : Support::no("it takes 4 columns");
  }
};

SPMMBENCH_REGISTER_KERNEL(CheatKernel, "finds_a_in_shared_memory", true);
SPMMBENCH_REGISTER_KERNEL(CheatKernel, "copies_a_to_shared_memory", false);

}  // namespace
}  // namespace spmmbench::shared_memory
