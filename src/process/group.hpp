#pragma once
// The processes that measure one product together. Each has a rank; rank 0 meets the others at an
// address. They exchange short texts, which also keeps them in step.

#include <optional>
#include <string>
#include <vector>

#include "io/output.hpp"
#include "spmmbench/error.hpp"

namespace spmmbench {

inline constexpr const char* kItsProcessEnded = "its process ended";

// Another rank ended or does not answer; this one cannot go on either.
class RankLost : public Error {
 public:
  explicit RankLost(const std::string& message) : Error(message, ExitCode::some_failed) {}
};

// Which rank this process is.
struct Place {
  int rank = 0, ranks = 1;
  int on_host = 0;      // its number among those of its host
  std::string meeting;  // where rank 0 listens: HOST:PORT, or the path of a socket
};

// The place that torchrun, mpirun or srun gave this process; none where none of them started it.
// MASTER_ADDR and MASTER_PORT name the meeting, as torchrun sets them; else it is this host.
std::optional<Place> place_of_environment();

class Group {
 public:
  // Waits for all ranks. Throws RankLost where one does not come within `timeout_s`.
  Group(const Place& place, double timeout_s);

  void restart_clock();  // what all ranks do from here on is to end within the timeout

  int rank() const { return place_.rank; }
  int ranks() const { return place_.ranks; }
  std::string name_of(int rank) const;  // "rank 1 on HOST"

  // Gives the text of each rank to all of them, in the order of the ranks. Throws RankLost where
  // one ended or does not answer in time.
  std::vector<std::string> exchange(const std::string& own);
  // The same of numbers.
  std::vector<double> exchange(double own);

 private:
  void meet();
  void send(int peer, const std::string& text) const;
  std::string receive(int peer) const;

  Place place_;
  double timeout_s_;
  double deadline_ = 0;              // of the clock of steady_seconds
  std::vector<Descriptor> sockets_;  // rank 0: of each other rank; others: of rank 0
  std::vector<std::string> hosts_;   // by rank, as far as they are known
};

}  // namespace spmmbench
