#pragma once
// Chooses the order in which slices take the rows of A.

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "reorder/match.hpp"
#include "spmmbench/device.hpp"
#include "spmmbench/option.hpp"
#include "spmmbench/problem.hpp"
#include "spmmbench/shared_parts.hpp"

namespace spmmbench::jagged {

inline bool is_order(const std::string& text) {
  return text == "natural" || text == "search" || names_reordering(text);
}
inline const auto kOrder = text_option(
    "order", "natural", {"natural, search or a reordering", is_order, {"natural", "degree"}},
    "order in which slices take rows; search: natural or match, by the sectors of B that blocks of "
    "rows gather");

// Mean nonzeros of a row from which an order is searched for in products with a vector. Matrices of
// shorter rows gain less than they lose where C is written (docs/decisions/jagged-slices.md).
inline constexpr int kLeastOrderedRow = 12;

// Rows of B that a sector holds, at least one. A vector has no gaps.
inline std::int64_t rows_of_sector(std::int64_t n, ElementType b_type) {
  constexpr std::size_t kSectorBytes = 32;  // of the L2 cache
  const std::size_t row =
      n == 1 ? bytes_of(b_type) : make_b_view(1, n, Layout::row_major, b_type).bytes();
  return static_cast<std::int64_t>(std::max<std::size_t>(1, kSectorBytes / row));
}

// What blocks of rows gather in an order, as gathered_sector_share has it, for this many rows of a
// sector. Adds its time, and that of the order.
using GatheredShare =
    std::function<double(const std::string& order, std::int64_t rows_of_sector, StageTimer&)>;

// Chooses the order for each N. What orders gather is kept for the next N.
class OrderChooser {
 public:
  OrderChooser(const SparseOperand& a, const Options& options, GatheredShare gathered)
      : a_(a), order_(kOrder(options)), gathered_(std::move(gathered)) {}

  // In the order of matched rows a block of rows gathers fewer different sectors of B. In
  // exchange rows of C are not written side by side, which costs most if C is a vector. The
  // constants were measured on 107 matrices (docs/decisions/jagged-slices.md).
  std::string choose(std::int64_t n, StageTimer& stages) {
    constexpr double kLeastShare = 0.1;  // of natural order; below it no order is searched for
    constexpr double kMostLeft = 0.7, kMostLeftOfVector = 0.55;
    if (order_ != "search") return order_;
    const bool vector = n == 1;
    if (vector && a_.nnz() < kLeastOrderedRow * a_.m()) return "natural";
    if (!match::is_filled(static_cast<double>(a_.m()), static_cast<double>(a_.k()),
                          static_cast<double>(a_.nnz())))
      return "natural";
    const double natural = share("natural", n, stages);
    const bool gains =
        natural > kLeastShare &&
        share("match", n, stages) < (vector ? kMostLeftOfVector : kMostLeft) * natural;
    return gains ? "match" : "natural";
  }

 private:
  double share(const std::string& order, std::int64_t n, StageTimer& stages) {
    const std::int64_t rows = rows_of_sector(n, storage_type(a_.precision));
    const auto& found =
        shares_.get({order, rows}, [&](StageTimer& cost) { return gathered_(order, rows, cost); });
    stages.add(found.cost);
    return found.part;
  }

  SparseOperand a_;
  std::string order_;
  GatheredShare gathered_;
  SharedParts<std::pair<std::string, std::int64_t>, double> shares_;  // by rows of a sector, too
};

}  // namespace spmmbench::jagged
