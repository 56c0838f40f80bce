// Values of a caller on the device, in the type that they are multiplied in.

#include <cuda_runtime.h>
#include <fmt/format.h>

#include <cstdint>

#include "gpu/cuda_check.hpp"
#include "gpu/given_csr.hpp"
#include "spmmbench/error.hpp"

namespace spmmbench {
namespace {

constexpr int kValueThreads = 256;

template <class From, class To>
__global__ void convert(const typename From::Bits* from, const std::int32_t* source,
                        typename To::Bits* to, Precision precision, std::int64_t count) {
  const std::int64_t i = std::int64_t{blockIdx.x} * kValueThreads + threadIdx.x;
  if (i >= count) return;
  using Value = typename To::Value;
  const auto value =
      from == nullptr ? Value{1}
                      : static_cast<Value>(From::decode(from[source == nullptr ? i : source[i]]));
  to[i] = To::encode(round_to(precision, value));
}

}  // namespace

void convert_values(const void* from, ElementType type, const std::int32_t* source, void* to,
                    Precision precision, std::int64_t count, Stream stream) {
  if (count == 0) return;
  visit_element(type, [&](auto of_from) {
    visit_element(storage_type(precision), [&](auto of_to) {
      using From = decltype(of_from);
      using To = decltype(of_to);
      const auto ctas = static_cast<unsigned>((count + kValueThreads - 1) / kValueThreads);
      convert<From, To><<<ctas, kValueThreads, 0, static_cast<cudaStream_t>(stream.handle)>>>(
          static_cast<const typename From::Bits*>(from), source,
          static_cast<typename To::Bits*>(to), precision, count);
      SPMMBENCH_CUDA_LAUNCHED();
    });
  });
}

void require_device_memory(const void* data, std::int64_t bytes, const char* what, Device& device) {
  if (bytes == 0) return;
  if (data == nullptr) throw Error(fmt::format("{} is NULL", what));
  for (const std::int64_t at : {std::int64_t{0}, bytes - 1}) {
    cudaPointerAttributes attributes{};
    const cudaError_t error =
        cudaPointerGetAttributes(&attributes, static_cast<const char*>(data) + at);
    if (error != cudaSuccess) (void)cudaGetLastError();
    const bool there =
        error == cudaSuccess && attributes.device == device.info().index &&
        (attributes.type == cudaMemoryTypeDevice || attributes.type == cudaMemoryTypeManaged);
    if (!there)
      throw Error(fmt::format("{}: byte {} of {} is not memory of GPU {}", what, at, bytes,
                              device.info().index));
  }
}

}  // namespace spmmbench
