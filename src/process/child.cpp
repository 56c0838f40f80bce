#include "process/child.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <set>
#include <sstream>
#include <system_error>
#include <utility>

#include "spmmbench/error.hpp"

namespace spmmbench {
namespace {

struct Pipe {
  Descriptor read, write;
};

Pipe make_pipe() {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) throw Error(fmt::format("pipe: {}", strerror(errno)));
  return {Descriptor(ends[0]), Descriptor(ends[1])};
}

// A file in memory that holds `text`, open at its beginning. Unlike a pipe it takes any length at
// once.
Descriptor input_file(const std::string& text) {
  Descriptor file(memfd_create("spmmbench-input", MFD_CLOEXEC));
  if (file.get() < 0) throw Error(fmt::format("memfd_create: {}", strerror(errno)));
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t count = write(file.get(), text.data() + done, text.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) throw Error(fmt::format("a child's input: {}", strerror(errno)));
    done += static_cast<std::size_t>(count);
  }
  lseek(file.get(), 0, SEEK_SET);
  return file;
}

// Children of this process that are its own: a process that the others start, and that leaves their
// group, comes to this one when its parent ends.
struct OwnChildren {
  std::mutex guard;  // also between a fork and the note of it
  std::set<pid_t> known;
};

OwnChildren& own_children() {
  static OwnChildren children;
  return children;
}

// 0 where there is no such process, or none that can be asked.
pid_t parent_of(const std::string& process) {
  std::ifstream file("/proc/" + process + "/stat");
  std::string line;
  std::getline(file, line);
  const std::size_t name_end = line.rfind(") ");
  pid_t parent = 0;
  char state = 0;
  if (name_end != std::string::npos)
    std::istringstream(line.substr(name_end + 2)) >> state >> parent;
  return parent;
}

// Ends what came to this process, and then what comes by that.
void end_strangers() {
  constexpr int kMostRounds = 100;  // of one that starts others as fast as it is ended
  OwnChildren& own = own_children();
  const std::scoped_lock lock(own.guard);
  bool found = true;
  for (int round = 0; found && round < kMostRounds; ++round) {
    found = false;
    std::error_code none;
    for (const auto& entry : std::filesystem::directory_iterator("/proc", none)) {
      const std::string name = entry.path().filename();
      if (name.find_first_not_of("0123456789") != std::string::npos) continue;
      const auto pid = static_cast<pid_t>(std::stol(name));
      if (own.known.contains(pid) || parent_of(name) != getpid()) continue;
      found = true;
      ::kill(pid, SIGKILL);
      waitpid(pid, nullptr, 0);
    }
  }
}

// Runs between fork and exec, so it makes only calls that are safe there.
[[noreturn]] void become(const char* program, char* const* argv, pid_t parent, int in, int out,
                         int err) {
  signal(SIGPIPE, SIG_DFL);  // ignored in this process (io/output.hpp), and exec would keep that
  signal(SIGXFSZ, SIG_DFL);
  setpgid(0, 0);  // Ctrl-C reaches the parent alone, which then ends the child
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(127);
  // When memory runs out, the system shall take the child rather than the sweep.
  if (const int score = open("/proc/self/oom_score_adj", O_WRONLY); score >= 0) {
    [[maybe_unused]] const ssize_t written = write(score, "1000", 4);
    close(score);
  }
  dup2(in, STDIN_FILENO);
  dup2(out, STDOUT_FILENO);
  dup2(err, STDERR_FILENO);
  execvp(program, argv);
  const char* message = strerror(errno);
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, message, strlen(message));
  _exit(127);
}

}  // namespace

Child::Child(const std::string& program, const std::vector<std::string>& arguments,
             const std::string& input) {
  std::vector<char*> argv = {const_cast<char*>(program.c_str())};
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  const Descriptor in = input_file(input);
  Pipe out = make_pipe(), err = make_pipe();
  const pid_t parent = getpid();
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  OwnChildren& own = own_children();
  std::unique_lock lock(own.guard);
  pid_ = fork();
  if (pid_ > 0) own.known.insert(pid_);
  if (pid_ == 0)
    become(program.c_str(), argv.data(), parent, in.get(), out.write.get(), err.write.get());
  lock.unlock();
  if (pid_ < 0) throw Error(fmt::format("fork: {}", strerror(errno)));
  setpgid(pid_, pid_);  // as the child does, whichever comes first
  out_.fd = std::move(out.read);
  err_.fd = std::move(err.read);
  fcntl(out_.fd.get(), F_SETFL, O_NONBLOCK);
  fcntl(err_.fd.get(), F_SETFL, O_NONBLOCK);
  running_ = true;
}

Child::~Child() { kill(); }

void Child::drain(Stream& stream, const OnLine& on_line) {
  // What a child prints without end must not keep the caller from looking at the clock. A pipe
  // holds less, so nothing of a child that has ended is left.
  constexpr std::size_t kMostBytes = std::size_t{1} << 20;
  constexpr std::size_t kMostLine = std::size_t{1} << 26;  // longer lines are cut
  std::array<char, 1 << 14> block{};
  for (std::size_t done = 0; done < kMostBytes;) {
    const ssize_t count = read(stream.fd.get(), block.data(), block.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return;
    done += static_cast<std::size_t>(count);
    std::size_t searched = stream.partial.size();
    stream.partial.append(block.data(), static_cast<std::size_t>(count));
    for (std::size_t end; (end = stream.partial.find('\n', searched)) != std::string::npos;) {
      const std::string line = stream.partial.substr(0, end);
      stream.partial.erase(0, end + 1);
      searched = 0;
      on_line(line);
    }
    if (stream.partial.size() > kMostLine) stream.partial.resize(kMostLine);
  }
}

bool Child::pump(const OnLine& on_line, const OnLine& on_error_line) {
  if (siginfo_t ended{};
      running_ &&
      waitid(P_PID, static_cast<id_t>(pid_), &ended, WEXITED | WNOHANG | WNOWAIT) == 0 &&
      ended.si_pid == pid_)
    kill();  // what it has started, as long as its number is its own
  const bool more = running_;
  drain(out_, on_line);  // after the process was found ended, so that its last lines are not missed
  drain(err_, [&](const std::string& line) {
    if (!line.empty()) last_error_ = line;
    if (on_error_line) on_error_line(line);
  });
  return more;
}

void Child::interrupt() {
  if (running_) ::kill(pid_, SIGINT);
}

void Child::kill() {
  if (!running_) return;
  ::kill(-pid_, SIGKILL);
  {
    OwnChildren& own = own_children();
    const std::scoped_lock lock(own.guard);  // its number may be another's at once
    while (waitpid(pid_, &status_, 0) < 0 && errno == EINTR) {
    }
    own.known.erase(pid_);
  }
  running_ = false;
  end_strangers();
}

bool Child::exited() const { return !running_ && WIFEXITED(status_); }

bool Child::was_killed() const { return !running_ && WIFSIGNALED(status_); }

int Child::exit_code() const { return exited() ? WEXITSTATUS(status_) : -1; }

std::string Child::last_words() const { return err_.partial.empty() ? last_error_ : err_.partial; }

std::string Child::ending() const {
  if (WIFSIGNALED(status_))
    return fmt::format("ended by signal {} ({})", WTERMSIG(status_), strsignal(WTERMSIG(status_)));
  const std::string said = last_words();
  return fmt::format("exit {}: {}", exit_code(), said.empty() ? "no message" : said);
}

void pause_briefly() {
  const timespec pause = {0, 10'000'000};
  nanosleep(&pause, nullptr);
}

}  // namespace spmmbench
