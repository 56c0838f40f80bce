#pragma once
// gzip streams through zlib.

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "io/output.hpp"

namespace spmmbench {

using ByteSink = std::function<void(std::string_view)>;

// Unpacks every member of the gzip file at `path` into `sink`, piece by piece. Throws Error when it
// is not gzip, truncated or corrupt (its CRC included).
void inflate_file(const std::string& path, const ByteSink& sink);

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
