#pragma once
// Speed-ups and break-even of rows against others of the same matrix, N, layout and C type. Rows of
// a GPU and of a CPU are compared apart, since their B and C lie in different memory. Only correct,
// unreordered rows of vendor libraries count as baselines, and only correct rows get a speed-up.

#include <map>
#include <string>
#include <tuple>

#include "report/answer.hpp"
#include "spmmbench/result.hpp"

namespace spmmbench {

class Baselines {
 public:
  // `calls`: for which preparation is counted, as RunContext has it.
  explicit Baselines(std::int64_t calls = 0) : calls_(static_cast<double>(calls)) {}

  void add(const ResultRow& row);            // ignores what is not correct
  void forget(const std::string& identity);  // a matrix, by identity_of
  void fill(ResultRow& row) const;           // sets speedup, break_even_* and in_all_us

 private:
  // The last says whether the rows are of a GPU.
  using Key = std::tuple<std::string, std::int64_t, std::string, std::string, std::string, bool>;
  static Key key_of(const ResultRow& row, const std::string& precision, const std::string& c_type);
  struct Fastest {
    double us = 0;
    std::string kernel;
  };
  static void keep_faster(std::optional<Fastest>& best, const std::optional<Fastest>& other);
  struct Best {
    std::optional<double> cusparse_default, cublas;        // hot medians, us
    std::optional<Fastest> cusparse, eigen;                // by hot medians
    std::optional<Fastest> cusparse_in_all, eigen_in_all;  // for calls_
    // The row that is done first when it is called once, and every kernel without an order.
    std::optional<Cost> first;
    std::string first_label;
    std::map<std::string, Cost> unordered;
  };
  const Best* find(const ResultRow& row, const std::string& precision,
                   const std::string& c_type) const;
  double in_all_us(const Cost& cost) const { return cost.total_us(calls_) / calls_; }
  void fill_break_even(ResultRow& row, const Cost& mine, const Best& best) const;

  double calls_;
  std::map<Key, Best> best_;
};

}  // namespace spmmbench
