#pragma once
// FILE.safetensors:NAME, the path of one tensor, and NAME.safetensors.index.json, which tells the
// files of a checkpoint.

#include <optional>
#include <string>
#include <vector>

namespace spmmbench {

struct TensorPath {
  std::string file, tensor;  // `tensor` is empty where the path names the file alone
};

// Empty where the path names no .safetensors file, or a file or folder as it stands. The longest
// FILE that is there counts. Throws Error where nothing stands behind the colon.
std::optional<TensorPath> parse_tensor_path(const std::string& path);

// The file that a path names: FILE of FILE.safetensors:NAME, or the path itself.
std::string file_of(const std::string& path);

// The matrices that a path names, each as FILE.safetensors:NAME, by name: one tensor, the matrices
// whose names match a glob ('*' and '?'), or all matrices of the file. Where a tensor has exactly
// this name, the path names it and is no glob; if the tensor is no matrix, reading it is an error.
// Throws Error when nothing is named.
std::vector<std::string> expand_tensors(const TensorPath& path);

// FILE.safetensors.index.json and the glob behind it. Empty where the path names no such file.
std::optional<TensorPath> parse_tensor_index(const std::string& path);

// The same of all files that an index names, as FILE.safetensors:NAME by name. Throws Error for
// what is no index, and for a tensor or a file of it that is not there.
std::vector<std::string> expand_tensor_index(const TensorPath& path);

}  // namespace spmmbench
