#include "process/new_threads.hpp"

#include <filesystem>
#include <fstream>
#include <system_error>

namespace spmmbench {
namespace {

template <class Visit>
void visit_threads(const Visit& visit) {
  std::error_code ended;  // a thread may end meanwhile
  for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task", ended))
    visit(thread.path());
}

}  // namespace

NewThreads::NewThreads() {
  visit_threads([this](const std::filesystem::path& thread) { before_.insert(thread.filename()); });
}

double NewThreads::seconds() const {
  double seconds = 0;
  visit_threads([&](const std::filesystem::path& thread) {
    if (before_.contains(thread.filename())) return;
    std::ifstream file(thread / "schedstat");
    if (double ran_ns = 0; file >> ran_ns) seconds += ran_ns * 1e-9;
  });
  return seconds;
}

}  // namespace spmmbench
