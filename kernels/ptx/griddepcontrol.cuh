#pragma once
// griddepcontrol: kernels that overlap with their predecessor in the stream (PTX ISA, "Parallel
// Synchronization and Communication Instructions: griddepcontrol"), by way of CUDA's own wrappers.
// common/dependent_launch.hpp launches such kernels. No effect in code for less than compute
// capability 9.0, which is launched without overlap.

#include <cuda_runtime.h>

namespace spmmbench::ptx {

// Waits until the predecessor has ended. Before it a kernel reads what its plan prepared and
// touches neither B nor C. B is loaded with __ldca or copied, never with __ldg, which stands for
// memory that nobody writes: the compiler moves such loads to before the wait.
__device__ inline void griddepcontrol_wait() {
#if __CUDA_ARCH__ >= 900
  cudaGridDependencySynchronize();
#endif
}
// Lets the successor start as soon as there is room. Safe anywhere: the successor's wait covers
// this kernel's end.
__device__ inline void griddepcontrol_launch_dependents() {
#if __CUDA_ARCH__ >= 900
  cudaTriggerProgrammaticLaunchCompletion();
#endif
}

}  // namespace spmmbench::ptx
