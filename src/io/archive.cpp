#include "io/archive.hpp"

#include <archive.h>
#include <archive_entry.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <filesystem>
#include <new>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "io/file.hpp"
#include "io/gzip.hpp"
#include "spmmbench/error.hpp"
#include "spmmbench/printable.hpp"

namespace spmmbench {
namespace {

constexpr std::size_t kReadBytes = std::size_t{1} << 18;
// No line of a matrix is as long. A longer one would fill the memory before its end shows that it
// is none.
constexpr std::size_t kLongestTextLine = std::size_t{1} << 20;
constexpr std::size_t kMostShown = 200;  // characters of a member's name, which may have a million
constexpr int kMostFollowed = 8;         // followed from one member to the next

struct FreeArchive {
  void operator()(archive* a) const { (void)archive_read_free(a); }
};

bool is_named_archive(std::string_view path) {
  return path.ends_with(".tgz") || std::filesystem::path(path).stem().extension() == ".tar";
}

// A packed file, read by libarchive: an archive or, where the name allows it, one text.
class Packed {
 public:
  explicit Packed(const std::string& path)
      : path_(path), file_(path), archive_(archive_read_new()) {
    archive* const a = archive_.get();
    if (a == nullptr) throw std::bad_alloc();
    archive_read_support_format_tar(a);
    if (!is_named_archive(path)) {
      archive_read_support_format_raw(a);
      archive_read_support_format_empty(a);
    }
    archive_read_support_filter_xz(a);
    archive_read_support_filter_zstd(a);
    const std::string_view bytes = file_.bytes();
    if (GzipInput::begins(bytes)) {
      gzip_.emplace(bytes, path);
      check(archive_read_open(a, this, nullptr, next_piece, nullptr));
    } else {
      check(archive_read_open_memory(a, bytes.data(), bytes.size()));
      if (archive_filter_count(a) < 2) refuse(bytes);  // libarchive counts the file as one
    }
  }

  // The next member, or null.
  archive_entry* next() {
    archive_entry* entry = nullptr;
    return check(archive_read_next_header(archive_.get(), &entry)) == ARCHIVE_EOF ? nullptr : entry;
  }

  bool is_archive() const {
    return (archive_format(archive_.get()) & ARCHIVE_FORMAT_BASE_MASK) == ARCHIVE_FORMAT_TAR;
  }

  // Bytes of the member; 0 at its end.
  std::size_t read(std::vector<char>& piece) {
    return static_cast<std::size_t>(
        check(archive_read_data(archive_.get(), piece.data(), piece.size())));
  }

  // What lies behind an archive has a checksum too.
  void read_to_end() {
    while (gzip_ && !gzip_->next().empty()) continue;
  }

 private:
  static la_ssize_t next_piece(archive*, void* self, const void** piece) {
    auto& packed = *static_cast<Packed*>(self);
    try {
      const std::string_view bytes = packed.gzip_->next();
      *piece = bytes.data();
      return static_cast<la_ssize_t>(bytes.size());
    } catch (...) {  // no exception passes through C
      packed.failure_ = std::current_exception();
      return ARCHIVE_FATAL;
    }
  }

  // Returns what libarchive returned, unless it failed.
  la_ssize_t check(la_ssize_t result) {
    if (failure_) std::rethrow_exception(failure_);
    if (result >= 0 || result == ARCHIVE_WARN) return result;
    const char* const reason = archive_error_string(archive_.get());
    const bool unknown = archive_format(archive_.get()) == 0 && is_named_archive(path_);
    throw Error(fmt::format("{}: {}: {}", path_,
                            unknown ? "expected an archive" : "truncated or corrupt",
                            reason == nullptr ? "unknown" : reason));
  }

  [[noreturn]] void refuse(std::string_view bytes) const {
    throw Error(
        fmt::format("{}: expected gzip, xz or zstd data, got {}", path_, describe_content(bytes)));
  }

