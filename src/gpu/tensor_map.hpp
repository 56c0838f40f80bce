#pragma once
// Tensor maps for the bulk tensor copies of compute capability 9.0 (TMA). The encoder is a driver
// function; it is looked up at run time so that the program links and starts without a driver.
// Pass the map to the kernel by value as `const __grid_constant__ CUtensorMap`.

#include <cuda.h>  // types only; libcuda is never linked

#include <cstdint>
#include <span>

#include "spmmbench/device.hpp"

namespace spmmbench {

struct TensorMapOptions {
  CUtensorMapSwizzle swizzle = CU_TENSOR_MAP_SWIZZLE_NONE;
};

// A tensor of up to five dimensions, fastest first: `extents` in elements, `strides` in bytes of
// the dimensions after the first (multiples of 16), `box` in elements. Elements outside the extents
// read as zero and are not written, but for those that share 16 bytes with the last inside. Throws
// DeviceError when the driver refuses the shape.
CUtensorMap make_tensor_map(const void* data, ElementType type,
                            std::span<const std::uint64_t> extents,
                            std::span<const std::uint64_t> strides,
                            std::span<const std::uint32_t> box, TensorMapOptions options = {});

// The lines of a dense matrix (rows when row major, columns when column major): a box is
// `box_lines` lines of `box_elements` consecutive elements. The padding of the lines is outside.
CUtensorMap make_tensor_map(const DenseView& view, std::uint32_t box_lines,
                            std::uint32_t box_elements, TensorMapOptions options = {});

// A view of B for boxes of this many columns, at most 128 bytes (plugin.h). If rows of B have the
// memory, they end for the tensor map where the last box ends, since a box that is cut takes longer
// (docs/kernels/dense_cluster.md). The values read behind the last column are not used.
DenseView with_whole_boxes(const DenseView& row_major, std::int64_t box_columns);

// For lines of 32, 64 or 128 bytes.
constexpr CUtensorMapSwizzle swizzle_of(int line_bytes) {
  return line_bytes == 128  ? CU_TENSOR_MAP_SWIZZLE_128B
         : line_bytes == 64 ? CU_TENSOR_MAP_SWIZZLE_64B
                            : CU_TENSOR_MAP_SWIZZLE_32B;
}

}  // namespace spmmbench
