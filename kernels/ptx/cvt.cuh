#pragma once
// cvt: conversion of packed values (PTX ISA, "Data Movement and Conversion Instructions: cvt").

#include <cuda_fp8.h>

#include <cstdint>

#include "ptx/prmt.cuh"

namespace spmmbench::ptx {

// Four e4m3 as fp16, which is exact: bytes 0 and 1 in x, bytes 2 and 3 in y.
__device__ inline uint2 cvt_rn_f16x2_e4m3x2(std::uint32_t four) {
  uint2 out;
  asm("{\n.reg .b16 low, high;\nmov.b32 {low, high}, %2;\n"
      "cvt.rn.f16x2.e4m3x2 %0, low;\ncvt.rn.f16x2.e4m3x2 %1, high;\n}\n"
      : "=r"(out.x), "=r"(out.y)
      : "r"(four));
  return out;
}

// The same of e5m2, which is the upper half of fp16.
__device__ inline uint2 halves_of_e5m2(std::uint32_t four) {
  return {prmt(four, 0, 0x1404), prmt(four, 0, 0x3424)};
}

template <class Eight>
__device__ uint2 halves_of(std::uint32_t four) = delete;
template <>
__device__ inline uint2 halves_of<__nv_fp8_e4m3>(std::uint32_t four) {
  return cvt_rn_f16x2_e4m3x2(four);
}
template <>
__device__ inline uint2 halves_of<__nv_fp8_e5m2>(std::uint32_t four) {
  return halves_of_e5m2(four);
}

}  // namespace spmmbench::ptx
