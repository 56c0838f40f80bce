#include "io/output.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <utility>

#include "spmmbench/error.hpp"

namespace spmmbench {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kBufferBytes = std::size_t{1} << 16;
constexpr mode_t kNewFileMode = 0666;  // less the umask

std::FILE* standard_output = stdout;

std::string part_of(const std::string& path) { return path + ".part"; }

[[noreturn]] void fail_writing(std::string_view path, int error) {
  throw Error(fmt::format("{}: cannot be written: {}", path, std::strerror(error)));
}

[[noreturn]] void fail_output(int error) {
  constexpr std::string_view kName = "standard output";
  if (error == EPIPE) throw ReaderLeft(fmt::format("{}: nobody reads it any more", kName));
  fail_writing(kName, error);
}

void unlink_if_empty(const std::string& path, int file) {
  struct stat status {};
  if (::fstat(file, &status) == 0 && status.st_size == 0) ::unlink(path.c_str());
}

// What cannot be begun leaves nothing behind.
[[noreturn]] void fail_beginning(const std::string& path, const std::string& part, int file,
                                 int error) {
  ::unlink(part.c_str());
  unlink_if_empty(path, file);
  fail_writing(path, error);
}

// 0, or the errno of the call that failed.
int write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(fd, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno;
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
  return 0;
}

// Files that fsync(2) cannot synchronise, such as pipes, are written all the same: no failure.
int sync(int fd) { return ::fsync(fd) == 0 || errno == EINVAL || errno == EROFS ? 0 : errno; }

// Synchronises a folder, so that a rename in it survives a power cut.
int sync_folder_of(const std::string& path) {
  const fs::path folder = ("." / fs::path(path)).parent_path();
  const Descriptor opened(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  return opened.get() < 0 ? 0 : sync(opened.get());  // a folder that may be written, not read
}

struct Target {
  std::string path;
  bool stream = false;
};

// The .part that is being written, for a signal handler. One is enough: `generate` and `convert`
// commit each output before they begin the next.
char unfinished_part[4096] = "";
volatile std::sig_atomic_t has_unfinished_part = 0;

void forget_part() {
  has_unfinished_part = 0;
  std::atomic_signal_fence(std::memory_order_seq_cst);
}

void remember_part(const std::string& part) {
  forget_part();
  if (part.size() >= sizeof unfinished_part) return;
  std::memcpy(unfinished_part, part.c_str(), part.size() + 1);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  has_unfinished_part = 1;
}

extern "C" void remove_part_and_end(int number) {
  if (has_unfinished_part != 0) ::unlink(unfinished_part);
  std::signal(number, SIG_DFL);
  ::raise(number);
}

// The path that links lead to; a name that does not exist yet leads to itself. A descriptor of this
// process (/dev/stdout, /dev/fd/3) is a stream, whatever it is open on.
Target follow_links(const std::string& path) {
  constexpr int kMostLinks = 40;  // the limit of Linux itself
  if (path == kStandardOutput) return {path, true};
  fs::path target = path;
  std::error_code error;
  for (int links = 0;; ++links) {
    const fs::path folder = fs::weakly_canonical(("." / target).parent_path(), error);
    if (folder.native().starts_with("/proc/")) return {target, true};
    if (!fs::is_symlink(target, error)) break;
    if (links == kMostLinks) fail_writing(path, ELOOP);
    target = target.parent_path() / fs::read_symlink(target, error);
    if (error) fail_writing(path, error.value());
  }
  const fs::file_type type = fs::status(target, error).type();
  return {target, type == fs::file_type::fifo || type == fs::file_type::character ||
                      type == fs::file_type::block || type == fs::file_type::socket};
}

// Opening a pipe that nobody reads is an error at once.
Descriptor open_stream(const std::string& path) {
  if (path == kStandardOutput) return Descriptor(::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3));
  Descriptor file(::open(path.c_str(), O_WRONLY | O_APPEND | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  if (file.get() < 0 && errno == ENXIO)
    throw Error(fmt::format("{}: cannot be written: nobody reads this pipe", path));
  if (file.get() >= 0) ::fcntl(file.get(), F_SETFL, O_APPEND);
  return file;
}

bool same_file(int fd, const std::string& path) {
  struct stat opened {
  }, named{};
  return ::fstat(fd, &opened) == 0 && ::lstat(path.c_str(), &named) == 0 &&
         opened.st_dev == named.st_dev && opened.st_ino == named.st_ino;
}

// Where the file system has no locks, only O_EXCL keeps a second writer out.
void lock(int fd, const std::string& path) {
  const bool taken = ::flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  if (taken || !same_file(fd, path))
    throw Error(fmt::format("{}: another run is writing it", path));
}

// A file that is being written has this bit, which means nothing on a plain file and is not set by
// chance. It tells what a killed process has left from a file of the user.
constexpr mode_t kUnfinished = S_ISVTX;

void set_unfinished(int fd, bool unfinished) {
  struct stat status {};
  if (::fstat(fd, &status) != 0) return;
  const mode_t mode = status.st_mode & 07777 & ~kUnfinished;
  [[maybe_unused]] const int set = ::fchmod(fd, unfinished ? mode | kUnfinished : mode);
}

// Creates a file of this name that only this process writes. What a killed process has left is
// replaced: a plain file without a lock that is empty or unfinished. Anything else is an error.
Descriptor create_part(const std::string& part) {
  constexpr int kNew = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
  Descriptor file(::open(part.c_str(), kNew, kNewFileMode));
  if (file.get() < 0 && errno == EEXIST) {
    const Descriptor left(::open(part.c_str(), O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    struct stat status {};
    if (left.get() < 0 || ::fstat(left.get(), &status) != 0 || !S_ISREG(status.st_mode))
      throw Error(fmt::format("{}: is in the way: expected no such file", part));
    lock(left.get(), part);
    if (status.st_size > 0 && (status.st_mode & kUnfinished) == 0)
      throw Error(
          fmt::format("{}: is in the way, and no run has left it: move or remove it", part));
    if (::unlink(part.c_str()) != 0) fail_writing(part, errno);
    file = Descriptor(::open(part.c_str(), kNew, kNewFileMode));
  }
  if (file.get() >= 0) {
    lock(file.get(), part);
    set_unfinished(file.get(), true);
  }
  return file;
}

}  // namespace

void reserve_standard_descriptors() {
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
  // open() takes the lowest free number. Read-only, so that writes fail as on a closed descriptor.
  int fd = STDIN_FILENO;
  while (fd >= 0 && fd <= STDERR_FILENO) fd = ::open("/dev/null", O_RDONLY);
  if (fd >= 0) ::close(fd);
}

void claim_standard_output() {
  const int fd = ::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  standard_output = fd < 0 ? nullptr : ::fdopen(fd, "w");
  if (standard_output == nullptr || ::dup2(STDERR_FILENO, STDOUT_FILENO) < 0) fail_output(errno);
}

void write_output(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), standard_output) != text.size()) fail_output(errno);
}

void flush_output() {
  if (std::fflush(standard_output) != 0) fail_output(errno);
}

void write_status(std::string_view text) { write_all(STDERR_FILENO, text); }

bool is_standard_output(const std::string& path) {
  return path == kStandardOutput || path == "/dev/stdout" || path == "/dev/fd/1" ||
         path == "/proc/self/fd/1";
}

bool is_stream(const std::string& path) { return follow_links(path).stream; }

Descriptor::~Descriptor() {
  if (fd_ >= 0) ::close(fd_);
}

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  if (fd_ >= 0) ::close(fd_);
  fd_ = other.release();
  return *this;
}

