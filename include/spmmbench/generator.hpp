#pragma once
// Matrix generators: `gen:NAME?key=value`. Deterministic for a seed, whatever the thread count.

#include <string>
#include <vector>

#include "spmmbench/matrix.hpp"
#include "spmmbench/spec.hpp"

namespace spmmbench {

struct Generated {
  CsrMatrix csr;
  bool pattern =
      true;  // structure only: values are drawn by the loader; false when the generator made values
  // Generators of two-operand problems (ESMM) make B as well, rows = csr.cols; empty otherwise.
  DenseMatrix b;
};

class Generator {
 public:
  virtual ~Generator() = default;
  virtual std::string name() const = 0;
  virtual std::string summary() const = 0;  // one line
  virtual std::vector<OptionSpec> options() const = 0;
  virtual Generated generate(const Options& options) const = 0;  // throws Error on bad options
};

}  // namespace spmmbench
