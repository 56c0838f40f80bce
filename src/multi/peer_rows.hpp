#pragma once
// B of all ranks of a host, of which each rank reads the others' rows where they lie.

#include <cstddef>
#include <cstdint>
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
  // As `b` too, which has the rows that `gather` says. The others read those that are the rank's
  // own.
  PeerRows(Team& team, const Gather& gather, const DenseView& b);

  const DenseView& b() const { return b_; }
  // The memory of all ranks in lines as long as those of `b`; row i of B, which is whole, is line
  // first_line(rank) + i of it where it is that rank's own. After the second constructor.
  const void* all() const { return rows_->data(); }
  std::int64_t first_line(int rank) const { return first_lines_[rank]; }
  // Enqueues, where the transport does: what comes next begins when all ranks have come here, and
  // reads the B that they have written.
  void meet();

 private:
  void make_places();

  Team& team_;
  std::unique_ptr<PeerRange> rows_, places_;  // the second of cuda_meet
  std::size_t place_bytes_ = 0;               // of a rank
  DenseView b_;
  std::vector<std::int64_t> first_lines_;  // by rank
};

}  // namespace spmmbench
