#include "run/isolate.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>

#include "report/json.hpp"
#include "run/interrupt.hpp"
#include "spmmbench/error.hpp"
#include "stats/sampler.hpp"

namespace spmmbench {
namespace {

// Its own folder, removed with it.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "spmmbench-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr)
      throw Error(fmt::format("{}: cannot be created: {}", name, strerror(errno)));
    path_ = name;
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  std::string file(const char* name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

std::string last_line(const std::string& path) {
  std::ifstream file(path);
  std::string line, last;
  while (std::getline(file, line))
    if (!line.empty()) last = line;
  return last;
}

pid_t spawn(std::vector<std::string> arguments, const std::string& stderr_path) {
  const pid_t child = fork();
  if (child < 0) throw Error(fmt::format("fork: {}", strerror(errno)));
  if (child > 0) return child;
  setpgid(0, 0);  // Ctrl-C reaches the parent alone, which then ends the child
  const int null = open("/dev/null", O_RDWR);
  const int errors = open(stderr_path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  dup2(null, STDIN_FILENO);
  dup2(null, STDOUT_FILENO);
  dup2(errors, STDERR_FILENO);
  std::vector<char*> argv = {const_cast<char*>("spmmbench")};
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  execv("/proc/self/exe", argv.data());
  _exit(127);
}

}  // namespace

ChildOutcome run_isolated(const std::vector<std::string>& arguments, double timeout_s) {
  const TemporaryFolder folder;
  const std::string json = folder.file("rows.json"), errors = folder.file("stderr");
  std::vector<std::string> all = arguments;
  all.insert(all.end(), {"--json", json, "--quiet"});
  const pid_t child = spawn(std::move(all), errors);

  ChildOutcome outcome;
  int status = 0;
  const double deadline = steady_seconds() + timeout_s;
  while (waitpid(child, &status, WNOHANG) == 0) {
    bool end = steady_seconds() > deadline;
    outcome.timed_out = end;
    try {
      poll_interrupt();
    } catch (const Interrupted&) {
      kill(child, SIGKILL);
      waitpid(child, &status, 0);
      throw;
    }
    if (end) {
      kill(child, SIGKILL);
      waitpid(child, &status, 0);
      outcome.reason = fmt::format("killed after {:.0f} s", timeout_s);
      return outcome;
    }
    const timespec pause = {0, 10'000'000};
    nanosleep(&pause, nullptr);
  }
  if (std::filesystem::exists(json)) outcome.rows = read_document(json).rows;
  if (!outcome.rows.empty()) return outcome;
  outcome.reason =
      WIFSIGNALED(status)
          ? fmt::format("ended by signal {} ({})", WTERMSIG(status), strsignal(WTERMSIG(status)))
          : fmt::format("exit {}: {}", WEXITSTATUS(status), last_line(errors));
  return outcome;
}

}  // namespace spmmbench
