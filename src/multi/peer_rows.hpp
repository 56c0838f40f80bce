#pragma once
// B of all ranks of a host as one B, in which each rank reads the others' rows where they lie.

#include <cstddef>
#include <memory>
#include <vector>

#include "gpu/peer_memory.hpp"
#include "multi/partition.hpp"
#include "multi/team.hpp"
#include "spmmbench/device.hpp"

namespace spmmbench {

// Memory of which each rank's device has a part, in one range of addresses of every rank.
class PeerRange {
 public:
  // `bytes`: of each rank's part, whole pages. All ranks make one at once. Throws CaseEnded and
  // RankLost.
  PeerRange(Team& team, std::unique_ptr<PeerMemory> memory, const std::vector<std::size_t>& bytes);
  char* data() const { return data_; }

 private:
  std::unique_ptr<PeerMemory> memory_;
  char* data_ = nullptr;
};

class PeerRows {
 public:
  // As `b`, which is whole and row-major, with memory of its own. `ranges`: of its rows, by rank.
  // As above for all ranks at once. `team` outlives this object.
  PeerRows(Team& team, const std::vector<Range>& ranges, const DenseView& b);

  const DenseView& b() const { return b_; }
  // Enqueues: what comes next begins when all ranks have come here, and reads the B that they have
  // written.
  void meet();

 private:
  Team& team_;
  std::unique_ptr<PeerRange> rows_, places_;  // the second of cuda_meet
  std::size_t place_bytes_ = 0;               // of a rank
  DenseView b_;
};

}  // namespace spmmbench
