#pragma once
// What exists on compute capability 9.0 only: WGMMA, TMA, setmaxnreg. CMakeLists.txt compiles a .cu
// file that names this header for sm_90a alone.

#if defined(__CUDA_ARCH__) && !defined(__CUDA_ARCH_FEAT_SM90_ALL)
#error "compiled for another architecture: the .cu file must include ptx/sm90a.cuh itself"
#endif
