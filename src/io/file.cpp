#include "io/file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cctype>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fstream>
#include <sstream>

#include "io/output.hpp"
#include "spmmbench/error.hpp"

namespace spmmbench {

namespace {

// The files that are mapped now. A signal handler reads them, hence no container.
struct MappedRange {
  std::atomic<std::uintptr_t> begin = 0, end = 0;
};
std::array<MappedRange, 64> mapped_ranges;
std::atomic<std::size_t> missing = 0;
const auto page_bytes = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));

// SIGBUS: a page was read that the file no longer has. It and all later pages are replaced by
// zeros, so that the reader ends and can report what happened.
extern "C" void on_missing_page(int, siginfo_t* info, void*) {
  const auto at = reinterpret_cast<std::uintptr_t>(info->si_addr);
  for (const MappedRange& range : mapped_ranges) {
    const std::uintptr_t end = range.end;
    if (at < range.begin || at >= end) continue;
    const std::uintptr_t first = at / page_bytes * page_bytes;
    void* const zeros = ::mmap(reinterpret_cast<void*>(first), end - first, PROT_READ,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    if (zeros == MAP_FAILED) break;
    ++missing;
    return;
  }
  ::signal(SIGBUS, SIG_DFL);  // the signal comes again and ends the process
}

void watch(const char* data, std::size_t bytes) {
  static const bool installed = [] {
    struct sigaction action = {};
    action.sa_sigaction = on_missing_page;
    action.sa_flags = SA_SIGINFO;
    return ::sigaction(SIGBUS, &action, nullptr) == 0;
  }();
  const auto begin = reinterpret_cast<std::uintptr_t>(data);
  for (MappedRange& range : mapped_ranges) {
    std::uintptr_t unused = 0;
    if (!installed || !range.begin.compare_exchange_strong(unused, begin)) continue;
    range.end = begin + bytes;
    return;
  }
}

void unwatch(const char* data) {
  for (MappedRange& range : mapped_ranges)
    if (range.begin == reinterpret_cast<std::uintptr_t>(data)) {
      range.end = 0;
      range.begin = 0;
    }
}

// Reads until the writer ends, or until it has sent nothing for the time limit.
std::string read_pipe(int fd, const std::string& path) {
  constexpr int kPatienceMs = 30'000;
  const std::size_t most = available_memory_bytes() / 4;  // parsed, it takes more
  std::string text;
  std::array<char, 1 << 16> block{};
  for (;;) {
    pollfd waiting = {fd, POLLIN, 0};
    const int ready = ::poll(&waiting, 1, kPatienceMs);
    if (ready < 0 && errno == EINTR) continue;
    if (ready == 0)
      throw Error(
          fmt::format("{}: nothing came through this pipe for {} s", path, kPatienceMs / 1000));
    const ssize_t count = ::read(fd, block.data(), block.size());
    if (count < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (count < 0) throw Error(fmt::format("{}: cannot be read: {}", path, std::strerror(errno)));
    if (count == 0) return text;
    text.append(block.data(), static_cast<std::size_t>(count));
    if (text.size() > most)
      throw Error(fmt::format("{}: expected text that fits in memory, got more than {}", path,
                              format_bytes(static_cast<double>(most))));
  }
}

}  // namespace

std::size_t missing_pages() { return missing; }

std::unique_ptr<std::istream> open_text(const std::string& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (file.get() < 0)
    throw Error(fmt::format("{}: cannot be opened: {}", path, std::strerror(errno)));
  struct stat status {};
  ::fstat(file.get(), &status);
  if (S_ISREG(status.st_mode)) return std::make_unique<std::ifstream>(path, std::ios::binary);
  if (!S_ISFIFO(status.st_mode)) throw Error(fmt::format("{}: expected a file or a pipe", path));
  return std::make_unique<std::istringstream>(read_pipe(file.get(), path));
}

MappedFile::MappedFile(const std::string& path)
    : file_(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC)) {  // of a pipe: at once
  if (file_.get() < 0) throw Error(fmt::format("{}: cannot open: {}", path, std::strerror(errno)));
  struct stat status {};
  if (::fstat(file_.get(), &status) != 0 || !S_ISREG(status.st_mode))
    throw Error(fmt::format("{}: expected a plain file", path));
  size_ = static_cast<std::size_t>(status.st_size);
  if (size_ > 0) {  // an empty mapping is an error
    void* mapping = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file_.get(), 0);
    if (mapping == MAP_FAILED)
      throw Error(fmt::format("{}: cannot map: {}", path, std::strerror(errno)));
    data_ = static_cast<const char*>(mapping);
    watch(data_, size_);
  }
}

MappedFile::~MappedFile() {
  if (data_ == nullptr) return;
  // A file that was cut within its last page has zeros there, and no signal comes.
  struct stat status {};
  if (::fstat(file_.get(), &status) != 0 || static_cast<std::size_t>(status.st_size) < size_)
    ++missing;
  unwatch(data_);
  ::munmap(const_cast<char*>(data_), size_);
}

bool has_content(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) && status.st_size > 0;
}

void release_pages(std::string_view part) {
  const auto begin = reinterpret_cast<std::uintptr_t>(part.data());
  const std::uintptr_t first = (begin + page_bytes - 1) / page_bytes * page_bytes;
  const std::uintptr_t last = (begin + part.size()) / page_bytes * page_bytes;
  if (first < last) ::madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED);
}

std::string describe_foreign_content(std::string_view file) {
  constexpr std::size_t kMostLookedAt = 256;
  const std::string_view head = file.substr(0, kMostLookedAt);
  if (head.empty()) return "an empty file";
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

std::string describe_content(std::string_view file) {
  constexpr std::size_t kShown = 16;
  std::string foreign = describe_foreign_content(file);
  return foreign.empty() ? quote(file.substr(0, kShown)) : foreign;
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
