// The function of block_attention/block_attention.hpp in a build without CUDA.

#include "block_attention/block_attention.hpp"

namespace spmmbench {

void attend(const BlockAttention&, Stream) { throw DeviceError("built without CUDA", false); }

}  // namespace spmmbench
