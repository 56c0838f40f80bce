#pragma once
// Matrix generators: `gen:NAME?key=value`. Deterministic for a seed, whatever the thread count.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "spmmbench/matrix.hpp"
#include "spmmbench/option.hpp"

namespace spmmbench {

struct Generated {
  CsrMatrix csr;
  bool pattern = true;  // true: only structure was made, and the loader draws the values
  // B of a generator that makes both operands (ESMM), rows = csr.cols. Empty for all others.
  DenseMatrix b;
};

class Generator {
 public:
  virtual ~Generator() = default;
  virtual std::string name() const = 0;
  virtual std::string summary() const = 0;  // one line
  virtual std::vector<OptionSpec> options() const = 0;
  // Throws Error for values that are allowed alone but not together.
  virtual void check(const Options& /*options*/) const {}
  // N of a generator that makes both operands.
  virtual std::optional<std::int64_t> columns_of_b(const Options& /*options*/) const { return {}; }
  virtual Generated generate(const Options& options) const = 0;  // of options that were checked
};

// Each value against its declaration, then Generator::check.
void check_options(const Generator& generator, const Options& options);  // throws Error

}  // namespace spmmbench
