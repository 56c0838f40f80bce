#pragma once

#include <string>

namespace spmmbench {

// Throws Error where two outputs of one command are the same file, by name or through links. An
// empty name is no output, and streams may be the same.
void require_two_files(const std::string& one, const std::string& other);

}  // namespace spmmbench
