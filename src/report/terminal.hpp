#pragma once
// The look of output: its width, and whether it has colours.

#include <string>
#include <string_view>

namespace spmmbench {

enum class Color { automatic, always, never };
Color parse_color(std::string_view text);  // auto, always, never; throws Error

// Columns of the terminal behind a file descriptor; 0 where it is a file or a pipe, which have no
// width.
int terminal_width(int descriptor);
// `automatic`: on a terminal that is not dumb, unless NO_COLOR is set (https://no-color.org).
bool use_color(Color choice, int descriptor);

// Columns that UTF-8 text takes; a character counts as one.
std::size_t display_width(std::string_view text);
std::string pad_left(std::string_view text, std::size_t width);   // text at the right
std::string pad_right(std::string_view text, std::size_t width);  // text at the left
// The first `width` columns, `~` as the last of them where something is missing.
std::string clip(std::string_view text, std::size_t width);
// Broken at blanks into lines of at most `width` columns, all but the first indented. A longer word
// is broken where the line ends. 0: one line.
std::string wrap(std::string_view text, std::size_t width, std::size_t indent);

enum class Paint { plain, winner, bad, faint, strong };
std::string painted(std::string text, Paint paint, bool color);

}  // namespace spmmbench
