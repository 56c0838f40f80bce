#include "report/terminal.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "spmmbench/error.hpp"

namespace spmmbench {
namespace {

bool continues_character(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

// Bytes of the first `width` characters.
std::size_t prefix_bytes(std::string_view text, std::size_t width) {
  std::size_t at = 0;
  for (; at < text.size(); ++at)
    if (!continues_character(text[at]) && width-- == 0) break;
  return at;
}

}  // namespace

Color parse_color(std::string_view text) {
  if (text == "auto") return Color::automatic;
  if (text == "always") return Color::always;
  if (text == "never") return Color::never;
  throw Error(fmt::format("--color {}: expected auto, always or never", text));
}

int terminal_width(int descriptor) {
  if (isatty(descriptor) != 1) return 0;
  constexpr int kUnknown = 80;  // the width of a terminal whose size is unknown, as the VT100 had
  winsize size{};
  return ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : kUnknown;
}

bool use_color(Color choice, int descriptor) {
  if (choice != Color::automatic) return choice == Color::always;
  const char* no_color = std::getenv("NO_COLOR");
  const char* terminal = std::getenv("TERM");
  return isatty(descriptor) == 1 && (no_color == nullptr || *no_color == '\0') &&
         (terminal == nullptr || std::string_view(terminal) != "dumb");
}

std::size_t display_width(std::string_view text) {
  return text.size() - std::count_if(text.begin(), text.end(), continues_character);
}

std::string pad_left(std::string_view text, std::size_t width) {
  return std::string(width - std::min(width, display_width(text)), ' ').append(text);
}

std::string pad_right(std::string_view text, std::size_t width) {
  return std::string(text).append(width - std::min(width, display_width(text)), ' ');
}

std::string clip(std::string_view text, std::size_t width) {
  if (display_width(text) <= width) return std::string(text);
  return std::string(text.substr(0, prefix_bytes(text, std::max<std::size_t>(width, 1) - 1))) + "~";
}

std::string wrap(std::string_view text, std::size_t width, std::size_t indent) {
  std::string out;
  std::size_t room = width;
  while (width > indent && display_width(text) > room) {
    const std::size_t most = prefix_bytes(text, room);
    std::size_t end = text.rfind(' ', most);
    // A blank within the line's own indentation is no place to break it.
    if (end == std::string_view::npos || text.find_first_not_of(' ') >= end) end = most;
    out.append(text.substr(0, end)).append("\n").append(indent, ' ');
    text.remove_prefix(std::min(text.find_first_not_of(' ', end), text.size()));
    room = width - indent;
  }
  return out.append(text);
}

std::string painted(std::string text, Paint paint, bool color) {
  if (!color || paint == Paint::plain) return text;
  const char* code = "";
  switch (paint) {
    case Paint::plain: break;
    case Paint::winner: code = "1;32"; break;  // bold green
    case Paint::bad: code = "31"; break;       // red
    case Paint::faint: code = "2"; break;
    case Paint::strong: code = "1"; break;
  }
  return fmt::format("\033[{}m{}\033[0m", code, text);
}

}  // namespace spmmbench
