#include "io/tensor_path.hpp"

#include <fmt/format.h>

#include <filesystem>

#include "io/file.hpp"
#include "io/safetensors.hpp"
#include "spmmbench/error.hpp"
#include "spmmbench/spec.hpp"

namespace spmmbench {

std::optional<TensorPath> parse_tensor_path(const std::string& path) {
  constexpr std::string_view kExtension = ".safetensors", kBefore = ".safetensors:";
  if (path.ends_with(kExtension)) return TensorPath{path, ""};
  std::error_code error;
  std::size_t at = path.rfind(kBefore);
  if (at == std::string::npos || std::filesystem::exists(path, error)) return {};
  TensorPath split;
  for (; at != std::string::npos; at = at == 0 ? at - 1 : path.rfind(kBefore, at - 1)) {
    const std::size_t colon = at + kExtension.size();
    split = {path.substr(0, colon), path.substr(colon + 1)};
    if (std::filesystem::is_regular_file(split.file, error)) break;
  }
  return split;
}

std::string file_of(const std::string& path) {
  const std::optional<TensorPath> tensor = parse_tensor_path(path);
  return tensor ? tensor->file : path;
}

std::vector<std::string> expand_tensors(const TensorPath& path) {
  const TensorFile file = read_safetensors_header(path.file);
  std::vector<std::string> found;
  for (const TensorInfo& tensor : file.tensors) {
    const std::string full = fmt::format("{}:{}", path.file, tensor.name);
    if (!path.tensor.empty() && tensor.name == path.tensor) return {full};
    if (tensor.is_matrix() && (path.tensor.empty() || glob_match(path.tensor, tensor.name)))
      found.push_back(full);
  }
  if (found.empty())
    throw Error(
        fmt::format("{}: expected a matrix of F64, F32, F16 or BF16{}, got none among {} "
                    "tensors",
                    path.file, path.tensor.empty() ? "" : " named " + quote(path.tensor, 120),
                    file.tensors.size()));
  return found;
}

}  // namespace spmmbench
