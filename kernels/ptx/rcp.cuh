#pragma once
// rcp: reciprocals (PTX ISA, "Floating Point Instructions: rcp").

namespace spmmbench::ptx {

// Within 1 ulp; results below 2^-126 are 0.
__device__ inline float rcp_approx_ftz(float x) {
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

}  // namespace spmmbench::ptx
