// Drives a libFuzzer target without libFuzzer: mutates seeds for a bounded time.
//   TARGET SECONDS [SEED]       mutates; a crash leaves its input in crash-input
//   TARGET FILE...              runs these inputs once

#include <fcntl.h>
#include <unistd.h>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "target.hpp"

namespace {

std::string current;

void save_current(int signal) {
  const int fd = ::open("crash-input", O_WRONLY | O_CREAT | O_TRUNC, 0644);
  if (fd >= 0 && ::write(fd, current.data(), current.size()) >= 0) ::close(fd);
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

void run(const std::string& input) {
  current = input;
  // A copy of exactly this size, so that a sanitizer sees every read beyond it.
  const std::vector<std::uint8_t> bytes(input.begin(), input.end());
  LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
}

class Mutator {
 public:
  explicit Mutator(std::uint64_t seed) : random_(seed) {}

  std::string next() {
    std::string text = pick(fuzz_seeds());
    for (std::uint64_t edits = 1 + below(6); edits > 0; --edits) edit(text);
    return text;
  }

 private:
  std::uint64_t below(std::uint64_t n) { return random_() % n; }
  const std::string& pick(const std::vector<std::string>& from) { return from[below(from.size())]; }

  void edit(std::string& text) {
    const std::size_t at = below(text.size() + 1), length = below(text.size() - at + 1);
    switch (below(7)) {
      case 0: text.insert(at, pick(fuzz_tokens())); break;
      case 1: text.replace(at, std::min<std::size_t>(length, below(6)), pick(fuzz_tokens())); break;
      case 2: text.erase(at, below(4) == 0 ? length : 1); break;
      case 3: text.insert(at, text.substr(below(text.size() + 1), below(24))); break;
      case 4: text.resize(at); break;
      case 5:
        if (at < text.size()) text[at] = static_cast<char>(below(256));
        break;
      case 6:
        if (at < text.size()) text[at] = static_cast<char>('0' + below(10));
        break;
    }
  }

  std::mt19937_64 random_;
};

}  // namespace

int main(int argc, char** argv) {
  double seconds = 10;
  if (argc > 1) {
    const char* const end = argv[1] + std::strlen(argv[1]);
    if (std::from_chars(argv[1], end, seconds).ptr != end) {
      for (int i = 1; i < argc; ++i) {
        std::ifstream file(argv[i], std::ios::binary);
        run({std::istreambuf_iterator<char>(file), {}});
      }
      return 0;
    }
  }
  for (const int signal : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL})
    std::signal(signal, save_current);
  const auto start = std::chrono::steady_clock::now();
  const auto elapsed = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  for (const std::string& seed : fuzz_seeds()) run(seed);
  Mutator mutator(argc > 2 ? std::stoull(argv[2]) : 1);
  std::uint64_t runs = 0;
  for (; elapsed() < seconds; ++runs) run(mutator.next());
  std::printf("%llu inputs in %.1f s\n", static_cast<unsigned long long>(runs), elapsed());
  return 0;
}