int Descriptor::release() { return std::exchange(fd_, -1); }

OutputFile::OutputFile(const std::string& path) : path_(path) {
  Target target = follow_links(path);
  target_ = std::move(target.path);
  if (target.stream) file_ = open_stream(path);
  else open_part();
  if (file_.get() < 0) fail(errno);
}

void OutputFile::open_part() {
  std::error_code error;
  const std::string name = fs::path(target_).filename();
  if (name.empty() || name == "." || name == ".." || fs::is_directory(target_, error))
    throw Error(fmt::format("{}: is a directory, expected a file to write", path_));
  if (const fs::path folder = fs::path(target_).parent_path(); !folder.empty())
    folders_ = MadeFolders(folder, error);  // if this fails, opening the file fails too
  struct stat old {};
  const bool replaces = ::stat(target_.c_str(), &old) == 0;
  if (replaces && ::access(target_.c_str(), W_OK) != 0) fail(errno);
  part_ = part_of(target_);
  file_ = create_part(part_);
  if (file_.get() >= 0) remember_part(part_);
  if (file_.get() < 0 || !replaces) return;
  // The owner first: a change of it can take bits of the mode. Only root can give a file away.
  [[maybe_unused]] const int kept = ::fchown(file_.get(), old.st_uid, old.st_gid);
  ::fchmod(file_.get(), (old.st_mode & 07777) | kUnfinished);
}

