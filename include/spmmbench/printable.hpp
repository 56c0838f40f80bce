#pragma once
// Names of files are any bytes but 0 and '/'. JSON, CSV and terminals want text without control
// characters: these turn the one into the other and back.

#include <string>
#include <string_view>

namespace spmmbench {

// Valid UTF-8 without control characters stays as it is, except that a backslash is doubled; every
// other byte becomes \xNN. The result stands for exactly one string of bytes.
std::string to_printable(std::string_view bytes);
std::string from_printable(
    std::string_view text);  // throws Error for what to_printable never gives

// The same for a message, which nobody reads back: backslashes are not doubled and `keep_lines`
// lets line breaks through.
std::string printable_message(std::string_view bytes, bool keep_lines = false);

}  // namespace spmmbench
