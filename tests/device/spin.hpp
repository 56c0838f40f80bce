#pragma once
// Kernels that say when they ran.

#include <cstdint>

#include "spmmbench/device.hpp"

namespace spmmbench::test {

// Several times as many CTAs as a GPU holds at once, each of which lasts some microseconds.
void fill_gpu(Stream stream);
// A thread writes the time in ns.
void write_time(std::uint64_t* at, Stream stream);

}  // namespace spmmbench::test
