#pragma once
// Copies of lines that lie scattered, as the rows of B that another rank needs.

#include <cstddef>
#include <cstdint>

#include "spmmbench/device.hpp"

namespace spmmbench {

// What runs on the device at the same time. Beside a product a copy has few threads, each of which
// waits for several loads at once, as many as a link between GPUs holds.
enum class CopyBeside { nothing, a_product };

// Enqueues: line i of `to` = line lines[i] of `from`. `line_bytes` and all addresses are multiples
// of 16; `from` may be memory of other GPUs. The copy takes its place on the device while its
// predecessor in the stream still runs, and begins when that has ended.
void cuda_copy_lines(const void* from, const std::int32_t* lines, std::int64_t count,
                     std::size_t line_bytes, void* to, CopyBeside beside, Stream stream);

}  // namespace spmmbench
