#include "process/waited_seconds.hpp"

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

double waited_seconds(Threads whose) {
  if (whose == Threads::caller) return waited_seconds_of("/proc/thread-self");
  double sum = 0;
  std::error_code ended;  // a thread may end meanwhile
  for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task", ended))
    sum += waited_seconds_of(thread.path());
  return sum;
}

}  // namespace spmmbench
