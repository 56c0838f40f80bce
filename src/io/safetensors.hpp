#pragma once
// Hugging Face's .safetensors: a length (8 bytes), a JSON header {name: {dtype, shape,
// data_offsets}}, and the tensors' bytes, which the header covers without overlap or gap.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "spmmbench/matrix.hpp"

namespace spmmbench {

struct TensorInfo {
  std::string name, dtype;  // dtype as the header has it: "BF16"
  std::vector<std::int64_t> shape;
  std::size_t begin = 0, end = 0;  // bytes, from the end of the header

  // Two dimensions, of a type among readable_dtypes().
  bool is_matrix() const;
};

struct TensorFile {
  std::vector<TensorInfo> tensors;  // by name
  std::size_t data_begin = 0;       // in the file
};

// `path` stands in messages only. Throws Error for a header that is too long, no JSON or of another
// structure, for offsets that overlap, leave gaps or contradict shape and dtype, and for a file
// that is not exactly as long as the header says.
TensorFile parse_safetensors(std::string_view file, const std::string& path);

TensorFile read_safetensors_header(const std::string& path);

// "F32, F16, ... or F8_E4M3": every element type, as the header names it.
std::string readable_dtypes();

// Throws Error when there is no such tensor, or when it is no matrix of these types.
const TensorInfo& matrix_named(const TensorFile& file, const std::string& path,
                               const std::string& name);
DenseMatrix read_tensor(const std::string& path, const std::string& name, bool fp64 = false);

}  // namespace spmmbench
