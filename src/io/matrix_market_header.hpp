#pragma once
// Banner, comments and size line of a Matrix Market file.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "io/csr_assembly.hpp"

namespace spmmbench::mm {

enum class Field { real, integer, pattern };

struct Header {
  bool array = false;
  Field field = Field::real;
  Symmetry symmetry = Symmetry::general;
  std::int64_t rows = 0, cols = 0;  // each below 2^31
  std::int64_t entries = 0;         // lines of data that must follow
  std::size_t bytes = 0;            // where the data begin
  std::int64_t lines = 0;           // the size line's number, counted from 1
};

// Throws Error for everything that is wrong or not supported up to the size line, and for a size
// that the rest of `text` cannot hold.
Header parse_header(std::string_view text, const std::string& name);

}  // namespace spmmbench::mm
