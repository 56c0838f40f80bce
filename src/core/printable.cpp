#include "spmmbench/printable.hpp"

#include <fmt/format.h>

#include <charconv>

#include "spmmbench/error.hpp"

namespace spmmbench {
namespace {

unsigned char byte_at(std::string_view text, std::size_t at) {
  return static_cast<unsigned char>(text[at]);
}

// Length of the character at the head of `text`, and 0 where that is not valid UTF-8 (RFC 3629:
// no overlong forms, no surrogates, nothing beyond U+10FFFF).
std::size_t utf8_length(std::string_view text) {
  const unsigned char first = byte_at(text, 0);
  if (first < 0x80) return 1;
  const std::size_t length = first >= 0xC2 && first <= 0xDF   ? 2
                             : first >= 0xE0 && first <= 0xEF ? 3
                             : first >= 0xF0 && first <= 0xF4 ? 4
                                                              : 0;
  if (length == 0 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i)
    if ((byte_at(text, i) & 0xC0) != 0x80) return 0;
  const unsigned char second = byte_at(text, 1);
  const bool outside = (first == 0xE0 && second < 0xA0) || (first == 0xED && second > 0x9F) ||
                       (first == 0xF0 && second < 0x90) || (first == 0xF4 && second > 0x8F);
  return outside ? 0 : length;
}

// Control characters: C0, DEL, and C1 (U+0080 to U+009F), which terminals act on too, and those
// that end a line or turn the direction of the text behind them (U+2028 to U+202E, U+2066 to
// U+2069).
bool is_control(std::string_view character) {
  const unsigned char first = byte_at(character, 0);
  if (character.size() == 1) return first < 0x20 || first == 0x7F;
  if (character.size() == 2) return first == 0xC2 && byte_at(character, 1) < 0xA0;
  if (first != 0xE2 || character.size() != 3) return false;
  const unsigned char second = byte_at(character, 1), third = byte_at(character, 2);
  return (second == 0x80 && third >= 0xA8 && third <= 0xAE) ||
         (second == 0x81 && third >= 0xA6 && third <= 0xA9);
}

std::string escape(std::string_view bytes, bool double_backslashes, bool keep_lines) {
  std::string out;
  out.reserve(bytes.size());
  while (!bytes.empty()) {
    const std::size_t length = utf8_length(bytes);
    const std::string_view character = bytes.substr(0, length == 0 ? 1 : length);
    bytes.remove_prefix(character.size());
    if (length == 0 || (is_control(character) && !(keep_lines && character == "\n"))) {
      for (const char c : character) out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    } else {
      if (double_backslashes && character == "\\") out += '\\';
      out += character;
    }
  }
  return out;
}

}  // namespace

std::string to_printable(std::string_view bytes) { return escape(bytes, true, false); }

std::string from_printable(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\') {
      out += text[i];
      continue;
    }
    const std::string_view rest = text.substr(i + 1);
    unsigned value = 0;
    if (rest.starts_with('\\')) {
      out += '\\';
      i += 1;
    } else if (rest.size() >= 3 && rest[0] == 'x' &&
               std::from_chars(rest.data() + 1, rest.data() + 3, value, 16).ptr ==
                   rest.data() + 3) {
      out += static_cast<char>(value);
      i += 3;
    } else {
      throw Error(fmt::format("'{}': expected two backslashes or \\xNN at character {}", text, i));
    }
  }
  return out;
}

std::string printable_message(std::string_view bytes, bool keep_lines) {
  return escape(bytes, false, keep_lines);
}

}  // namespace spmmbench
