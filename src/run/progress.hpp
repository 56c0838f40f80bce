#pragma once
// The status on stderr. On a terminal it is one line, which is rewritten twice a second so that it
// also moves during a long case: `[51/192] 4m10s, 2m13s left  cant n=128 async_wcsr 12s`. Elsewhere
// it is one line per matrix.

#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <string>
#include <thread>

namespace spmmbench {

class Progress {
 public:
  // `pending` of the `total` cases are to be measured; the others have their rows already.
  Progress(std::size_t total, std::size_t pending, bool quiet);
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress();

  void start(const std::string& what);        // before a case runs, or a matrix is loaded
  void skip(std::size_t cases);               // cases that have their rows already
  void drop(std::size_t cases);               // pending cases that will not be measured
  void done();                                // after a case
  void matrix_done(const std::string& name);  // after the last case of a matrix
  void clear();                               // wipes the line before results are printed

 private:
  std::string counts() const;  // the part before the case
  void draw();
  void tick();

  std::size_t total_, pending_, finished_ = 0, timed_ = 0;
  bool quiet_, terminal_;
  double begin_s_, started_s_ = 0;
  std::string what_;  // empty: nothing is drawn
  std::mutex mutex_;  // of everything above
  std::condition_variable ended_;
  bool end_ = false;
  std::thread ticker_;
};

std::string format_duration(double seconds);  // "2m13s"

}  // namespace spmmbench
