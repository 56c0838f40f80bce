#pragma once
// Errors that reach the user. Each carries an exit code of docs/running.md and a
// message of one line.

#include <stdexcept>
#include <string>

namespace spmmbench {

enum class ExitCode : int {
  ok = 0,
  usage = 1,             // bad arguments, unreadable or invalid input, unwritable output
  wrong_result = 2,      // a kernel's result broke its error bound
  regression = 3,        // compare found a slower, newly wrong or lost case, or a slower kernel
  some_failed = 4,       // at least one case failed or timed out, or every case was skipped
  not_comparable = 5,    // runs that cannot stand in one comparison or document
  not_able_to_tell = 6,  // compare found nothing, but could not have seen what it should find
  interrupted = 130,     // Ctrl-C; what was measured is kept
};

class Error : public std::runtime_error {
 public:
  explicit Error(const std::string& message, ExitCode code = ExitCode::usage)
      : std::runtime_error(message), code_(code) {}
  ExitCode code() const noexcept { return code_; }

 private:
  ExitCode code_;
};

// The reader of standard output is gone, as behind `| head`: ends the program without a message.
class ReaderLeft : public Error {
 public:
  using Error::Error;
};

// Thrown by a kernel's prepare or bind that cannot do this after all: the case is skipped.
class Unsupported : public Error {
 public:
  using Error::Error;
};

}  // namespace spmmbench
