#pragma once
// Sparse formats. A format is a plain struct of arrays with `build`, `unpack` (exact round trip)
// and `stats`; this header has what they share, and the interface `inspect` uses to compare their
// space and fill.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "spmmbench/matrix.hpp"
#include "spmmbench/option.hpp"

namespace spmmbench {

struct FormatStats {
  std::string name;
  std::int64_t bytes = 0;        // everything the kernel reads of A, indices and values
  std::int64_t index_bytes = 0;  // of which indices and metadata
  std::int64_t stored = 0;       // stored entries, padding included
  std::int64_t tiles = 0;        // tiles or blocks; 0 where the format has none
  std::int64_t windows = 0;      // row windows; 0 where the format has none
  double fill = 1;               // nnz / entry slots of the tiles
  double nnz_per_tile = 0;
  double nnz_per_window = 0;
  double window_imbalance = 0;          // largest window's tiles / mean tiles per nonempty window
  std::map<std::string, double> extra;  // format-specific, snake_case with the unit in the name
};

// One entry of `spmmbench list formats`. Registered by the format's own .cpp file.
class Format {
 public:
  virtual ~Format() = default;
  virtual std::string name() const = 0;
  virtual std::string summary() const = 0;  // one line
  virtual std::vector<OptionSpec> options() const { return {}; }
  // What `matrix` takes in this format. `options` were checked.
  virtual FormatStats analyze(const CsrMatrix& matrix, const Options& options) const = 0;
};

void check_options(const Format& format, const Options& options);  // throws Error

}  // namespace spmmbench
