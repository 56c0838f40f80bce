#pragma once
// Results, documents and matrices are written through here. Each write, flush, fsync and rename is
// checked. A failure is an Error (exit code 1) that names the file, except on standard error, where
// it cannot be reported.

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <vector>

#include "io/made_folders.hpp"
#include "spmmbench/printable.hpp"

namespace spmmbench {

// Called at the beginning of main. Opens those of the descriptors 0 to 2 that the caller left
// closed, so that no file opened later gets such a number and is written to as standard output;
// writes to them fail. After this call a pipe without a reader is an error of a write instead of a
// signal.
void reserve_standard_descriptors();

// After this call write_output alone reaches what standard output was. What others print on it,
// such as a plug-in, goes to standard error.
void claim_standard_output();

// To standard output; throws Error when a write fails. Buffered until flush_output.
void write_output(std::string_view text);
void flush_output();
template <class... T>
void print(fmt::format_string<T...> format, T&&... values) {
  write_output(fmt::format(format, std::forward<T>(values)...));
}

// To standard error, where failures are ignored. `say` writes one line, which the format ends;
// control characters of the values, line breaks too, are shown as \xNN.
void write_status(std::string_view text);
template <class... T>
void say(fmt::format_string<T...> format, T&&... values) {
  std::string line = fmt::format(format, std::forward<T>(values)...);
  line.pop_back();
  write_status(printable_message(line) + '\n');
}

inline constexpr std::string_view kStandardOutput = "-";

// `-`, or a name of this process's standard output such as /dev/stdout.
bool is_standard_output(const std::string& path);

// True for outputs that are written piece by piece and cannot be replaced as a whole: `-`, a
// device, a pipe, /dev/fd/3.
bool is_stream(const std::string& path);

// A file descriptor that the object closes at its end.
class Descriptor {
 public:
  explicit Descriptor(int fd = -1) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(other.release()) {}
  Descriptor& operator=(Descriptor&& other) noexcept;
  ~Descriptor();
  int get() const { return fd_; }
  int release();

 private:
  int fd_;
};

// A file that appears under its name when it is complete, or not at all: commit renames PATH.part
// to PATH. No other process may be writing PATH.part. If there is one that no killed process has
// left, it is kept and an Error says so. Missing folders are made. Links are followed, and the file
// that they lead to is replaced; it keeps its mode and owner. A stream is written directly. Without
// commit, PATH stays as it was, and folders that were made are removed.
class OutputFile {
 public:
  explicit OutputFile(const std::string& path);
  OutputFile(OutputFile&& other) noexcept;
  OutputFile& operator=(OutputFile&&) = delete;
  ~OutputFile();

  void write(const void* data, std::size_t bytes);
  void write(std::string_view text) { write(text.data(), text.size()); }
  void commit();

 private:
  void open_part();
  void flush();
  [[noreturn]] void fail(int error) const;

  MadeFolders folders_;        // of target_
  std::string path_, target_;  // target: where links lead
  std::string part_;           // empty: a stream, or committed
  std::string buffer_;
  Descriptor file_;
};

// For commands that end at once at SIGINT and SIGTERM: what is not committed is then removed.
void remove_parts_at_signals();

void write_file(const std::string& path, std::string_view text);  // an OutputFile, committed

// A file that grows line by line; each durable line is synced to the disk. It is locked: a second
// process that opens it gets an Error at once.
class LineFile {
 public:
  explicit LineFile(const std::string& path);  // makes it where there is none
  // A file without a name in the folder of PATH, of which nothing is left. It can be read at
  // path().
  static LineFile without_a_name(const std::string& path);

  const std::string& path() const { return path_; }

  // The lines between begin_anew and end_anew replace the old content in one step: after a kill the
  // file holds either the old lines or the new ones.
  void begin_anew();
  void append(const std::string& line, bool durable = true);
  void end_anew();
  void remove();

 private:
  LineFile() = default;

  std::string path_, part_;
  Descriptor file_, fresh_;
};

// A name that two outputs of one command would both write, directly or through links; empty if
// there is none. An output also takes its name with .part.
std::string shared_name(const std::string& one, const std::string& other);

// Throws Error where two outputs of one command have a name in common. An empty name is no output,
// and streams may be the same. The file need not exist yet: of NEW/../F the
// folder NEW would be made.
void require_two_files(const std::string& one, const std::string& other);

// Throws Error where writing `output`, or its .part, would replace one of `inputs`, also through
// links. Names that are no files are ignored.
void require_not_an_input(const std::string& output, const std::vector<std::string>& inputs);

}  // namespace spmmbench
