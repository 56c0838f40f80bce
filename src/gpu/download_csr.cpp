#include "gpu/download_csr.hpp"

#include <vector>

#include "spmmbench/block_scales.hpp"

namespace spmmbench {

CsrMatrix download(const DeviceCsr& a, Device& device) {
  CsrMatrix out{a.rows, a.cols, std::vector<std::int64_t>(a.rows + 1), {}, {}, {}, a.scale};
  out.col_idx.resize(a.nnz);
  out.values.resize(a.nnz);
  device.download(out.row_ptr.data(), a.row_ptr, out.row_ptr.size() * sizeof(std::int64_t));
  device.download(out.col_idx.data(), a.col_idx, out.col_idx.size() * sizeof(std::int32_t));
  visit_element(a.value_type, [&](auto element) {
    std::vector<typename decltype(element)::Bits> bits(a.nnz);
    device.download(bits.data(), a.values, bits.size() * sizeof(bits[0]));
    for (std::int64_t i = 0; i < a.nnz; ++i)
      out.values[i] = static_cast<float>(element.decode(bits[i]));
    if constexpr (sizeof(bits[0]) == sizeof(double)) {
      out.values64.resize(a.nnz);
      for (std::int64_t i = 0; i < a.nnz; ++i) out.values64[i] = element.decode(bits[i]);
    }
  });
  if (a.block_scales != nullptr) {
    out.block_scales.resize(scales_of_a(a.rows, a.cols));
    device.download(out.block_scales.data(), a.block_scales,
                    out.block_scales.size() * sizeof(float));
  }
  return out;
}

}  // namespace spmmbench
