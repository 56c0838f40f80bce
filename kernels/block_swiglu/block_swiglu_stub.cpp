// The function of block_swiglu/block_swiglu.hpp in a build without CUDA.

#include "block_swiglu/block_swiglu.hpp"

namespace spmmbench {

void multiply_gated(const BlockSwiglu&, Stream) { throw DeviceError("built without CUDA", false); }

}  // namespace spmmbench
