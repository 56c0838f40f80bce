#pragma once
// How a kernel estimates its own time on a matrix that it has not run. An estimate is a sum of
// amounts of work, each times a factor. A kernel's folder has estimate.cpp, which names the amounts
// and registers the estimator, and factors.hpp, which scripts/refit fits to recorded runs.

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "select/product.hpp"

namespace spmmbench {

struct Amount {
  const char* name;
  const char* unit;  // of what `of` returns; the factor is in microseconds or milliseconds of it
  double (*of)(const Product&);
  double least_factor = 0;
};

// What an amount is multiplied by, in microseconds or milliseconds of it.
struct Factor {
  std::string_view amount;
  double value;
  // The amount's, found when the estimator is registered. Null where only another candidate of the
  // table has the amount.
  double (*of)(const Product&) = nullptr;
};

// How many times longer than in the first precision of a row the kernel takes.
struct Scale {
  Precision precision;
  double times;
};

inline constexpr std::int64_t kAnyN = std::numeric_limits<std::int64_t>::max();

// The factors for a call with at most `most_n` columns of B; rows with fewer columns come first.
struct Factors {
  std::string_view table;  // Estimator::table
  std::int64_t most_n;
  std::vector<Scale> precisions;
  std::vector<Factor> us;
};

// The factors for preparation, whatever the precision and N. The copy of A is not counted if the
// kernel is prepared from it.
struct Preparation {
  std::string_view spec;  // Estimator::spec
  std::vector<Factor> ms;
};

struct Estimate {
  double us = 0;          // of a call
  double prepare_ms = 0;  // once
};

enum class Standing {
  left_out,  // the kernel cannot gain on such a matrix, or not be prepared in reasonable time
  trial,     // it is not expected to gain over another one: to be run only where it is measured
  full,
};

inline Standing full_if(bool holds, Standing otherwise = Standing::left_out) {
  return holds ? Standing::full : otherwise;
}

struct Estimator {
  std::string spec;  // of a kernel and the options that auto considers it with
  std::vector<Amount> us;
  std::vector<Amount> prepare_ms = {};
  std::vector<Factors> factors;                    // rows of other tables do not count
  std::vector<Preparation> preparation = {};       // nor do those of other candidates
  Standing (*standing)(const Product&) = nullptr;  // null: always full
  // The rows of factors that candidates of one kernel share; empty: the spec.
  std::string table = {};
  // Columns of B up to which there are factors of their own, in rising order: the kernel reads B in
  // another way there.
  std::vector<std::int64_t> bounds = {};
  // Whether values of 16 bits have factors of their own: they are multiplied in another way.
  bool apart = false;
  // It is prepared from the CSR on the device where A lies there. Else the host copies A, or builds
  // a format, which may take far longer than estimated while others use the host.
  bool on_device = false;
  // Columns of B that the kernel takes at most.
  std::int64_t most_n = kAnyN;
  // Its time follows from the sizes alone, so that an estimate is hardly too short.
  bool by_sizes = false;
  // Columns of B from which its time hardly grows where rows differ in length, so that it may be
  // chosen by the sizes of A alone, as if all were equally long; 0: none.
  std::int64_t any_rows_from = 0;
  // Its estimate by the sizes alone is multiplied by this: rows of most matrices differ in length.
  double times_by_sizes = 1;
  // It looks for a row order, and multiplies as this candidate would multiply A with its rows in
  // that order: the better estimate once it is known what windows gather there. Empty: it has none.
  std::string ordered_as = {};

  Standing standing_for(const Product& product) const {
    return standing == nullptr ? Standing::full : standing(product);
  }
  // Nothing where no factors are for this precision and N. One that was not fitted has those of
  // another, since amounts count bytes: 8 bits those of fp8_e4m3, these and bf16 those of fp16, and
  // wider ones those of fp32.
  std::optional<Estimate> estimate(const Product& product) const;
};

namespace prepare_amounts {
std::vector<Amount> of_csr();    // of formats as large as the nonzeros and rows
std::vector<Amount> of_dense();  // of those with A's zeros, which are filled first
}  // namespace prepare_amounts

// Registered estimators, by their spec.
const std::vector<std::unique_ptr<const Estimator>>& estimators();
bool add_estimator(Estimator estimator);

}  // namespace spmmbench

// Use it at namespace scope in kernels/NAME/estimate.cpp.
#define SPMMBENCH_REGISTER_ESTIMATOR(...)                                         \
  [[maybe_unused]] static const bool SPMMBENCH_CONCAT(registered_, __COUNTER__) = \
      ::spmmbench::add_estimator(__VA_ARGS__)
