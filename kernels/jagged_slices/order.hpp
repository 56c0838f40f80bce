#pragma once
// Chooses the order in which slices take the rows of A.

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include "format/gathered_sectors.hpp"
#include "select/features.hpp"
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

// Rows of B that a sector holds, at least one. A vector has no gaps.
inline std::int64_t rows_of_sector(std::int64_t n, ElementType b_type) {
  constexpr std::size_t kSectorBytes = 32;  // of the L2 cache
  const std::size_t row =
      n == 1 ? bytes_of(b_type) : make_b_view(1, n, Layout::row_major, b_type).bytes();
  return static_cast<std::int64_t>(std::max<std::size_t>(1, kSectorBytes / row));
}

struct RowOrder {
  std::string name;
  const Permutation* rows;  // empty: natural
};

// Chooses the order for each N. Orders and what they gather are kept for the next N.
class OrderChooser {
 public:
  OrderChooser(const SparseOperand& a, const Options& options) : a_(a), order_(kOrder(options)) {}

  // In the order of matched rows a block of rows gathers fewer different sectors of B. In
  // exchange rows of C are not written side by side, which costs most if C is a vector. The
  // constants were measured on 107 matrices (docs/decisions/jagged-slices.md).
  RowOrder choose(std::int64_t n, StageTimer& stages) {
    constexpr double kLeastShare = 0.1;  // of natural order; below it no order is searched for
    constexpr double kMostLeft = 0.7, kMostLeftOfVector = 0.55;
    if (order_ != "search") return {order_, &a_.orders->get(order_, stages)};
    const bool vector = n == 1;
    if (vector && a_.nnz() < kLeastOrderedRow * a_.m())
      return {"natural", &a_.orders->get("natural", stages)};
    const Considered& natural = consider("natural", n, stages);
    if (natural.share > kLeastShare) {
      const Considered& matched = consider("match", n, stages);
      if (matched.share < (vector ? kMostLeftOfVector : kMostLeft) * natural.share)
        return {"match", matched.rows};
    }
    return {"natural", natural.rows};
  }

 private:
  struct Considered {
    const Permutation* rows;
    double share;  // see gathered_sector_share
  };

  const Considered& consider(const std::string& name, std::int64_t n, StageTimer& stages) {
    const std::int64_t rows = rows_of_sector(n, storage_type(a_.precision));
    const auto& found = considered_.get({name, rows}, [&](StageTimer& cost) {
      const Permutation& row_order = a_.orders->get(name, cost);
      const auto timed = cost.scope("compare");
      return Considered{&row_order, gathered_sector_share(*a_.a, row_order, rows)};
    });
    stages.add(found.cost);
    return found.part;
  }

  SparseOperand a_;
  std::string order_;
  // By order and rows of a sector.
  SharedParts<std::pair<std::string, std::int64_t>, Considered> considered_;
};

}  // namespace spmmbench::jagged
