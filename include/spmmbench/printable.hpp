#pragma once
// A file name may hold any bytes but 0 and '/'. JSON, CSV and terminals need text without control
// characters. These functions convert one into the other and back.

#include <string>
#include <string_view>

namespace spmmbench {

// Valid UTF-8 without control characters stays as it is, except that a backslash is doubled; every
// other byte becomes \xNN. The result stands for exactly one string of bytes.
std::string to_printable(std::string_view bytes);
// Throws Error for text that to_printable never returns.
std::string from_printable(std::string_view text);

// The same for a message, which is never converted back: backslashes are not doubled, and
// `keep_lines` lets line breaks through.
std::string printable_message(std::string_view bytes, bool keep_lines = false);

}  // namespace spmmbench