OutputFile::OutputFile(OutputFile&& other) noexcept
    : folders_(std::move(other.folders_)),
      path_(std::move(other.path_)),
      target_(std::move(other.target_)),
      part_(std::exchange(other.part_, {})),
      buffer_(std::move(other.buffer_)),
      file_(std::move(other.file_)) {}

OutputFile::~OutputFile() {
  if (part_.empty() || file_.get() < 0) return;
  ::unlink(part_.c_str());
  forget_part();
}

void OutputFile::write(const void* data, std::size_t bytes) {
  const std::string_view added(static_cast<const char*>(data), bytes);
  if (buffer_.size() + bytes < kBufferBytes) {
    buffer_ += added;
    return;
  }
  flush();
  if (bytes < kBufferBytes) {
    buffer_ += added;
  } else if (const int error = write_all(file_.get(), added); error != 0) {
    fail(error);
  }
}

void OutputFile::flush() {
  if (const int error = write_all(file_.get(), buffer_); error != 0) fail(error);
  buffer_.clear();
}

void OutputFile::commit() {
  flush();
  if (!part_.empty()) {
    int error = sync(file_.get());
    if (error == 0 && ::rename(part_.c_str(), target_.c_str()) != 0) error = errno;
    if (error != 0) fail(error);
    part_.clear();
    folders_.keep();
    forget_part();
    set_unfinished(file_.get(), false);
    if ((error = sync_folder_of(target_)) != 0) fail(error);
  }
  if (::close(file_.release()) != 0) fail(errno);
}

void OutputFile::fail(int error) const {
  fail_writing(path_ == kStandardOutput ? "standard output" : path_, error);
}

void remove_parts_at_signals() {
  struct sigaction action = {};
  action.sa_handler = remove_part_and_end;
  for (const int number : {SIGINT, SIGTERM}) {
    struct sigaction old = {};
    ::sigaction(number, nullptr, &old);
    if (old.sa_handler != SIG_IGN) ::sigaction(number, &action, nullptr);
  }
}

void write_file(const std::string& path, std::string_view text) {
  OutputFile file(path);
  file.write(text);
  file.commit();
}

LineFile::LineFile(const std::string& path) : path_(path) {
  std::error_code error;
  if (const fs::path folder = fs::path(path).parent_path(); !folder.empty())
    fs::create_directories(folder, error);
  constexpr int kFlags = O_RDWR | O_CREAT | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
  file_ = Descriptor(::open(path.c_str(), kFlags, kNewFileMode));
  struct stat status {};
  if (file_.get() < 0) fail_writing(path, errno);
  if (::fstat(file_.get(), &status) != 0 || !S_ISREG(status.st_mode))
    throw Error(fmt::format("{}: expected a plain file", path));
  lock(file_.get(), path);
}

