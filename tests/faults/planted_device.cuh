#pragma once
// What planted kernels of the GPU share.

#include <algorithm>
#include <cstdint>
#include <cuda/std/chrono>
#include <memory>
#include <string>

#include "gpu/cuda_check.hpp"
#include "planted.hpp"
#include "spmmbench/device.hpp"
#include "spmmbench/registry.hpp"

namespace spmmbench {

inline __device__ std::int64_t now_ns() {
  return cuda::std::chrono::duration_cast<cuda::std::chrono::nanoseconds>(
             cuda::std::chrono::system_clock::now().time_since_epoch())
      .count();
}

// Of an element in the memory of `view`.
inline __device__ std::int64_t index_of(const DenseView& view, std::int64_t i, std::int64_t j) {
  return view.layout == Layout::row_major ? i * view.ld + j : j * view.ld + i;
}

// A in memory of the device.
struct Csr {
  std::int64_t rows;
  const std::int64_t* row_ptr;
  const std::int32_t* col_idx;
  const float* values;
};

// C(row, j) of a product in fp32. `values`: A's, where they are not to be read through `a.values`.
template <class Values>
__device__ float element_of_product(const Csr& a, Values values, const DenseView& b,
                                    std::int64_t row, std::int64_t j) {
  float sum = 0;
  for (std::int64_t e = a.row_ptr[row]; e < a.row_ptr[row + 1]; ++e)
    sum += values[e] * static_cast<const float*>(b.data)[index_of(b, a.col_idx[e], j)];
  return sum;
}

inline unsigned blocks_of(std::int64_t threads, int of_a_block) {
  return static_cast<unsigned>(std::max<std::int64_t>((threads + of_a_block - 1) / of_a_block, 1));
}

// A, and what every planted Prepared keeps.
class PlantedGpuA : public Prepared {
 public:
  PlantedGpuA(const CsrMatrix& a, Device& device)
      : rows_(a.rows),
        device_(device),
        row_ptr_(device.upload(a.row_ptr)),
        col_idx_(device.upload(a.col_idx)),
        values_(device.upload(a.values)) {}

 protected:
  Csr csr() const {
    return {rows_, row_ptr_.as<std::int64_t>(), col_idx_.as<std::int32_t>(), values_.as<float>()};
  }

  std::int64_t rows_;
  Device& device_;
  Buffer row_ptr_, col_idx_, values_;
};

// From here on, what launches on the device's stream read in [begin, begin + bytes) stays in a
// share of the L2 cache.
inline void keep_in_l2(const Device& device, void* begin, std::size_t bytes) {
  int share = 0, window = 0;
  SPMMBENCH_CUDA(cudaDeviceGetAttribute(&share, cudaDevAttrMaxPersistingL2CacheSize, 0));
  SPMMBENCH_CUDA(cudaDeviceGetAttribute(&window, cudaDevAttrMaxAccessPolicyWindowSize, 0));
  SPMMBENCH_CUDA(
      cudaDeviceSetLimit(cudaLimitPersistingL2CacheSize, static_cast<std::size_t>(share)));
  cudaStreamAttrValue value{};
  value.accessPolicyWindow.base_ptr = begin;
  value.accessPolicyWindow.num_bytes = std::min(bytes, static_cast<std::size_t>(window));
  value.accessPolicyWindow.hitRatio = 1;
  value.accessPolicyWindow.hitProp = cudaAccessPropertyPersisting;
  value.accessPolicyWindow.missProp = cudaAccessPropertyStreaming;
  SPMMBENCH_CUDA(cudaStreamSetAttribute(static_cast<cudaStream_t>(device.stream().handle),
                                        cudaStreamAttributeAccessPolicyWindow, &value));
}

// A launch that may begin before the one in front of it has ended, where `early`.
class EarlyLaunch {
 public:
  EarlyLaunch(unsigned blocks, unsigned threads, cudaStream_t stream, bool early) {
    attribute_.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attribute_.val.programmaticStreamSerializationAllowed = 1;
    config_.gridDim = blocks;
    config_.blockDim = threads;
    config_.stream = stream;
    config_.attrs = &attribute_;
    config_.numAttrs = early ? 1 : 0;
  }
  EarlyLaunch(const EarlyLaunch&) = delete;
  const cudaLaunchConfig_t* config() const { return &config_; }

 private:
  cudaLaunchAttribute attribute_{};
  cudaLaunchConfig_t config_{};
};

inline KernelInfo cheat_gpu_info(const char* name) {
  KernelInfo info = planted_info(std::string("cheat_gpu_") + name, DeviceKind::cuda);
  info.precisions = {Precision::fp32};
  return info;
}

// A kernel whose preparation is PreparedA(A, what, device). One that cheats is named by its cheat.
template <class PreparedA, class What>
class PlantedGpuKernel : public Kernel {
 public:
  PlantedGpuKernel(KernelInfo info, const What& what) : info_(std::move(info)), what_(what) {}
  PlantedGpuKernel(const char* cheat, const What& what)
      : PlantedGpuKernel(cheat_gpu_info(cheat), what) {}
  const KernelInfo& info() const override { return info_; }
  Support supports(const Problem&, const DeviceInfo&) const override { return Support::yes(0); }
  std::unique_ptr<Prepared> prepare(const SparseOperand& a, const Options&, Device& device,
                                    StageTimer& stages) const override {
    const auto timed = stages.scope("build");
    return std::make_unique<PreparedA>(*a.a, what_, device);
  }

 protected:
  KernelInfo info_;
  What what_;
};

}  // namespace spmmbench
