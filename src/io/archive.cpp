#include "io/archive.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <limits>
#include <new>
#include <vector>

#include "io/file.hpp"
#include "io/gzip.hpp"
#include "spmmbench/error.hpp"

namespace spmmbench {
namespace {

// POSIX ustar: 512-byte headers, each followed by the member's bytes padded to 512.
constexpr std::size_t kTarBlock = 512;
constexpr std::size_t kTarMagicAt = 257;
constexpr std::uint64_t kLargestMember = std::uint64_t{1} << 62;  // no sum with it overflows

struct TarHeader {
  std::string name;
  std::uint64_t size = 0;
  bool plain_file = false;
};

std::string_view field(const char* block, std::size_t at, std::size_t length) {
  return {block + at, ::strnlen(block + at, length)};
}

// The size is octal text, or big-endian binary when the first bit is set (GNU). Of one beyond 64
// bits: the largest of them.
std::uint64_t tar_number(const char* block, std::size_t at, std::size_t length) {
  std::uint64_t value = 0;
  if ((block[at] & 0x80) != 0) {
    for (std::size_t i = 1; i < length; ++i) {
      if (value >> 56 != 0) return std::numeric_limits<std::uint64_t>::max();
      value = value << 8 | static_cast<unsigned char>(block[at + i]);
    }
    return value;
  }
  for (const char c : field(block, at, length))
    if (c >= '0' && c <= '7') value = value << 3 | static_cast<std::uint64_t>(c - '0');
  return value;
}

TarHeader parse_tar_header(const char* block) {
  TarHeader header;
  const std::string_view prefix = field(block, 345, 155), name = field(block, 0, 100);
  header.name = prefix.empty() ? std::string(name) : fmt::format("{}/{}", prefix, name);
  header.size = tar_number(block, 124, 12);
  const char type = block[156];
  header.plain_file = type == '0' || type == '\0';
  return header;
}

// Receives the unpacked bytes piece by piece. Keeps all of them, or one member of a tar archive.
class MatrixTextSink {
 public:
  explicit MatrixTextSink(const std::string& path)
      : path_(path), memory_(available_memory_bytes()) {}

  void feed(std::string_view bytes) {
    if (kind_ == Kind::unknown) {
      head_.append(bytes);
      if (head_.size() < kTarBlock) return;
      kind_ = std::string_view(head_).substr(kTarMagicAt, 5) == "ustar" ? Kind::tar : Kind::text;
      const std::string all = std::move(head_);
      head_.clear();
      return kind_ == Kind::tar ? feed_tar(all) : keep(all);
    }
    kind_ == Kind::tar ? feed_tar(bytes) : keep(bytes);
  }

  UnpackedText finish() {
    if (kind_ == Kind::unknown) keep(head_);
    if (kind_ != Kind::tar) return {std::move(text_), path_};
    if (found_.empty())
      throw Error(
          fmt::format("{}: expected a member NAME/NAME.mtx, got {}", path_,
                      members_.empty() ? "none" : fmt::format("{}", fmt::join(members_, ", "))));
    if (wanted_ && left_ > 0)
      throw Error(fmt::format("{}: truncated: {} lacks {} bytes", path_, found_, left_));
    return {std::move(text_), fmt::format("{}({})", path_, found_)};
  }

 private:
  enum class Kind { unknown, text, tar };

  void keep(std::string_view bytes) {
    if (text_.view().size() + bytes.size() > memory_)
      throw Error(fmt::format("{}: expected text that fits in memory, got more than {}", path_,
                              format_bytes(static_cast<double>(memory_))));
    text_.append(bytes);
  }

  void feed_tar(std::string_view bytes) {
    while (!bytes.empty()) {
      const bool in_member = left_ + padding_ > 0;
      const std::size_t take =
          std::min<std::uint64_t>(bytes.size(), left_ > 0      ? left_
                                                : padding_ > 0 ? padding_
                                                               : kTarBlock - head_.size());
      const std::string_view part = bytes.substr(0, take);
      bytes.remove_prefix(take);
      if (!in_member) {
        head_.append(part);
        if (head_.size() == kTarBlock) open_member();
      } else if (left_ > 0) {
        if (wanted_) keep(part);
        left_ -= take;
      } else {
        padding_ -= take;
      }
    }
  }

  void open_member() {
    const TarHeader header = parse_tar_header(head_.data());
    head_.clear();
    if (header.size > kLargestMember)
      throw Error(fmt::format("{}: corrupt: the member {} has {} bytes", path_, quote(header.name),
                              header.size));
    left_ = header.size;
    padding_ = (kTarBlock - header.size % kTarBlock) % kTarBlock;
    const std::filesystem::path name(header.name);
    // The folder of the archive has the name of the matrix; NAME_b.mtx and others beside it are not
    // A.
    wanted_ = found_.empty() && header.plain_file && name.extension() == ".mtx" &&
              name.stem() == name.parent_path().filename();
    if (wanted_) found_ = header.name;
    if (header.plain_file && !header.name.empty() && members_.size() < 8)
      members_.push_back(quote(header.name));
  }

  const std::string& path_;
  std::size_t memory_;
  Kind kind_ = Kind::unknown;
  TextBuffer text_;
  std::string head_, found_;
  std::vector<std::string> members_;
  std::uint64_t left_ = 0, padding_ = 0;  // bytes of the current member still to come
  bool wanted_ = false;                   // the current member is the matrix
};

}  // namespace

void TextBuffer::append(std::string_view text) {
  if (text.empty()) return;
  if (size_ + text.size() > capacity_) {
    const std::size_t capacity = std::max(size_ + text.size(), capacity_ + capacity_ / 2);
    void* const grown = std::realloc(data_.get(), capacity);
    if (grown == nullptr) throw std::bad_alloc();
    (void)data_.release();  // realloc has freed it
    data_.reset(static_cast<char*>(grown));
    capacity_ = capacity;
  }
  std::memcpy(data_.get() + size_, text.data(), text.size());
  size_ += text.size();
}

UnpackedText unpack_matrix_text(const std::string& path) {
  MatrixTextSink sink(path);
  inflate_file(path, [&](std::string_view bytes) { sink.feed(bytes); });
  return sink.finish();
}

}  // namespace spmmbench
