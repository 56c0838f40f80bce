#pragma once
// Speed-ups and break-even of rows against the baselines of the same matrix, N, layout and C type.
// Only correct, unreordered rows of vendor libraries count as baselines, and only correct rows get
// a speed-up.

#include <map>
#include <string>
#include <tuple>

#include "spmmbench/result.hpp"

namespace spmmbench {

class Baselines {
 public:
  void add(const ResultRow& row);   // ignores what is no baseline
  void fill(ResultRow& row) const;  // sets speedup and break_even_calls

 private:
  using Key = std::tuple<std::string, std::int64_t, std::string, std::string, std::string>;
  static Key key_of(const ResultRow& row, const std::string& precision, const std::string& c_type);
  struct Best {
    // Hot medians in microseconds. Plain: the fastest call without preprocessing.
    std::optional<double> cusparse_default, cusparse_plain, cusparse, cublas, eigen;
  };
  const Best* find(const ResultRow& row, const std::string& precision,
                   const std::string& c_type) const;

  std::map<Key, Best> best_;
};

// Everything before the first launch except loading: reorder, build, upload, tune and a kernel's
// own stages.
double preprocessing_ms(const ResultRow& row);

}  // namespace spmmbench
