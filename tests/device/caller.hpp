#pragma once
// A kernel of a caller, between launches of this project's.

#include "spmmbench/device.hpp"

namespace spmmbench::test {

// Multiplies all that lies there, in fp16 or fp32. `overlaps`: it starts while the launch before it
// ends, for which it waits, and lets the next one in at once.
void scale(const DenseView& c, float factor, bool overlaps, Stream stream);

}  // namespace spmmbench::test
