#include "io/npy.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cstring>
#include <optional>

#include "io/dense_values.hpp"
#include "io/file.hpp"
#include "spmmbench/error.hpp"

namespace spmmbench {
namespace {

constexpr std::string_view kNpyMagic = "\x93NUMPY";
constexpr std::size_t kPreamble = 8;  // magic, major and minor version

// The text after `key': ` in the header's dictionary, a Python literal.
std::string_view field(const std::string& name, std::string_view dictionary, std::string_view key) {
  std::size_t at = dictionary.find(fmt::format("'{}':", key));
  if (at != std::string_view::npos) at = dictionary.find_first_not_of(' ', at + key.size() + 3);
  if (at == std::string_view::npos)
    throw Error(fmt::format("{}: expected '{}' in the .npy header", name, key));
  return dictionary.substr(at);
}

// "'<f4', ..." to "<f4". A structured type, which begins with a bracket, stays as it is.
std::string parse_type(std::string_view text) {
  const std::string_view item = text.substr(0, text.find(','));
  const std::size_t end = item.starts_with('\'') ? item.find('\'', 1) : std::string_view::npos;
  return std::string(end == std::string_view::npos ? item : item.substr(1, end - 1));
}

// "(3, 4)" to {3, 4}; "(5,)" to {5}; "()" to {}
std::optional<std::vector<std::int64_t>> parse_shape(std::string_view text) {
  std::vector<std::int64_t> sizes;
  const char *p = text.data(), *const end = p + text.size();
  const auto skip = [&](char c) {
    while (p < end && *p == ' ') ++p;
    return p < end && *p == c && (++p, true);
  };
  if (!skip('(')) return {};
  while (!skip(')')) {
    while (p < end && *p == ' ') ++p;
    std::int64_t size = 0;
    const auto [last, error] = std::from_chars(p, end, size);
    if (error != std::errc{}) return {};
    p = last;
    sizes.push_back(size);
    if (!skip(',') && (p >= end || *p != ')')) return {};
  }
  return sizes;
}

}  // namespace

NpyArray parse_npy(std::string_view file, const std::string& name) {
  if (file.size() < kPreamble + 4 || !file.starts_with(kNpyMagic)) {
    const std::string foreign = describe_foreign_content(file.substr(0, 256));
    throw Error(fmt::format("{}: expected a NumPy .npy file, got {}", name,
                            foreign.empty() ? quote(file.substr(0, 8)) : foreign));
  }
  if (file[6] < 1 || file[6] > 3)
    throw Error(fmt::format("{}: expected version 1, 2 or 3 of .npy, got {}", name,
                            static_cast<unsigned char>(file[6])));
  // The length of the dictionary is 16 bits in version 1 and 32 bits since.
  const std::size_t length_bytes = file[6] == 1 ? 2 : 4;
  std::uint32_t length = 0;
  std::memcpy(&length, file.data() + kPreamble, length_bytes);
  const std::size_t header_bytes = kPreamble + length_bytes + length;
  if (header_bytes > file.size())
    throw Error(fmt::format("{}: truncated: expected a .npy header of {} bytes, got {}", name,
                            header_bytes, file.size()));
  const std::string_view dictionary = file.substr(kPreamble + length_bytes, length);

  NpyArray array;
  array.type = parse_type(field(name, dictionary, "descr"));
  const std::string_view order = field(name, dictionary, "fortran_order");
  array.fortran_order = order.starts_with("True");
  if (!array.fortran_order && !order.starts_with("False"))
    throw Error(fmt::format("{}: expected fortran_order True or False, got {}", name,
                            quote(order.substr(0, order.find(',')))));
  const std::string_view shape = field(name, dictionary, "shape");
  auto sizes = parse_shape(shape);
  if (!sizes)
    throw Error(fmt::format("{}: expected a shape such as (3, 4), got {}", name,
                            quote(shape.substr(0, shape.find(')') + 1))));
  array.shape = std::move(*sizes);
  array.data = file.substr(header_bytes);
  return array;
}

DenseMatrix parse_npy_matrix(std::string_view file, const std::string& name) {
  const NpyArray array = parse_npy(file, name);
  StoredType type = ElementType::f32;
  if (array.type == "<f2") type = ElementType::f16;
  else if (array.type == "<f8") type = kDouble;
  else if (array.type != "<f4")
    throw Error(fmt::format("{}: expected little-endian float16, float32 or float64, got {}", name,
                            quote(array.type)));
  if (array.shape.size() != 2)
    throw Error(fmt::format("{}: expected a 2-D shape (rows, columns), got {} dimensions", name,
                            array.shape.size()));
  return widen_values(name, array.shape[0], array.shape[1], type, array.data, array.fortran_order);
}

}  // namespace spmmbench
