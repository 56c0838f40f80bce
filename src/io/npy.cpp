#include "io/npy.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cstring>
#include <functional>
#include <map>
#include <optional>

#include "core/numbered.hpp"
#include "io/dense_values.hpp"
#include "io/file.hpp"
#include "spmmbench/error.hpp"

namespace spmmbench {
namespace {

constexpr std::string_view kNpyMagic = "\x93NUMPY";
constexpr std::size_t kPreamble = 8;  // magic, major and minor version

using Dictionary = std::map<std::string, std::string_view, std::less<>>;

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlanks = " \n";
  const std::size_t begin = text.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlanks) + 1 - begin);
}

// The length of the value at the beginning of `text`: up to a comma or a brace that is outside of
// its quotes and brackets. npos where there is none.
std::size_t length_of_value(std::string_view text) {
  int depth = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (depth == 0 && (c == ',' || c == '}')) return i;
    if (c == '\'' || c == '"') i = text.find(c, i + 1);
    if (i == std::string_view::npos) break;
    depth += c == '(' || c == '[' || c == '{';
    depth -= c == ')' || c == ']' || c == '}';
  }
  return std::string_view::npos;
}

// The values of a Python dictionary by their keys, as text; empty where it is none or names a key
// twice.
std::optional<Dictionary> parse_dictionary(std::string_view text) {
  Dictionary values;
  text = trimmed(text);
  if (text.size() < 2 || text.front() != '{' || text.back() != '}') return {};
  for (text = trimmed(text.substr(1)); text != "}";) {
    const std::size_t quote = text.front() == '\'' || text.front() == '"'
                                  ? text.find(text.front(), 1)
                                  : std::string_view::npos;
    if (quote == std::string_view::npos) return {};
    const std::string key(text.substr(1, quote - 1));
    text = trimmed(text.substr(quote + 1));
    if (!text.starts_with(':')) return {};
    text = trimmed(text.substr(1));
    const std::size_t length = length_of_value(text);
    if (length == std::string_view::npos || length == 0) return {};
    if (!values.emplace(key, trimmed(text.substr(0, length))).second) return {};
    text = trimmed(text.substr(length));
    if (text.starts_with(',')) text = trimmed(text.substr(1));
    else if (text != "}") return {};
    if (text.empty()) return {};
  }
  return values;
}

std::string_view field(const std::string& name, const Dictionary& dictionary,
                       std::string_view key) {
  const auto it = dictionary.find(key);
  if (it == dictionary.end())
    throw Error(fmt::format("{}: expected '{}' in the .npy header", name, key));
  return it->second;
}

// "'<f4'" to "<f4". A structured type, which begins with a bracket, stays as it is.
std::string parse_type(std::string_view text) {
  const bool quoted = text.size() >= 2 && (text.front() == '\'' || text.front() == '"') &&
                      text.back() == text.front();
  return std::string(quoted ? text.substr(1, text.size() - 2) : text);
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
  if (p != end) return {};
  return sizes;
}

}  // namespace

NpyArray parse_npy(std::string_view file, const std::string& name) {
  if (!file.starts_with(kNpyMagic))
    throw Error(
        fmt::format("{}: expected a NumPy .npy file, got {}", name, describe_content(file)));
  if (file.size() < kPreamble + 4)
    throw Error(fmt::format("{}: truncated: expected a .npy header, got {}", name,
                            numbered(file.size(), "byte")));
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
  const std::string_view header = file.substr(kPreamble + length_bytes, length);
  const std::optional<Dictionary> dictionary = parse_dictionary(header);
  if (!dictionary)
    throw Error(fmt::format("{}: expected a dictionary in the .npy header, got {}", name,
                            quote(header.substr(0, 100))));

  NpyArray array;
  array.type = parse_type(field(name, *dictionary, "descr"));
  const std::string_view order = field(name, *dictionary, "fortran_order");
  array.fortran_order = order == "True";
  if (!array.fortran_order && order != "False")
    throw Error(
        fmt::format("{}: expected fortran_order True or False, got {}", name, quote(order)));
  const std::string_view shape = field(name, *dictionary, "shape");
  auto sizes = parse_shape(shape);
  if (!sizes)
    throw Error(fmt::format("{}: expected a shape such as (3, 4), got {}", name, quote(shape)));
  if (dictionary->size() > 3)
    throw Error(
        fmt::format("{}: expected descr, fortran_order and shape alone in the .npy header, got {}",
                    name, quote(header.substr(0, 100))));
  array.shape = std::move(*sizes);
  array.data = file.substr(header_bytes);
  return array;
}

DenseMatrix parse_npy_matrix(std::string_view file, const std::string& name, bool fp64) {
  const NpyArray array = parse_npy(file, name);
  ElementType type = ElementType::f32;
  if (array.type == "<f2") type = ElementType::f16;
  else if (array.type == "<f8") type = ElementType::f64;
  else if (array.type != "<f4")
    throw Error(fmt::format("{}: expected little-endian float16, float32 or float64, got {}", name,
                            quote(array.type)));
  if (array.shape.size() != 2)
    throw Error(fmt::format("{}: expected a 2-D shape (rows, columns), got {}", name,
                            numbered(array.shape.size(), "dimension")));
  return widen_values(name, array.shape[0], array.shape[1], type, array.data, fp64,
                      array.fortran_order);
}

}  // namespace spmmbench
