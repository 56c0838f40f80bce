#pragma once
// A node of a CUDA graph that reads at the places that cuda_read_within() was given.

#include <cuda_runtime.h>

namespace spmmbench {

// As a launch does that begins early: it lets what is behind it begin, and then waits for what is
// before it.
cudaGraphNode_t add_reader(cudaGraph_t graph);

}  // namespace spmmbench
