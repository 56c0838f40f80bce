#pragma once
// gzip streams through zlib.

#include <memory>
#include <string>
#include <string_view>

#include "io/output.hpp"

namespace spmmbench {

// Unpacks all members of a gzip file, piece by piece. Unlike libarchive it compares their
// checksums.
class GzipInput {
 public:
  static bool begins(std::string_view packed);  // true if these are gzip data

  GzipInput(std::string_view packed, std::string path);  // `packed` outlives it
  ~GzipInput();

  // The next piece, valid until the next call; empty at the end. Throws Error where the data are
  // truncated or corrupt.
  std::string_view next();

 private:
  struct Stream;

  std::string_view packed_, rest_;
  std::string path_;
  std::unique_ptr<Stream> stream_;
};

// An output file that is compressed on the way.
class GzipOutput {
 public:
  explicit GzipOutput(const std::string& path);
  ~GzipOutput();

  void write(std::string_view text);
  void commit();

 private:
  struct Stream;

  void deflate(std::string_view text, bool finish);

  OutputFile file_;
  std::unique_ptr<Stream> stream_;
};

}  // namespace spmmbench
