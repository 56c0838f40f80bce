#include "io/gzip.hpp"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "io/file.hpp"
#include "spmmbench/error.hpp"

namespace spmmbench {
namespace {

constexpr std::size_t kPieceBytes = std::size_t{1} << 18;
constexpr int kGzipWindowBits = 15 + 16;  // zlib's code for a gzip header and trailer

// z_stream counts in 32 bits.
uInt clamp_length(std::size_t bytes) {
  return static_cast<uInt>(std::min<std::size_t>(bytes, std::numeric_limits<uInt>::max()));
}

Bytef* mutable_bytes(const char* data) {  // zlib reads through a pointer to non-const
  return reinterpret_cast<Bytef*>(const_cast<char*>(data));
}

struct Inflater {
  z_stream z{};
  Inflater() {
    if (inflateInit2(&z, kGzipWindowBits) != Z_OK) throw std::bad_alloc();
  }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;
  ~Inflater() { inflateEnd(&z); }
};

}  // namespace

void inflate_file(const std::string& path, const ByteSink& sink) {
  const MappedFile file(path);
  std::string_view rest = file.bytes();
  if (!rest.starts_with("\x1f\x8b")) {
    const std::string foreign = describe_foreign_content(rest.substr(0, 256));
    throw Error(fmt::format("{}: expected gzip data, got {}", path,
                            !foreign.empty() ? foreign
                            : rest.empty()   ? "an empty file"
                                             : quote(rest.substr(0, 16))));
  }
  Inflater inflater;
  z_stream& z = inflater.z;
  std::vector<char> piece(kPieceBytes);
  for (;;) {
    z.next_in = mutable_bytes(rest.data());
    z.avail_in = clamp_length(rest.size());
    z.next_out = reinterpret_cast<Bytef*>(piece.data());
    z.avail_out = static_cast<uInt>(piece.size());
    const int status = inflate(&z, Z_NO_FLUSH);
    if (status != Z_OK && status != Z_STREAM_END && status != Z_BUF_ERROR)
      throw Error(fmt::format("{}: corrupt gzip data at byte {}: {}", path,
                              reinterpret_cast<const char*>(z.next_in) - file.bytes().data(),
                              z.msg != nullptr ? z.msg : "unknown"));
    sink({piece.data(), piece.size() - z.avail_out});
    const bool output_full = z.avail_out == 0;
    rest.remove_prefix(reinterpret_cast<const char*>(z.next_in) - rest.data());
    if (status == Z_STREAM_END) {
      // Members may follow one another; zero padding and trailing bytes end the file, as for gzip.
      if (!rest.starts_with("\x1f\x8b")) return;
      inflateReset(&z);
    } else if (rest.empty() && !output_full) {
      throw Error(
          fmt::format("{}: truncated: the gzip data end after {} bytes, in the middle of "
                      "the stream",
                      path, file.bytes().size()));
    }
  }
}

struct GzipOutput::Stream {
  z_stream z{};
  std::vector<char> piece = std::vector<char>(kPieceBytes);
  Stream() {
    if (deflateInit2(&z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, kGzipWindowBits, 8,
                     Z_DEFAULT_STRATEGY) != Z_OK)
      throw std::bad_alloc();
  }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  ~Stream() { deflateEnd(&z); }
};

GzipOutput::GzipOutput(const std::string& path)
    : file_(path), stream_(std::make_unique<Stream>()) {}
GzipOutput::~GzipOutput() = default;

void GzipOutput::write(std::string_view text) {
  while (!text.empty()) {
    const std::string_view part = text.substr(0, std::numeric_limits<uInt>::max());
    deflate(part, false);
    text.remove_prefix(part.size());
  }
}

void GzipOutput::commit() {
  deflate({}, true);
  file_.commit();
}

void GzipOutput::deflate(std::string_view text, bool finish) {
  z_stream& z = stream_->z;
  z.next_in = mutable_bytes(text.data());
  z.avail_in = static_cast<uInt>(text.size());
  do {
    z.next_out = reinterpret_cast<Bytef*>(stream_->piece.data());
    z.avail_out = static_cast<uInt>(kPieceBytes);
    ::deflate(&z, finish ? Z_FINISH : Z_NO_FLUSH);
    file_.write(stream_->piece.data(), kPieceBytes - z.avail_out);
  } while (z.avail_out == 0);
}

}  // namespace spmmbench
