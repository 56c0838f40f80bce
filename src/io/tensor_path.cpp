#include "io/tensor_path.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "core/numbered.hpp"
#include "core/parse_json.hpp"
#include "io/file.hpp"
#include "io/safetensors.hpp"
#include "spmmbench/error.hpp"
#include "spmmbench/spec.hpp"

namespace spmmbench {
namespace {

constexpr std::size_t kShownOfName = 200;  // characters in a message

// FILE and NAME of FILE:NAME, where FILE has the extension.
std::optional<TensorPath> split(const std::string& path, std::string_view extension) {
  if (path.ends_with(extension)) return TensorPath{path, ""};
  std::error_code error;
  const std::string before = fmt::format("{}:", extension);
  std::size_t at = path.rfind(before);
  if (at == std::string::npos || std::filesystem::exists(path, error)) return {};
  TensorPath parts;
  for (; at != std::string::npos; at = at == 0 ? at - 1 : path.rfind(before, at - 1)) {
    const std::size_t colon = at + extension.size();
    parts = {path.substr(0, colon), path.substr(colon + 1)};
    if (std::filesystem::is_regular_file(parts.file, error)) break;
  }
  if (parts.tensor.empty())
    throw Error(
        fmt::format("{}: expected a tensor or a glob behind the colon, got none", parts.file));
  return parts;
}

// The file of each tensor, by its name.
std::map<std::string, std::string> weight_map_of(const std::string& path) {
  const MappedFile file(path);
  const auto json = parse_json_if_any(std::string(file.bytes()));
  if (!json.is_object() || !json.contains("weight_map") || !json["weight_map"].is_object())
    throw Error(fmt::format("{}: expected JSON with a weight_map from tensors to files", path));
  std::map<std::string, std::string> files;
  for (const auto& [tensor, name] : json["weight_map"].items()) {
    if (!name.is_string())
      throw Error(fmt::format("{}: weight_map: {}: expected the name of a file", path,
                              quote(tensor, kShownOfName)));
    files[tensor] = name.get<std::string>();
  }
  return files;
}

}  // namespace

std::optional<TensorPath> parse_tensor_path(const std::string& path) {
  return split(path, ".safetensors");
}

std::optional<TensorPath> parse_tensor_index(const std::string& path) {
  return split(path, ".safetensors.index.json");
}

std::string file_of(const std::string& path) {
  if (const auto index = parse_tensor_index(path)) return index->file;
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
    throw Error(fmt::format("{}: expected a matrix of {}{}, got none among {}", path.file,
                            readable_dtypes(),
                            path.tensor.empty() ? "" : " named " + quote(path.tensor, 120),
                            numbered(file.tensors.size(), "tensor")));
  return found;
}

std::vector<std::string> expand_tensor_index(const TensorPath& path) {
  const std::filesystem::path folder = std::filesystem::path(path.file).parent_path();
  std::map<std::string, TensorFile> headers;
  std::vector<std::string> found;
  for (const auto& [tensor, name] : weight_map_of(path.file)) {
    if (!path.tensor.empty() && tensor != path.tensor && !glob_match(path.tensor, tensor)) continue;
    const std::string file = (folder / name).string();
    std::error_code error;
    if (!file.ends_with(".safetensors") || !std::filesystem::exists(file, error))
      throw Error(fmt::format("{}: weight_map: {}: expected a .safetensors file, got {}", path.file,
                              quote(tensor, kShownOfName), quote(file, kShownOfName)));
    const auto [header, added] = headers.try_emplace(file);
    if (added) header->second = read_safetensors_header(file);
    const std::vector<TensorInfo>& tensors = header->second.tensors;
    const auto info = std::ranges::find(tensors, tensor, &TensorInfo::name);
    if (info == tensors.end())
      throw Error(fmt::format("{}: weight_map: expected {} in {}, which lacks it", path.file,
                              quote(tensor, kShownOfName), quote(file, kShownOfName)));
    if (info->is_matrix() || tensor == path.tensor)
      found.push_back(fmt::format("{}:{}", file, tensor));
  }
  if (found.empty())
    throw Error(fmt::format("{}: expected a matrix of {}{}, got none", path.file, readable_dtypes(),
                            path.tensor.empty() ? "" : " named " + quote(path.tensor, 120)));
  return found;
}

}  // namespace spmmbench
