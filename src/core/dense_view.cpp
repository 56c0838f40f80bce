#include "core/limits.hpp"
#include "spmmbench/device.hpp"

namespace spmmbench {
namespace {

constexpr std::int64_t kSectorBytes = 32, kCacheLineBytes = 128;  // of the L2 cache

// The view with lines that start at multiples of `bytes`.
DenseView with_pitch(DenseView view, std::int64_t bytes) {
  const std::int64_t step = bytes / static_cast<std::int64_t>(bytes_of(view.type));
  view.ld = (view.line_length() + step - 1) / step * step;
  return view;
}

}  // namespace

DenseView make_dense_view(std::int64_t rows, std::int64_t cols, Layout layout, ElementType type) {
  return with_pitch({nullptr, rows, cols, 0, layout, type}, kVectorBytes);
}

DenseView make_b_view(std::int64_t rows, std::int64_t cols, Layout layout, ElementType type) {
  const DenseView view{nullptr, rows, cols, 0, layout, type};
  const auto value_bytes = static_cast<std::int64_t>(bytes_of(type));
  const DenseView packed = with_pitch(view, kVectorBytes);
  if (packed.ld * value_bytes <= kSectorBytes) return packed;
  const DenseView at_sectors = with_pitch(view, kSectorBytes);
  const std::int64_t gap = kCacheLineBytes - at_sectors.ld * value_bytes % kCacheLineBytes;
  return gap == kSectorBytes ? with_pitch(view, kCacheLineBytes) : at_sectors;
}

}  // namespace spmmbench
