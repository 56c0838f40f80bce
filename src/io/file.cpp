#include "io/file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <utility>

#include "spmmbench/error.hpp"

namespace spmmbench {

MappedFile::MappedFile(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) throw Error(fmt::format("{}: cannot open: {}", path, std::strerror(errno)));
  struct stat status {};
  if (::fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) {
    ::close(fd);
    throw Error(fmt::format("{}: expected a plain file", path));
  }
  size_ = static_cast<std::size_t>(status.st_size);
  if (size_ > 0) {  // an empty mapping is an error
    void* mapping = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, fd, 0);
    const int error = errno;
    if (mapping == MAP_FAILED) {
      ::close(fd);
      throw Error(fmt::format("{}: cannot map: {}", path, std::strerror(error)));
    }
    data_ = static_cast<const char*>(mapping);
  }
  ::close(fd);
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<char*>(data_), size_);
}

void release_pages(std::string_view part) {
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<std::uintptr_t>(part.data());
  const std::uintptr_t first = (begin + page - 1) / page * page;
  const std::uintptr_t last = (begin + part.size()) / page * page;
  if (first < last) ::madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED);
}

OutputFile::OutputFile(const std::string& path)
    : path_(path), temporary_(fmt::format("{}.tmp-{}", path, ::getpid())) {
  file_ = std::fopen(temporary_.c_str(), "wb");
  if (file_ == nullptr) fail(errno);
}

OutputFile::~OutputFile() {
  if (file_ == nullptr) return;
  std::fclose(file_);
  std::remove(temporary_.c_str());
}

void OutputFile::write(const void* data, std::size_t bytes) {
  if (bytes > 0 && std::fwrite(data, 1, bytes, file_) != bytes) fail(errno);
}

void OutputFile::commit() {
  std::FILE* file = std::exchange(file_, nullptr);
  if (std::fclose(file) != 0 || std::rename(temporary_.c_str(), path_.c_str()) != 0) {
    const int error = errno;
    std::remove(temporary_.c_str());
    fail(error);
  }
}

void OutputFile::fail(int error) const {
  throw Error(fmt::format("{}: cannot write: {}", path_, std::strerror(error)));
}

std::size_t available_memory_bytes() {
  std::size_t available = SIZE_MAX;
  std::ifstream meminfo("/proc/meminfo");
  for (std::string key; meminfo >> key;) {
    std::size_t kib = 0;
    if (key == "MemAvailable:" && meminfo >> kib) available = kib * 1024;
    meminfo.ignore(256, '\n');
  }
  std::ifstream group_limit("/sys/fs/cgroup/memory.max");  // "max" when unlimited
  if (std::size_t limit = 0; group_limit >> limit) available = std::min(available, limit);
  return available;
}

std::string describe_foreign_content(std::string_view head) {
  if (head.starts_with("version https://git-lfs"))
    return "a Git LFS pointer (fetch the file itself with 'git lfs pull')";
  if (head.starts_with("\x1f\x8b")) return "gzip data (name it .gz, or unpack it)";
  const std::size_t first = head.find_first_not_of(" \t\r\n");
  std::string start(first == std::string_view::npos ? "" : head.substr(first, 9));
  std::transform(start.begin(), start.end(), start.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (start.starts_with("<!doctype") || start.starts_with("<html") || start.starts_with("<?xml"))
    return "an HTML page (the download failed or needs a login)";
  return {};
}

std::string quote(std::string_view text, std::size_t most) {
  std::string out = "'";
  for (const char c : text.substr(0, most))
    if (c >= 0x20 && c < 0x7F) out += c;
    else out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
  return out + (text.size() > most ? "...'" : "'");
}

std::string format_bytes(double bytes) {
  constexpr const char* kUnits[] = {"B", "KB", "MB", "GB", "TB", "PB", "EB"};
  int unit = 0;
  while (bytes >= 1000 && unit < 6) bytes /= 1000, ++unit;
  return unit == 0 ? fmt::format("{:.0f} B", bytes) : fmt::format("{:.1f} {}", bytes, kUnits[unit]);
}

}  // namespace spmmbench
