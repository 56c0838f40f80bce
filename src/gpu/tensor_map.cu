#include "gpu/tensor_map.hpp"

#include <cudaTypedefs.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>

#include "gpu/driver_function.hpp"

namespace spmmbench {
namespace {

PFN_cuTensorMapEncodeTiled_v12000 encoder() {
  static const auto function =
      driver_function<PFN_cuTensorMapEncodeTiled_v12000>("cuTensorMapEncodeTiled");
  return function;
}

CUtensorMapDataType data_type(ElementType type) {
  switch (type) {
#define SPMMBENCH_CASE(id, name, exponent, fraction, number, Device, library_type, map_type) \
  case ElementType::id: return map_type;
    SPMMBENCH_ELEMENT_TYPES(SPMMBENCH_CASE)
#undef SPMMBENCH_CASE
  }
  throw DeviceError("tensor map: unknown element type", false);
}

}  // namespace

CUtensorMap make_tensor_map(const void* data, ElementType type,
                            std::span<const std::uint64_t> extents,
                            std::span<const std::uint64_t> strides,
                            std::span<const std::uint32_t> box, TensorMapOptions options) {
  constexpr std::array<std::uint32_t, 5> kUnitSteps{1, 1, 1, 1, 1};
  CUtensorMap map{};
  const CUresult result = encoder()(
      &map, data_type(type), static_cast<cuuint32_t>(extents.size()), const_cast<void*>(data),
      extents.data(), strides.data(), box.data(), kUnitSteps.data(), CU_TENSOR_MAP_INTERLEAVE_NONE,
      options.swizzle, CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (result != CUDA_SUCCESS)
    throw DeviceError(
        fmt::format("tensor map refused: driver error {}, {} extents {}, strides {} bytes, box {}",
                    static_cast<int>(result), to_string(type), fmt::join(extents, "x"),
                    fmt::join(strides, ","), fmt::join(box, "x")),
        false);
  return map;
}

CUtensorMap make_tensor_map(const DenseView& view, std::uint32_t box_lines,
                            std::uint32_t box_elements, TensorMapOptions options) {
  const std::array<std::uint64_t, 2> extents{static_cast<std::uint64_t>(view.line_length()),
                                             static_cast<std::uint64_t>(view.lines())};
  const std::array<std::uint64_t, 1> strides{static_cast<std::uint64_t>(view.ld) *
                                             bytes_of(view.type)};
  const std::array<std::uint32_t, 2> box{box_elements, box_lines};
  return make_tensor_map(view.data, view.type, extents, strides, box, options);
}

DenseView with_whole_boxes(const DenseView& row_major, std::int64_t box_columns) {
  DenseView out = row_major;
  const std::int64_t whole = (out.cols + box_columns - 1) / box_columns * box_columns;
  if (whole <= out.ld) out.cols = whole;
  return out;
}

}  // namespace spmmbench
