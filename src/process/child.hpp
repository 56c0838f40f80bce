#pragma once
// A child process that gets one text on its standard input and whose output is read line by line.
// It never outlives this process, however this process ends.

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

#include "io/output.hpp"

namespace spmmbench {

class Child {
 public:
  // Starts `program` (searched in PATH when it has no slash). Throws Error when the system cannot
  // start processes; a program that does not exist ends with exit code 127.
  Child(const std::string& program, const std::vector<std::string>& arguments,
        const std::string& input = {});
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child();  // kills the child if it still runs

  // Passes each whole line that has come on its stdout to `on_line`, on its stderr to
  // `on_error_line`; does not wait. False once the child has ended and all its lines were passed.
  using OnLine = std::function<void(const std::string&)>;
  bool pump(const OnLine& on_line, const OnLine& on_error_line = nullptr);

  void interrupt();  // asks the child to end (SIGINT)
  void kill();       // ends the child and all that it has started, and waits until it has ended

  // After its end:
  bool exited() const;             // by itself, not by a signal
  bool was_killed() const;         // by a signal
  int exit_code() const;           // -1 when by a signal
  std::string last_words() const;  // the last line on its stderr
  std::string ending() const;  // "exit 4: LAST WORDS" or "ended by signal 11 (Segmentation fault)"

 private:
  struct Stream {
    Descriptor fd;
    std::string partial;
  };
  void drain(Stream& stream, const OnLine& on_line);

  pid_t pid_ = -1;
  bool running_ = false;
  int status_ = 0;
  Stream out_, err_;
  std::string last_error_;
};

inline constexpr const char* kThisProgram = "/proc/self/exe";

// Pause between two looks at children.
void pause_briefly();

}  // namespace spmmbench
