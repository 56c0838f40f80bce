#pragma once
// Random and adversarial matrices for property tests.

#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "spmmbench/matrix.hpp"
#include "spmmbench/precision.hpp"
#include "spmmbench/random.hpp"

namespace spmmbench::testing {

inline CsrMatrix from_rows(std::int64_t cols, const std::vector<std::vector<std::int32_t>>& rows) {
  CsrMatrix out;
  out.rows = static_cast<std::int64_t>(rows.size());
  out.cols = cols;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    for (const std::int32_t c : rows[r]) {
      out.col_idx.push_back(c);
      out.values.push_back(uniform_at(7, r, static_cast<std::uint64_t>(c)));
    }
    out.row_ptr.push_back(static_cast<std::int64_t>(out.col_idx.size()));
  }
  return out;
}

// Every row draws up to `max_length` columns; about a quarter of the rows stay empty. `skew` > 0
// pulls columns towards 0 (hubs).
inline CsrMatrix random_matrix(std::int64_t rows, std::int64_t cols, int max_length, int skew,
                               std::uint64_t seed) {
  std::vector<std::vector<std::int32_t>> lists(rows);
  for (std::int64_t r = 0; r < rows; ++r) {
    const std::uint64_t draw = hash_position(seed, r, 0);
    if (draw % 4 == 0 || cols == 0) continue;
    std::set<std::int32_t> chosen;
    const auto length = static_cast<int>(draw / 4 % static_cast<std::uint64_t>(max_length + 1));
    for (int i = 0; i < length; ++i) {
      double u = (uniform_at(seed + 1, r, i) + 1) / 2;
      for (int s = 0; s < skew; ++s) u *= u;
      chosen.insert(static_cast<std::int32_t>(u * static_cast<double>(cols)));
    }
    lists[r].assign(chosen.begin(), chosen.end());
  }
  return from_rows(cols, lists);
}

// Points of a square, their rows shuffled: row i has the columns of point i * 37 and its
// neighbours.
inline CsrMatrix shuffled_grid(std::int32_t side) {
  const std::int32_t points = side * side;
  std::vector<std::vector<std::int32_t>> rows(points);
  for (std::int32_t i = 0; i < points; ++i) {
    const std::int32_t point = i * 37 % points;
    for (const std::int32_t column :
         {point - side - 1, point - side, point - side + 1, point - 1, point, point + 1,
          point + side - 1, point + side, point + side + 1})
      if (column >= 0 && column < points) rows[i].push_back(column);
  }
  return from_rows(points, rows);
}

// A graph with hubs, its vertices in random order: two of them are joined with a probability in
// proportion to the product of their weights, which fall from 300 to about 3.
inline CsrMatrix hub_graph(std::int32_t vertices) {
  std::vector<double> weight(vertices);
  double sum = 0;
  for (std::int32_t v = 0; v < vertices; ++v) {
    weight[v] = 300.0 / (1 + static_cast<double>(hash_position(5, v, 0) % 100));
    sum += weight[v];
  }
  std::vector<std::vector<std::int32_t>> rows(vertices);
  for (std::int32_t v = 0; v < vertices; ++v)
    for (std::int32_t w = 0; w < vertices; ++w)
      if ((uniform_at(6, v, w) + 1) / 2 < weight[v] * weight[w] / sum) rows[v].push_back(w);
  return from_rows(vertices, rows);
}

// With values that `precision` has, none of them zero.
inline CsrMatrix rounded(CsrMatrix matrix, Precision precision) {
  for (float& value : matrix.values) {
    value = round_to(precision, value);
    if (value == 0) value = 1;
  }
  return matrix;
}

// `percent` of the positions, drawn at random, with values that fp16 has.
inline CsrMatrix drawn(int rows, int cols, unsigned percent) {
  std::vector<std::vector<std::int32_t>> lists(rows);
  for (int row = 0; row < rows; ++row)
    for (int col = 0; col < cols; ++col)
      if (hash_position(3, row, col) % 100 < percent) lists[row].push_back(col);
  return rounded(from_rows(cols, lists), Precision::fp16);
}

// Shapes that break formats and orderings: named so that a failure says which.
inline std::vector<std::pair<std::string, CsrMatrix>> adversarial_matrices() {
  std::vector<std::pair<std::string, CsrMatrix>> out;
  const auto range = [](std::int32_t from, std::int32_t to, std::int32_t step) {
    std::vector<std::int32_t> list;
    for (std::int32_t c = from; c < to; c += step) list.push_back(c);
    return list;
  };
  out.emplace_back("no rows", from_rows(5, {}));
  out.emplace_back("no columns", from_rows(0, {{}, {}, {}}));
  out.emplace_back("no nonzeros", from_rows(9, std::vector<std::vector<std::int32_t>>(100)));
  out.emplace_back("one entry", from_rows(1, {{0}}));
  out.emplace_back("one column", from_rows(1, std::vector<std::vector<std::int32_t>>(77, {0})));
  std::vector<std::vector<std::int32_t>> hub(1000);
  hub[500] = range(0, 5000, 1);
  out.emplace_back("one row holds everything", from_rows(5000, hub));
  for (std::size_t r = 0; r < hub.size(); ++r)
    if (r != 500) hub[r] = {static_cast<std::int32_t>(r * 5)};
  out.emplace_back("one huge row among single entries", from_rows(5000, hub));
  std::vector<std::vector<std::int32_t>> far(2000);
  far[0] = {0}, far[300] = {1, 2}, far[1999] = {63, 64, 127};
  out.emplace_back("rows far apart", from_rows(128, far));
  out.emplace_back("dense",
                   from_rows(67, std::vector<std::vector<std::int32_t>>(41, range(0, 67, 1))));
  std::vector<std::vector<std::int32_t>> diagonal(333), wide(13);
  for (std::int32_t r = 0; r < 333; ++r) diagonal[r] = {r};
  out.emplace_back("diagonal", from_rows(333, diagonal));
  for (std::int32_t r = 0; r < 13; ++r) wide[r] = range(r, 100000, 97 + r);
  out.emplace_back("wide", from_rows(100000, wide));
  out.emplace_back("tall", random_matrix(70000, 12, 2, 0, 3));
  out.emplace_back("square", random_matrix(513, 513, 20, 0, 4));
  out.emplace_back("hubs", random_matrix(3001, 2000, 40, 3, 5));
  out.emplace_back("short rows", random_matrix(1500, 900, 3, 1, 6));
  return out;
}

}  // namespace spmmbench::testing
