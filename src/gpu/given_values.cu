// Values of a caller on the device, in the type that they are multiplied in.

#include <cuda_runtime.h>
#include <fmt/format.h>

#include <cstdint>

#include "gpu/cuda_check.hpp"
#include "gpu/given_csr.hpp"
#include "gpu/new_values.cuh"
#include "spmmbench/error.hpp"

namespace spmmbench {
namespace {

constexpr int kValueThreads = 256;
constexpr int kTogether = 8;  // values of a thread where they lie side by side

template <class From, class To>
__global__ void convert(const typename From::Bits* from, const std::int32_t* source,
                        typename To::Bits* to, Precision precision, std::int64_t count) {
  const std::int64_t i = std::int64_t{blockIdx.x} * kValueThreads + threadIdx.x;
  if (i >= count) return;
  if (from == nullptr) to[i] = To::encode(typename To::Value{1});
  else to[i] = converted<From, To>(from[source == nullptr ? i : source[i]], precision);
}

// kTogether values as the fewest loads or stores.
template <class Bits>
struct alignas(sizeof(Bits) * kTogether < 16 ? sizeof(Bits) * kTogether : 16) Together {
  Bits of[kTogether];
};

template <class T>
bool is_aligned_for(const void* pointer) {
  return reinterpret_cast<std::uintptr_t>(pointer) % alignof(T) == 0;
}

// The first count / kTogether * kTogether values, and the others one by one in the last CTA.
template <class From, class To>
__global__ void convert_together(const typename From::Bits* from, typename To::Bits* to,
                                 Precision precision, std::int64_t count) {
  const std::int64_t i = std::int64_t{blockIdx.x} * kValueThreads + threadIdx.x;
  const std::int64_t whole = count / kTogether;
  if (i < whole) {
    const auto in = reinterpret_cast<const Together<typename From::Bits>*>(from)[i];
    Together<typename To::Bits> out;
#pragma unroll
    for (int k = 0; k < kTogether; ++k) out.of[k] = converted<From, To>(in.of[k], precision);
    reinterpret_cast<Together<typename To::Bits>*>(to)[i] = out;
  } else if (const std::int64_t rest = whole * kTogether + (i - whole); rest < count) {
    to[rest] = converted<From, To>(from[rest], precision);
  }
}

unsigned value_ctas_for(std::int64_t threads) {
  return static_cast<unsigned>((threads + kValueThreads - 1) / kValueThreads);
}

template <class From, class To>
void launch_convert(const typename From::Bits* from, const std::int32_t* source,
                    typename To::Bits* to, Precision precision, std::int64_t count,
                    cudaStream_t stream) {
  if (from != nullptr && source == nullptr && is_aligned_for<Together<typename From::Bits>>(from) &&
      is_aligned_for<Together<typename To::Bits>>(to))
    convert_together<From, To>
        <<<value_ctas_for(count / kTogether + count % kTogether), kValueThreads, 0, stream>>>(
            from, to, precision, count);
  else
    convert<From, To>
        <<<value_ctas_for(count), kValueThreads, 0, stream>>>(from, source, to, precision, count);
  SPMMBENCH_CUDA_LAUNCHED();
}

}  // namespace

void convert_values(const void* from, ElementType type, const std::int32_t* source, void* to,
                    Precision precision, std::int64_t count, Stream stream) {
  if (count == 0) return;
  const auto enqueued_on = static_cast<cudaStream_t>(stream.handle);
  const bool stays = type == storage_type(precision) && precision != Precision::tf32;
  if (stays && from != nullptr && source == nullptr) {
    SPMMBENCH_CUDA(
        cudaMemcpyAsync(to, from, count * bytes_of(type), cudaMemcpyDeviceToDevice, enqueued_on));
    return;
  }
  visit_element(type, [&](auto of_from) {
    visit_element(storage_type(precision), [&](auto of_to) {
      using From = decltype(of_from);
      using To = decltype(of_to);
      launch_convert<From, To>(static_cast<const typename From::Bits*>(from), source,
                               static_cast<typename To::Bits*>(to), precision, count, enqueued_on);
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
