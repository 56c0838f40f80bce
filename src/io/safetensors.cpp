#include "io/safetensors.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstring>
#include <limits>
#include <optional>

#include "core/numbered.hpp"
#include "io/dense_values.hpp"
#include "io/file.hpp"
#include "io/safetensors_header.hpp"
#include "spmmbench/error.hpp"

namespace spmmbench {
namespace {

constexpr std::size_t kLengthBytes = 8;
// The limit of the format's own implementation (huggingface/safetensors, MAX_HEADER_SIZE).
constexpr std::uint64_t kLongestHeader = 100'000'000;

// "fp8_e4m3" is F8_E4M3 there, "bf16" BF16.
std::string dtype_of(ElementType type) {
  std::string out;
  for (const char c : to_string(type))
    if (c != 'p') out += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return out;
}

std::optional<ElementType> stored_type(std::string_view dtype) {
  const auto found = std::ranges::find(kElementTypes, dtype, dtype_of);
  if (found == kElementTypes.end()) return {};
  return *found;
}

// Empty where the product is larger than any file.
std::optional<std::size_t> value_count(const std::vector<std::int64_t>& shape) {
  constexpr auto kMost = static_cast<std::size_t>(std::numeric_limits<std::int64_t>::max());
  std::size_t count = 1;
  for (const std::int64_t size : shape) {
    if (size > 0 && count > kMost / static_cast<std::size_t>(size)) return {};
    count *= static_cast<std::size_t>(size);
  }
  return count;
}

void check_bytes(const TensorInfo& tensor, const std::string& path) {
  const std::optional<ElementType> type = stored_type(tensor.dtype);
  if (!type) return;  // tensors that are not read may be of any type
  const std::optional<std::size_t> count = value_count(tensor.shape);
  const std::size_t got = tensor.end - tensor.begin;
  if (!count || *count != got / bytes_of(*type) || got % bytes_of(*type) != 0)
    throw Error(fmt::format("{}: expected data_offsets of {} that hold its {} {} values, got {}",
                            path, quote(tensor.name),
                            count ? fmt::format("{}", *count) : std::string("2^63 or more"),
                            tensor.dtype, numbered(got, "byte")));
}

// The tensors lie one behind another and fill the file.
void check_offsets(const std::vector<TensorInfo>& tensors, std::size_t data_bytes,
                   const std::string& path) {
  std::vector<const TensorInfo*> order;
  order.reserve(tensors.size());
  for (const TensorInfo& tensor : tensors) order.push_back(&tensor);
  std::sort(order.begin(), order.end(), [](const TensorInfo* a, const TensorInfo* b) {
    return std::pair(a->begin, a->end) < std::pair(b->begin, b->end);
  });
  std::size_t end = 0;
  const TensorInfo* before = nullptr;
  for (const TensorInfo* tensor : order) {
    if (tensor->begin < end)
      throw Error(fmt::format("{}: expected tensors that do not overlap, got {} and {}", path,
                              quote(before->name), quote(tensor->name)));
    if (tensor->begin > end)
      throw Error(fmt::format("{}: expected no gap before {}, got {}", path, quote(tensor->name),
                              numbered(tensor->begin - end, "byte")));
    end = tensor->end;
    before = tensor;
  }
  if (end != data_bytes)
    throw Error(fmt::format("{}: {}expected {} of tensors, got {}", path,
                            end > data_bytes ? "truncated: " : "", numbered(end, "byte"),
                            data_bytes));
}

}  // namespace

bool TensorInfo::is_matrix() const { return shape.size() == 2 && stored_type(dtype).has_value(); }

TensorFile parse_safetensors(std::string_view file, const std::string& path) {
  const std::string foreign = describe_foreign_content(file);
  if (file.size() < kLengthBytes || !foreign.empty())
    throw Error(fmt::format("{}: expected a safetensors file, got {}", path,
                            foreign.empty() ? numbered(file.size(), "byte") : foreign));
  std::uint64_t length = 0;
  std::memcpy(&length, file.data(), kLengthBytes);
  if (length > kLongestHeader)
    throw Error(fmt::format("{}: expected a safetensors header of at most {} bytes, got {}", path,
                            kLongestHeader, length));
  if (length > file.size() - kLengthBytes)
    throw Error(fmt::format("{}: truncated: expected a safetensors header of {}, got {}", path,
                            numbered(length, "byte"), file.size() - kLengthBytes));
  TensorFile out;
  out.data_begin = kLengthBytes + length;
  out.tensors = parse_tensor_header(file.substr(kLengthBytes, length), path);
  check_offsets(out.tensors, file.size() - out.data_begin, path);
  for (const TensorInfo& tensor : out.tensors) check_bytes(tensor, path);
  std::sort(out.tensors.begin(), out.tensors.end(),
            [](const TensorInfo& a, const TensorInfo& b) { return a.name < b.name; });
  return out;
}

TensorFile read_safetensors_header(const std::string& path) {
  return parse_safetensors(MappedFile(path).bytes(), path);
}

std::string readable_dtypes() {
  std::string out = dtype_of(kElementTypes.front());
  for (std::size_t i = 1; i < kElementTypes.size(); ++i)
    out += (i + 1 < kElementTypes.size() ? ", " : " or ") + dtype_of(kElementTypes[i]);
  return out;
}

const TensorInfo& matrix_named(const TensorFile& file, const std::string& path,
                               const std::string& name) {
  const auto found = std::find_if(file.tensors.begin(), file.tensors.end(),
                                  [&](const TensorInfo& t) { return t.name == name; });
  if (found == file.tensors.end())
    throw Error(
        fmt::format("{}: no tensor {} among its {}", path, quote(name, 200), file.tensors.size()));
  if (!stored_type(found->dtype))
    throw Error(fmt::format("{}:{}: expected {}, got {}", path, name, readable_dtypes(),
                            quote(found->dtype)));
  if (found->shape.size() != 2)
    throw Error(fmt::format("{}:{}: expected a matrix, got {}", path, name,
                            numbered(found->shape.size(), "dimension")));
  return *found;
}

DenseMatrix read_tensor(const std::string& path, const std::string& name, bool fp64) {
  const MappedFile file(path);
  const TensorFile parsed = parse_safetensors(file.bytes(), path);
  const TensorInfo& tensor = matrix_named(parsed, path, name);
  const std::string_view data =
      file.bytes().substr(parsed.data_begin + tensor.begin, tensor.end - tensor.begin);
  return widen_values(fmt::format("{}:{}", path, name), tensor.shape[0], tensor.shape[1],
                      *stored_type(tensor.dtype), data, fp64);
}

}  // namespace spmmbench
