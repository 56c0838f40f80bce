#pragma once
// FILE.safetensors:NAME, the path of one tensor.

#include <optional>
#include <string>
#include <vector>

namespace spmmbench {

struct TensorPath {
  std::string file, tensor;  // `tensor` is empty where the path names the file alone
};

// Nothing when the path names no .safetensors file.
std::optional<TensorPath> parse_tensor_path(const std::string& path);

// The matrices that a path names, each as FILE.safetensors:NAME, by name: one tensor, the matrices
// whose names match a glob ('*' and '?'), or all matrices of the file. A tensor of exactly this
// name comes before a glob and may be anything; reading it says what is wrong. Throws Error when
// there is none.
std::vector<std::string> expand_tensors(const TensorPath& path);

}  // namespace spmmbench
