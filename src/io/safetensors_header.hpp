#pragma once
// The JSON of a .safetensors header.

#include <string>
#include <string_view>
#include <vector>

#include "io/safetensors.hpp"

namespace spmmbench {

// The tensors in the header's order; the structure is checked, the offsets are not. Memory is
// bounded by what the tensors take: anything else is refused where it stands.
std::vector<TensorInfo> parse_tensor_header(std::string_view json, const std::string& path);

}  // namespace spmmbench
