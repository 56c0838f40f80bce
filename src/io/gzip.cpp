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

constexpr std::size_t kForeignBytes = 16;  // shown of what is no member
constexpr std::string_view kGzipMagic = "\x1f\x8b";

}  // namespace

struct GzipInput::Stream {
  z_stream z{};
  std::vector<char> piece = std::vector<char>(kPieceBytes);
  bool ended = false;  // the last member is complete
  Stream() {
    if (inflateInit2(&z, kGzipWindowBits) != Z_OK) throw std::bad_alloc();
  }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  ~Stream() { inflateEnd(&z); }
};

bool GzipInput::begins(std::string_view packed) { return packed.starts_with(kGzipMagic); }

GzipInput::GzipInput(std::string_view packed, std::string path)
    : packed_(packed), rest_(packed), path_(std::move(path)), stream_(std::make_unique<Stream>()) {}
GzipInput::~GzipInput() = default;

std::string_view GzipInput::next() {
  z_stream& z = stream_->z;
  std::size_t length = 0;
  while (!stream_->ended && length == 0) {
    z.next_in = mutable_bytes(rest_.data());
    z.avail_in = clamp_length(rest_.size());
    z.next_out = reinterpret_cast<Bytef*>(stream_->piece.data());
    z.avail_out = static_cast<uInt>(kPieceBytes);
    const int status = inflate(&z, Z_NO_FLUSH);
    const char* const at = reinterpret_cast<const char*>(z.next_in);
    if (status != Z_OK && status != Z_STREAM_END && status != Z_BUF_ERROR)
      throw Error(fmt::format("{}: corrupt gzip data at byte {}: {}", path_, at - packed_.data(),
                              z.msg != nullptr ? z.msg : "unknown"));
    length = kPieceBytes - z.avail_out;
    rest_.remove_prefix(at - rest_.data());
    if (status == Z_STREAM_END) {
      // Members may follow one another, and zeros the last, as for gzip.
      stream_->ended = !begins(rest_);
      if (!stream_->ended) inflateReset(&z);
      else if (rest_.find_first_not_of('\0') != std::string_view::npos)
        throw Error(fmt::format(
            "{}: expected the end of the file behind the gzip data, got {} at byte {}", path_,
            quote(rest_.substr(0, kForeignBytes)), rest_.data() - packed_.data()));
    } else if (rest_.empty() && z.avail_out > 0) {
      throw Error(
          fmt::format("{}: truncated: the gzip data end after {} bytes, in the middle of "
                      "the stream",
                      path_, packed_.size()));
    }
  }
  return {stream_->piece.data(), length};
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
