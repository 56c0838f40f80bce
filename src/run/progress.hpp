#pragma once
// The status line on stderr: `[51/192] 2m13s left  cant n=128 async_wcsr`, rewritten in place on a
// terminal, one plain line per case otherwise.

#include <cstddef>
#include <string>

namespace spmmbench {

class Progress {
 public:
  // `pending` of the `total` cases take time; the others are there already (resumed).
  Progress(std::size_t total, std::size_t pending, bool quiet);
  void start(const std::string& what);  // before a case
  void skip(std::size_t cases);         // which are there already
  void drop(std::size_t cases);         // pending ones that will not come
  void done();                          // after a case
  void clear();                         // wipes the line before results are printed

 private:
  std::size_t total_, pending_, finished_ = 0, timed_ = 0;
  bool quiet_, terminal_;
  double begin_s_;
};

std::string format_duration(double seconds);  // "2m13s"

}  // namespace spmmbench
