#pragma once
// ex2: 2 to a power (PTX ISA, "Floating Point Instructions: ex2").

namespace spmmbench::ptx {

// Relative error at most 2^-22.5; results below 2^-126 are 0.
__device__ inline float ex2_approx_ftz(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

}  // namespace spmmbench::ptx
