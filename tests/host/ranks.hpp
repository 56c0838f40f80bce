#pragma once
// Ranks of a team as threads of a test.

#include <exception>
#include <string>
#include <thread>
#include <vector>

namespace spmmbench::testing {

// What `run(rank)` says that is wrong, or throws, on each rank; all ranks run at the same time.
template <class Run>
std::vector<std::string> faults_of_ranks(int ranks, const Run& run) {
  std::vector<std::string> faults(ranks);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] {
      try {
        faults[rank] = run(rank);
      } catch (const std::exception& error) {
        faults[rank] = error.what();
      }
    });
  for (std::thread& thread : threads) thread.join();
  return faults;
}

}  // namespace spmmbench::testing
