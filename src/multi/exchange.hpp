#pragma once
// The gather of B by one part, for one shape, on its device.

#include <cstdint>
#include <vector>

#include "gpu/transport.hpp"
#include "multi/partition.hpp"
#include "multi/peer_rows.hpp"
#include "spmmbench/device.hpp"

namespace spmmbench {

class Exchange {
 public:
  // `b` is the row-major B of the part's kernel, in which the part's own rows lie where the gather
  // says. `ranks`: of each part; all_ranks: how many there are, of other columns too. `peer`: where
  // rows are read from the memory of others, the B of all, which then is the kernel's. Everything
  // that is referred to outlives this object. Throws Unsupported where rows of B are not of whole
  // 16 bytes on a GPU. `all_by`: how all rows are gathered where all ranks have the same columns.
  enum class AllBy { one_call, sends };
  Exchange(const Gather& gather, const std::vector<int>& ranks, int all_ranks, const DenseView& b,
           Device& device, Transport& transport, PeerRows* peer = nullptr,
           AllBy all_by = AllBy::one_call);

  void launch();  // enqueues; `b` then has all rows
  // Enqueues waiting for all ranks, as a launch with `peer` begins.
  void meet() { peer_->meet(); }
  // Enqueues reading the rows that are read where they lie, once, and nothing else.
  void read_in_place();
  void begin();  // the same, beside what comes to the device's stream until end()
  void end();
  void poison_received();  // every row that others send becomes NaN

  double bytes_sent() const { return static_cast<double>(gather_.rows_sent() * line_bytes_); }
  double bytes_received() const {
    return static_cast<double>(gather_.rows_received() * line_bytes_);
  }
  double bytes_packed() const { return static_cast<double>(packed_.bytes()); }
  const DenseView& b() const { return b_; }  // what the kernel reads
  DenseView own() const;                     // the part's own rows in it

 private:
  std::vector<std::int32_t> lines_to_pull(const std::vector<int>& ranks) const;
  void pull();
  void pack(const void* from);
  char* line(std::int64_t row) const { return static_cast<char*>(b_.data) + row * line_bytes_; }

  const Gather& gather_;
  DenseView b_;
  std::int64_t line_bytes_;
  Device& device_;
  Transport& transport_;
  PeerRows* peer_;
  Buffer lines_, packed_;              // of what is packed, by part, or read from others
  std::vector<Block> send_, receive_;  // by rank; empty where one call serves
};

}  // namespace spmmbench
