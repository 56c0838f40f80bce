#pragma once
// The text of a packed matrix: NAME.mtx.gz, .xz or .zst, or SuiteSparse's NAME.tar.gz with its
// member NAME/NAME.mtx.

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>

namespace spmmbench {

// A buffer that grows by realloc, which moves pages instead of copying bytes.
class TextBuffer {
 public:
  void append(std::string_view text);  // throws std::bad_alloc
  std::string_view view() const { return {data_.get(), size_}; }

 private:
  struct Free {
    void operator()(char* data) const { std::free(data); }
  };
  std::unique_ptr<char, Free> data_;
  std::size_t size_ = 0, capacity_ = 0;
};

struct UnpackedText {
  TextBuffer text;
  std::string name;  // for messages: the path, with the member of an archive in parentheses
};

// Throws Error when the data are not gzip, xz or zstd, truncated or corrupt, no archive although
// the name says so, do not fit in memory, have a line of more than 1 MiB, or when the archive has
// no such member.
UnpackedText unpack_matrix_text(const std::string& path);

}  // namespace spmmbench
