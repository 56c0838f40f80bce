#pragma once
// Files for the readers of this folder: a read-only mapping, and descriptions of foreign content
// for error messages.

#include <cstddef>
#include <iosfwd>
#include <memory>
#include <string>
#include <string_view>

#include "core/available_memory.hpp"
#include "io/output.hpp"

namespace spmmbench {

// A whole file, mapped read-only. Throws Error when it cannot be opened or is not a plain file.
class MappedFile {
 public:
  explicit MappedFile(const std::string& path);
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  std::string_view bytes() const { return {data_, size_}; }

 private:
  Descriptor file_;
  const char* data_ = nullptr;
  std::size_t size_ = 0;
};

// How many pages of mapped files were read as zeros because another process had made the file
// shorter. If this number grows while a file is read, reading it is an error.
std::size_t missing_pages();

bool has_content(const std::string& path);  // a plain file that is not empty

// A file, or all that comes through a pipe; a pipe that sends nothing for some time is an error.
// Throws Error for anything else.
std::unique_ptr<std::istream> open_text(const std::string& path);

// Gives the pages inside a part of a mapped file back to the system. A later access reads them from
// the file.
void release_pages(std::string_view part_of_mapping);

// The byte order mark, which editors of Windows put before a text.
inline constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

// "a Git LFS pointer (fetch the file with 'git lfs pull')", "an HTML page ...", "gzip data ...",
// "an empty file", or nothing when `file`, or its beginning, is none of these.
std::string describe_foreign_content(std::string_view file);

// The same, but the first bytes where it is nothing.
std::string describe_content(std::string_view file);

// 'text' cut to `most` bytes, unprintable ones escaped.
std::string quote(std::string_view text, std::size_t most = 40);

// "1.5 GB"
std::string format_bytes(double bytes);

}  // namespace spmmbench
