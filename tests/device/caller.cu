#include "caller.hpp"

#include <cuda_fp16.h>

#include "../../kernels/common/dependent_launch.hpp"
#include "../../kernels/ptx/griddepcontrol.cuh"

namespace spmmbench::test {
namespace {

template <class T>
__global__ void scale_kernel(T* values, std::int64_t count, T factor) {
  ptx::griddepcontrol_wait();
  ptx::griddepcontrol_launch_dependents();
  const std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i < count) values[i] = values[i] * factor;
}

template <class T>
void scale_as(const DenseView& c, T factor, bool overlaps, Stream stream) {
  constexpr unsigned kThreads = 256;
  const auto count = static_cast<std::int64_t>(c.bytes() / sizeof(T));
  const auto blocks = static_cast<unsigned>((count + kThreads - 1) / kThreads);
  launch_dependent(scale_kernel<T>, dim3(blocks), dim3(kThreads), 0, stream,
                   overlaps && kernels_wait(), static_cast<T*>(c.data), count, factor);
}

}  // namespace

void scale(const DenseView& c, float factor, bool overlaps, Stream stream) {
  if (c.type == ElementType::f16) scale_as<__half>(c, __float2half(factor), overlaps, stream);
  else scale_as<float>(c, factor, overlaps, stream);
}

}  // namespace spmmbench::test
