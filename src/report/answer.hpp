#pragma once
// The answer to what to call: for each number of calls, the verified row with the least preparation
// + calls x time.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "spmmbench/result.hpp"

namespace spmmbench {

// What A and B are stored as, and C where that is not fp32: "fp16", "fp32>fp16".
std::string types_of(const std::string& precision, const std::string& c_type);
std::string types_of(const ResultRow& row);

// The kernel, and the row order where there is one: "rsh [degree]".
std::string label_of(const std::string& kernel, const std::string& reorder);
std::string label_of(const ResultRow& row);

// The time to prepare once, and the time of each call.
struct Cost {
  double prepare_ms = 0, us = 0;

  double total_us(double calls) const { return prepare_ms * 1e3 + calls * us; }
};

// Above this relative noise of its median, in hot times, a row is not called the fastest: a choice,
// ten times the noise at which sampling stops. Samples that are too few have a warning of their
// own.
inline constexpr double kTooNoisy = 0.10;
double noise_of(const ResultRow& row);  // 0 where there are too few samples to tell

// Everything before the first launch except loading: the sum of all stages but `load`.
double preprocessing_ms(const ResultRow& row);

// Empty for a row that takes no part in rankings: one that is not correct, has no positive time, or
// is of a binary kernel.
std::optional<Cost> cost_of(const ResultRow& row);

// The lower envelope of `costs` over the number of calls, as pairs of the first number of calls and
// an index; the first pair is for one call. A cost per call must be lower than the one before by
// kLeastGain, or it is left out. So the total is never more than kLeastGain above the least.
inline constexpr double kLeastGain = 0.01;  // the noise at which sampling stops
std::vector<std::pair<std::int64_t, std::size_t>> lower_envelope(const std::vector<Cost>& costs);

struct AnswerStep {
  std::int64_t from_calls = 1;
  std::string kernel, reorder;
  double prepare_ms = 0, us = 0;
  std::optional<double> of_bound;
  double noise = 0;
};

// The answer for one matrix, N, layout, precision and type of C.
struct Answer {
  std::string matrix, source;  // its name, and the path or gen: spec
  std::int64_t n = 0;
  std::string layout, precision, c_type;
  std::vector<AnswerStep> steps;
};

class Answers {
 public:
  void add(const ResultRow& row);  // ignores rows that take no part
  // In the order in which the groups were first seen. A group in fp32 with baselines alone
  // is left out where another group of the same matrix, N and layout has other kernels: its rows
  // are only there to divide by. So are rows of the CPU where there are rows of a GPU.
  std::vector<Answer> all() const;

 private:
  struct Group {
    Answer answer;       // with a step for every row, unordered
    std::string matrix;  // its identity
    bool on_gpu;
    bool baselines_alone = true;
  };
  std::vector<Group> groups_;
  using Key = std::tuple<std::string, std::int64_t, std::string, std::string, std::string, bool>;
  std::map<Key, std::size_t> index_of_;  // by identity_of the matrix
};

// "1 call: cublas_dense, 412 us in all \u00b7 from 9 calls: async_wcsr, 86.1 us a call \u00b7 ...".
// With `calls` > 0 it begins with what to call for this many calls. Where one of the rows is too
// noisy, it says that it cannot tell.
std::string to_string(const Answer& answer, std::int64_t calls = 0);

}  // namespace spmmbench
