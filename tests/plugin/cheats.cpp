// A plug-in for the tests whose kernels tell lies about rows, or leave something behind. The
// product itself is right.

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cfenv>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "spmmbench/plugin.hpp"

namespace {

using namespace spmmbench::plugin;

#ifdef CHANGES_ITS_PROCESS
__attribute__((constructor)) void change_the_process() {
  fesetround(FE_DOWNWARD);
  signal(SIGCHLD, SIG_IGN);
  signal(SIGINT, SIG_IGN);
  umask(0777);
  const rlimit no_files = {0, 0};
  setrlimit(RLIMIT_FSIZE, &no_files);
  if (chdir("/") != 0) abort();
}
#endif

// Each pipe that this process writes to, besides standard output and error.
std::vector<int> pipes() {
  constexpr int kMost = 256;
  std::vector<int> found;
  for (int fd = STDERR_FILENO + 1; fd < kMost; ++fd) {
    struct stat status = {};
    const bool is_pipe = fstat(fd, &status) == 0 && S_ISFIFO(status.st_mode);
    if (is_pipe && (fcntl(fd, F_GETFL) & O_ACCMODE) == O_WRONLY) found.push_back(fd);
  }
  return found;
}

void write_all(int fd, const std::string& text) {
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t count = write(fd, text.data() + done, text.size() - done);
    if (count <= 0) return;
    done += static_cast<std::size_t>(count);
  }
}

// A row as the program prints it, without what only a child of the program knows.
void forge_a_row() {
  for (const int fd : pipes())
    write_all(fd, "{\"kernel\": \"cpu_csr\", \"status\": \"ok\", \"hot\": {\"median_us\": 1}}\n");
}

// Puts itself between the program and its parent. `change` is given each line.
void change_lines(const std::function<std::string(std::string)>& change) {
  for (const int fd : pipes()) {
    int ends[2] = {};
    const int parent = dup(fd);
    if (pipe(ends) != 0 || dup2(ends[1], fd) < 0) abort();
    std::thread([from = ends[0], parent, change] {
      std::string line;
      for (char byte = 0; read(from, &byte, 1) == 1;) {
        line += byte;
        if (byte == '\n') write_all(parent, change(std::exchange(line, {})));
      }
    }).detach();
  }
  static const int waits = std::atexit([] { usleep(300'000); });  // until the thread has done so
  (void)waits;
}

std::string with_another_kernel(std::string line) {
  const std::string own = "renames_its_row";
  for (std::size_t at = line.find(own); at != std::string::npos; at = line.find(own))
    line.replace(at, own.size(), "good");
  return line;
}

// Leaves a process that works for ever, in a session of its own. Its number is in a file.
void leave_a_process() {
  const char* const path = std::getenv("SPMMBENCH_TEST_LEFT");
  if (fork() != 0) return;
  setsid();
  if (fork() != 0) _exit(0);
  std::FILE* const file = std::fopen(path, "w");
  std::fprintf(file, "%d\n", getpid());
  std::fclose(file);
  for (;;) {
  }
}

const std::string long_word(1'000'000, 'x');

const char* const long_params[] = {"order", long_word.c_str(), nullptr};

Bind prepare(const spmmbench_problem& problem, const std::function<void()>& once,
             const char* const* params = nullptr) {
  const spmmbench_csr a = *problem.a;
  const auto copy = [](auto* data, std::int64_t count) { return std::vector(data, data + count); };
  auto row_ptr = copy(static_cast<const std::int32_t*>(a.row_ptr), a.rows + 1);
  auto col_idx = copy(static_cast<const std::int32_t*>(a.col_idx), a.nnz);
  auto values = copy(static_cast<const float*>(a.values), a.nnz);
  return [=](const spmmbench_shape&, Stages&) -> Plan {
    return {[=](const spmmbench_dense& b, const spmmbench_dense& c, void*) {
              static bool done = false;
              if (!std::exchange(done, true)) once();
              for (std::int64_t i = 0; i < c.rows; ++i)
                for (std::int64_t j = 0; j < c.cols; ++j) {
                  float sum = 0;
                  for (std::int32_t e = row_ptr[i]; e < row_ptr[i + 1]; ++e)
                    sum += values[e] * static_cast<const float*>(b.data)[col_idx[e] * b.ld + j];
                  static_cast<float*>(c.data)[i * c.ld + j] = sum;
                }
            },
            [=](spmmbench_report& report) { report.params = params; }};
  };
}

Kernel kernel(const char* name, std::function<void()> once) {
  return {describe(name, "for tests", "tests"),
          [once = std::move(once)](const spmmbench_problem& problem, Stages&) {
            return prepare(problem, once);
          }};
}

const Kernel good = kernel("good", [] {});
const Kernel forges = kernel("forges_a_row", forge_a_row);
const Kernel doubles = kernel(
    "doubles_its_row", [] { change_lines([](const std::string& line) { return line + line; }); });
const Kernel renames = kernel("renames_its_row", [] { change_lines(with_another_kernel); });
const Kernel long_param(describe("long_param", "for tests", "tests"),
                        [](const spmmbench_problem& problem, Stages&) {
                          return prepare(
                              problem, [] {}, long_params);
                        });
const Kernel long_stage(describe("long_stage", "for tests", "tests"),
                        [](const spmmbench_problem& problem, Stages& stages) {
                          stages.add(long_word.c_str(), 1);
                          return prepare(problem, [] {});
                        });
const Kernel long_reason = kernel("long_reason", [] { throw std::runtime_error(long_word); });
const Kernel leaves = kernel("leaves_a_process", leave_a_process);

}  // namespace

extern "C" SPMMBENCH_PLUGIN("cheats", "1", good.c(), forges.c(), doubles.c(), renames.c(),
                            leaves.c(), long_param.c(), long_stage.c(), long_reason.c())