  const std::string& path_;
  MappedFile file_;
  std::optional<GzipInput> gzip_;
  std::exception_ptr failure_;  // of gzip_
  std::unique_ptr<archive, FreeArchive> archive_;
};

// The whole member. Throws Error where it does not fit in memory or is no text with lines.
TextBuffer read_text(Packed& packed, const std::string& path) {
  const std::size_t memory = available_memory_bytes();
  TextBuffer text;
  std::vector<char> piece(kReadBytes);
  std::size_t line = 0;  // bytes since the last line end
  while (const std::size_t length = packed.read(piece)) {
    const std::string_view bytes(piece.data(), length);
    const std::size_t end = bytes.find('\n');
    if (line + std::min(end, length) > kLongestTextLine)
      throw Error(fmt::format("{}: expected lines of at most {} bytes, got a longer one after {}",
                              path, kLongestTextLine,
                              format_bytes(static_cast<double>(text.view().size()))));
    line = end == std::string_view::npos ? line + length : length - bytes.rfind('\n');
    if (text.view().size() + length > memory)
      throw Error(fmt::format("{}: expected text that fits in memory, got more than {}", path,
                              format_bytes(static_cast<double>(memory))));
    text.append(bytes);
  }
  return text;
}

// A name as the archive has it: in UTF-8 where the locale has no such characters.
std::string name_of(archive_entry* entry) {
  const char* name = archive_entry_pathname(entry);
  if (name == nullptr) name = archive_entry_pathname_utf8(entry);
  return name == nullptr ? "" : name;
}

// The member that a link stands for; empty where `entry` is none.
std::string target_of(archive_entry* entry, const std::string& name) {
  if (const char* const other = archive_entry_hardlink(entry); other != nullptr) return other;
  if (const char* const other = archive_entry_symlink(entry); other != nullptr)
    return (std::filesystem::path(name).parent_path() / other).lexically_normal().string();
  return {};
}

// The folder of the archive has the name of the matrix; NAME_b.mtx and others beside it are not A.
bool is_matrix(const std::string& name) {
  const std::filesystem::path path(name);
  return path.extension() == ".mtx" && path.stem() == path.parent_path().filename();
}

bool same_member(const std::string& a, const std::string& b) {
  return std::filesystem::path(a).lexically_normal() == std::filesystem::path(b).lexically_normal();
}

// The member `wanted`, or the matrix where that is empty. Of two members of one name the last is
// the one that unpacking leaves.
UnpackedText unpack(const std::string& path, const std::string& wanted, int links) {
  Packed packed(path);
  TextBuffer text;
  std::string found, target;
  std::vector<std::string> members;
  while (archive_entry* const entry = packed.next()) {
    if (!packed.is_archive()) return {read_text(packed, path), path};
    const std::string name = name_of(entry), linked = target_of(entry, name);
    if (linked.empty() && archive_entry_filetype(entry) != AE_IFREG) continue;
    if (members.size() < 8) members.push_back(quote(name));
    if (wanted.empty() ? !is_matrix(name) : !same_member(name, wanted)) continue;
    if (!found.empty() && !same_member(name, found))
      throw Error(fmt::format("{}: expected one member NAME/NAME.mtx, got {} and {}", path,
                              quote(found), quote(name)));
    found = name;
    target = linked;
    text = linked.empty() ? read_text(packed, path) : TextBuffer();
  }
  if (!packed.is_archive()) return {std::move(text), path};  // no byte
  packed.read_to_end();
  if (found.empty())
    throw Error(fmt::format(
        "{}: expected a member {}, got {}", path, wanted.empty() ? "NAME/NAME.mtx" : quote(wanted),
        members.empty() ? "none" : fmt::format("{}", fmt::join(members, ", "))));
  if (target.empty())
    return {std::move(text),
            fmt::format("{}({})", path, to_printable(found.substr(0, kMostShown)))};
  if (links == kMostFollowed)
    throw Error(fmt::format("{}: {} is a link to a link", path, quote(found)));
  return unpack(path, target, links + 1);
}

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

UnpackedText unpack_matrix_text(const std::string& path) { return unpack(path, "", 0); }

}  // namespace spmmbench