LineFile LineFile::without_a_name(const std::string& path) {
  LineFile made;
  const std::string part = part_of(path);
  std::error_code error;
  if (const fs::path folder = fs::path(path).parent_path(); !folder.empty())
    fs::create_directories(folder, error);
  made.file_ = create_part(part);
  if (made.file_.get() < 0 || ::unlink(part.c_str()) != 0) fail_writing(part, errno);
  made.path_ = fmt::format("/proc/self/fd/{}", made.file_.get());
  return made;
}

void LineFile::begin_anew() try {
  part_ = part_of(path_);
  fresh_ = create_part(part_);
  if (fresh_.get() < 0) fail_writing(part_, errno);
} catch (const Error&) {
  unlink_if_empty(path_, file_.get());
  throw;
}

void LineFile::end_anew() {
  int error = sync(fresh_.get());
  if (error == 0 && ::rename(part_.c_str(), path_.c_str()) != 0) error = errno;
  if (error == 0) error = sync_folder_of(path_);
  if (error != 0) fail_beginning(path_, part_, file_.get(), error);
  set_unfinished(fresh_.get(), false);
  file_ = std::move(fresh_);
}

void LineFile::append(const std::string& line, bool durable) {
  if (fresh_.get() >= 0) {
    if (const int error = write_all(fresh_.get(), line + '\n'); error != 0)
      fail_beginning(path_, part_, file_.get(), error);
    return;
  }
  int error = write_all(file_.get(), line + '\n');
  if (error == 0 && durable) error = sync(file_.get());
  if (error != 0) fail_writing(path_, error);
}

void LineFile::remove() {
  if (::unlink(path_.c_str()) != 0) fail_writing(path_, errno);
  file_ = Descriptor();
}

namespace {

bool is_one_file(const std::string& a, const std::string& b) {
  struct stat of_a {
  }, of_b{};
  if (::stat(a.c_str(), &of_a) == 0 && ::stat(b.c_str(), &of_b) == 0)
    return S_ISREG(of_a.st_mode) && of_a.st_dev == of_b.st_dev && of_a.st_ino == of_b.st_ino;
  std::error_code error_a, error_b;
  const Target target_a = follow_links(a), target_b = follow_links(b);
  return !target_a.stream && !target_b.stream &&
         fs::weakly_canonical(fs::absolute(target_a.path), error_a) ==
             fs::weakly_canonical(fs::absolute(target_b.path), error_b) &&
         !error_a && !error_b;
}

// The names that an output takes: its own, and where its links lead the one with .part.
std::vector<std::string> names_written(const std::string& output) {
  const Target target = follow_links(output);
  if (target.stream) return {output};
  return {output, part_of(target.path)};
}

}  // namespace

std::string shared_name(const std::string& one, const std::string& other) {
  if (one.empty() || other.empty()) return {};
  const std::vector<std::string> names = names_written(other);
  for (const std::string& name : names_written(one))
    for (const std::string& its_name : names)
      if (is_one_file(name, its_name)) return name;
  return {};
}

void require_two_files(const std::string& one, const std::string& other) {
  const std::string shared = shared_name(one, other);
  if (shared.empty()) return;
  const bool part = shared != one || !is_one_file(one, other);
  throw Error(fmt::format("{} and {}: expected two files to write, got one{}", one, other,
                          part ? ": each is first written as NAME.part" : ""));
}

void require_not_an_input(const std::string& output, const std::vector<std::string>& inputs) {
  if (output.empty()) return;
  for (const std::string& name : names_written(output))
    for (const std::string& input : inputs)
      if (!input.empty() && is_one_file(name, input))
        throw Error(fmt::format("{}: {}is the input {}: expected another file to write", output,
                                name == output ? "" : "is first written as " + name + ", which ",
                                input));
}

}  // namespace spmmbench
