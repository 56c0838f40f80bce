#include "process/waited_seconds.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>

namespace spmmbench {
namespace {

// Nanoseconds that the thread ran, and that it waited for a processor.
double waited_seconds_of(const std::string& folder) {
  std::ifstream file(folder + "/schedstat");
  double ran = 0, waited = 0;
  return file >> ran >> waited ? waited * 1e-9 : 0;
}

}  // namespace

namespace {

// The calling thread's file, which stays open: opening it takes longer than reading.
class OwnFile {
 public:
  OwnFile() = default;
  OwnFile(const OwnFile&) = delete;
  ~OwnFile() {
    if (file_ >= 0) close(file_);
  }
  double waited_seconds() {
    if (thread_ != gettid()) open_anew();  // also in a child of this process
    std::array<char, 96> text{};
    if (file_ < 0 || pread(file_, text.data(), text.size() - 1, 0) <= 0) return 0;
    unsigned long long ran = 0, waited = 0;
    return std::sscanf(text.data(), "%llu %llu", &ran, &waited) == 2
               ? static_cast<double>(waited) * 1e-9
               : 0;
  }

 private:
  void open_anew() {
    if (file_ >= 0) close(file_);
    file_ = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
    thread_ = gettid();
  }
  int file_ = -1;
  pid_t thread_ = 0;
};

}  // namespace

double waited_seconds(Threads whose) {
  thread_local OwnFile own;
  if (whose == Threads::caller) return own.waited_seconds();
  double sum = 0;
  std::error_code ended;  // a thread may end meanwhile
  for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task", ended))
    sum += waited_seconds_of(thread.path());
  return sum;
}

}  // namespace spmmbench
