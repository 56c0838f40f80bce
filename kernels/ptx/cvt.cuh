#pragma once
// cvt: conversion of packed values (PTX ISA, "Data Movement and Conversion Instructions: cvt").

#include <cstdint>

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

}  // namespace spmmbench::ptx
