// C = alpha * T + beta * C, element by element, 16 bytes a thread where both are aligned.

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "gpu/cuda_check.hpp"
#include "gpu/element.cuh"
#include "gpu/scaled_launches.hpp"

namespace spmmbench {
namespace {

constexpr int kAddThreads = 256;
constexpr std::int64_t kMostBlocks =
    16 * 1024;  // some waves on any GPU: threads take several turns

template <class T, int kCount>
struct alignas(sizeof(T) * kCount) Pack {
  T at[kCount];
};

template <class T, int kCount, bool kReadsC, class Value>
__global__ void __launch_bounds__(kAddThreads)
    scale_add_kernel(const Pack<T, kCount>* product, Pack<T, kCount>* c, std::int64_t count,
                     Value alpha, Value beta) {
  const auto value = [](T x) { return static_cast<Value>(to_double(x)); };
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * kAddThreads;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kAddThreads + threadIdx.x;
       i < count; i += step) {
    const Pack<T, kCount> from = product[i];
    Pack<T, kCount> to;
    if constexpr (kReadsC) to = c[i];
#pragma unroll
    for (int j = 0; j < kCount; ++j) {
      Value scaled = alpha * value(from.at[j]);
      if constexpr (kReadsC) scaled = fma(beta, value(to.at[j]), scaled);
      to.at[j] = from_double<T>(scaled);
    }
    c[i] = to;
  }
}

template <class T, int kCount>
void launch(const T* product, T* c, std::int64_t elements, const Scalars& scalars,
            cudaStream_t stream) {
  using Value = std::conditional_t<std::is_same_v<T, double>, double, float>;
  const std::int64_t count = elements / kCount;
  if (count == 0) return;
  const auto blocks =
      static_cast<unsigned>(std::min((count + kAddThreads - 1) / kAddThreads, kMostBlocks));
  const auto* const from = reinterpret_cast<const Pack<T, kCount>*>(product);
  auto* const to = reinterpret_cast<Pack<T, kCount>*>(c);
  const auto alpha = static_cast<Value>(scalars.alpha), beta = static_cast<Value>(scalars.beta);
  if (scalars.beta != 0)
    scale_add_kernel<T, kCount, true>
        <<<blocks, kAddThreads, 0, stream>>>(from, to, count, alpha, beta);
  else
    scale_add_kernel<T, kCount, false>
        <<<blocks, kAddThreads, 0, stream>>>(from, to, count, alpha, beta);
  SPMMBENCH_CUDA_LAUNCHED();
}

}  // namespace

void cuda_scale_add(const DenseView& product, const DenseView& c, const Scalars& scalars,
                    Stream stream) {
  visit_element_type<sizeof(__half), sizeof(double)>(c.type, [&](auto* tag) {
    using T = std::remove_pointer_t<decltype(tag)>;
    constexpr int kWide = 16 / sizeof(T);
    // The gap behind the last line belongs to the array, but for a single line.
    const std::int64_t elements = c.lines() > 1 ? c.lines() * c.ld : c.lines() * c.line_length();
    const T* const from = static_cast<const T*>(product.data);
    T* const to = static_cast<T*>(c.data);
    const auto on_stream = static_cast<cudaStream_t>(stream.handle);
    const bool aligned = reinterpret_cast<std::uintptr_t>(to) % 16 == 0;
    const std::int64_t wide = aligned ? elements / kWide * kWide : 0;
    launch<T, kWide>(from, to, wide, scalars, on_stream);
    launch<T, 1>(from + wide, to + wide, elements - wide, scalars, on_stream);
  });
}

}  // namespace spmmbench
