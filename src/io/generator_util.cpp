#include "io/generator_util.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "core/parallel.hpp"
#include "io/file.hpp"
#include "spmmbench/error.hpp"

namespace spmmbench {

Columns sample_distinct(RandomStream& random, std::int64_t range, std::int64_t count) {
  // Beyond half, choose what is left out: the expected number of draws stays below 1.4 * count.
  const bool complement = 2 * count > range;
  const auto wanted = static_cast<std::size_t>(complement ? range - count : count);
  Columns chosen;
  while (chosen.size() < wanted) {
    while (chosen.size() < wanted) chosen.push_back(static_cast<std::int32_t>(random.below(range)));
    std::sort(chosen.begin(), chosen.end());
    chosen.erase(std::unique(chosen.begin(), chosen.end()), chosen.end());
  }
  if (!complement) return chosen;
  Columns rest;
  rest.reserve(count);
  auto skip = chosen.begin();
  for (std::int32_t i = 0; i < range; ++i) {
    if (skip != chosen.end() && *skip == i) ++skip;
    else rest.push_back(i);
  }
  return rest;
}

std::vector<std::int32_t> random_permutation(std::int64_t count, std::uint64_t seed) {
  std::vector<std::pair<std::uint64_t, std::int32_t>> keyed(count);
  for (std::int64_t i = 0; i < count; ++i)
    keyed[i] = {hash_position(seed, i, 0), static_cast<std::int32_t>(i)};
  std::sort(keyed.begin(), keyed.end());
  std::vector<std::int32_t> order(count);
  for (std::int64_t i = 0; i < count; ++i) order[i] = keyed[i].second;
  return order;
}

namespace {

// Integral of x^power over [low, high].
double power_integral(double low, double high, double power) {
  return std::abs(power + 1) < 1e-9
             ? std::log(high / low)
             : (std::pow(high, power + 1) - std::pow(low, power + 1)) / (power + 1);
}

double power_law_mean(double low, double high, double exponent) {
  return power_integral(low, high, 1 - exponent) / power_integral(low, high, -exponent);
}

}  // namespace

PowerLaw::PowerLaw(double mean, double exponent, double high)
    : low_(0), high_(high), exponent_(exponent) {
  double below = high * 1e-12, above = high * (1 - 1e-9);
  if (!(mean < high) || power_law_mean(below, high, exponent) > mean)
    throw Error(fmt::format("no power law with exponent {} and largest value {} has mean {}",
                            exponent, high, mean));
  for (int step = 0; step < 200; ++step) {
    const double middle = 0.5 * (below + above);
    (power_law_mean(middle, high, exponent) < mean ? below : above) = middle;
  }
  low_ = 0.5 * (below + above);
}

double PowerLaw::at(double u) const {
  const double power = 1 - exponent_;
  if (std::abs(power) < 1e-9) return low_ * std::pow(high_ / low_, u);
  const double from = std::pow(low_, power), to = std::pow(high_, power);
  return std::clamp(std::pow(from + u * (to - from), 1 / power), low_, high_);
}

void require_entries(double expected, double bytes_of_entry) {
  constexpr double kLimit = 0x1p32;  // 32 GiB of columns and values
  if (!(expected <= kLimit))
    throw Error(
        fmt::format("about {:.3g} entries asked for, expected at most {:.3g}", expected, kLimit));
  const double bytes = expected * bytes_of_entry;
  if (const auto available = static_cast<double>(available_memory_bytes()); bytes > available)
    throw LacksMemory(fmt::format("about {:.3g} entries asked for, which need {}, {} available",
                                  expected, format_bytes(bytes), format_bytes(available)));
}

CsrMatrix pattern_from_rows(std::int64_t rows, std::int64_t cols,
                            const std::function<void(std::int64_t, Columns&)>& fill) {
  constexpr std::int64_t kChunk = 1024;
  const std::int64_t chunks = (rows + kChunk - 1) / kChunk;
  CsrMatrix out{rows, cols, std::vector<std::int64_t>(rows + 1), {}, {}};
  std::vector<Columns> parts(chunks);
  const auto make = [&](std::int64_t chunk) {
    Columns row_columns;
    for (std::int64_t r = chunk * kChunk; r < std::min(rows, (chunk + 1) * kChunk); ++r) {
      row_columns.clear();
      fill(r, row_columns);
      if (!std::is_sorted(row_columns.begin(), row_columns.end()))
        std::sort(row_columns.begin(), row_columns.end());
      const auto end = std::unique(row_columns.begin(), row_columns.end());
      out.row_ptr[r + 1] = end - row_columns.begin();
      parts[chunk].insert(parts[chunk].end(), row_columns.begin(), end);
    }
  };
  ExceptionTrap trap;
#pragma omp parallel for schedule(dynamic)
  for (std::int64_t chunk = 0; chunk < chunks; ++chunk)
    if (!trap.caught()) trap.run([&] { make(chunk); });
  trap.rethrow();
  std::partial_sum(out.row_ptr.begin(), out.row_ptr.end(), out.row_ptr.begin());
  out.col_idx.resize(out.nnz());
#pragma omp parallel for schedule(static)
  for (std::int64_t chunk = 0; chunk < chunks; ++chunk) {
    std::copy(parts[chunk].begin(), parts[chunk].end(),
              out.col_idx.begin() + out.row_ptr[chunk * kChunk]);
    parts[chunk] = {};
  }
  out.values.assign(out.nnz(), 1.0F);
  return out;
}

CsrMatrix pattern_from_edges(std::int64_t rows, std::int64_t cols, std::vector<Edge> edges,
                             bool symmetric) {
  std::vector<std::int64_t> start(rows + 1);
  for (const Edge& edge : edges) {
    ++start[edge.row + 1];
    if (symmetric && edge.row != edge.col) ++start[edge.col + 1];
  }
  std::partial_sum(start.begin(), start.end(), start.begin());
  Columns columns(start[rows]);
  // start[r] moves from the start of row r to its end, which is the start of row r + 1.
  for (const Edge& edge : edges) {
    columns[start[edge.row]++] = edge.col;
    if (symmetric && edge.row != edge.col) columns[start[edge.col]++] = edge.row;
  }
  edges = {};
  std::copy_backward(start.begin(), start.end() - 1, start.end());
  start[0] = 0;
  return pattern_from_rows(rows, cols, [&](std::int64_t r, Columns& out) {
    out.insert(out.end(), columns.begin() + start[r], columns.begin() + start[r + 1]);
  });
}

CsrMatrix symmetrized(CsrMatrix matrix) {
  const std::int64_t rows = matrix.rows, cols = matrix.cols;
  std::vector<Edge> edges;
  edges.reserve(matrix.nnz());
  for (std::int64_t r = 0; r < matrix.rows; ++r)
    for (std::int64_t e = matrix.row_ptr[r]; e < matrix.row_ptr[r + 1]; ++e)
      edges.push_back({static_cast<std::int32_t>(r), matrix.col_idx[e]});
  matrix = {};
  return pattern_from_edges(rows, cols, std::move(edges), true);
}

CsrMatrix relabel(const CsrMatrix& matrix, const std::vector<std::int32_t>& new_index) {
  std::vector<std::int32_t> old_index(new_index.size());
  for (std::size_t v = 0; v < new_index.size(); ++v)
    old_index[new_index[v]] = static_cast<std::int32_t>(v);
  return pattern_from_rows(matrix.rows, matrix.cols, [&](std::int64_t r, Columns& out) {
    const std::int64_t v = old_index[r];
    for (std::int64_t e = matrix.row_ptr[v]; e < matrix.row_ptr[v + 1]; ++e)
      out.push_back(new_index[matrix.col_idx[e]]);
  });
}

std::vector<std::int32_t> breadth_first_positions(const CsrMatrix& graph) {
  std::vector<std::int32_t> position(graph.rows, -1), queue;
  queue.reserve(graph.rows);
  std::vector<std::pair<std::int64_t, std::int32_t>> neighbours;
  for (std::int64_t root = 0; root < graph.rows; ++root) {
    if (position[root] >= 0) continue;
    position[root] = static_cast<std::int32_t>(queue.size());
    queue.push_back(static_cast<std::int32_t>(root));
    for (auto head = static_cast<std::size_t>(position[root]); head < queue.size(); ++head) {
      const std::int32_t v = queue[head];
      neighbours.clear();
      for (std::int64_t e = graph.row_ptr[v]; e < graph.row_ptr[v + 1]; ++e)
        if (position[graph.col_idx[e]] < 0)
          neighbours.emplace_back(graph.row_length(graph.col_idx[e]), graph.col_idx[e]);
      std::sort(neighbours.begin(), neighbours.end());
      for (const auto& [degree, neighbour] : neighbours) {
        position[neighbour] = static_cast<std::int32_t>(queue.size());
        queue.push_back(neighbour);
      }
    }
  }
  return position;
}

void draw_values(CsrMatrix& matrix, std::uint64_t seed) {
  const std::uint64_t stream = stream_seed(seed, kStreamA);
#pragma omp parallel for schedule(dynamic, 1024)
  for (std::int64_t r = 0; r < matrix.rows; ++r)
    for (std::int64_t e = matrix.row_ptr[r]; e < matrix.row_ptr[r + 1]; ++e)
      matrix.values[e] = uniform_at(stream, r, matrix.col_idx[e]);
  if (matrix.values64.empty()) return;
#pragma omp parallel for schedule(dynamic, 1024)
  for (std::int64_t r = 0; r < matrix.rows; ++r)
    for (std::int64_t e = matrix.row_ptr[r]; e < matrix.row_ptr[r + 1]; ++e)
      matrix.values64[e] = uniform64_at(stream, r, matrix.col_idx[e]);
}

CsrMatrix random_blocks(const BlockShape& shape, double kept_fraction, double fill,
                        std::uint64_t seed) {
  const std::int64_t grid_rows = (shape.rows + shape.block_rows - 1) / shape.block_rows;
  const std::int64_t grid_cols = (shape.cols + shape.block_cols - 1) / shape.block_cols;
  const auto kept = std::llround(kept_fraction * static_cast<double>(grid_rows * grid_cols));
  // The last blocks may be cut, so the mean block is smaller than the whole ones.
  require_entries(static_cast<double>(kept) / static_cast<double>(grid_rows * grid_cols) *
                  static_cast<double>(shape.rows) * static_cast<double>(shape.cols) * fill);

  // The remainder's extra blocks go to randomly chosen block rows.
  RandomStream spread(stream_seed(seed, 1), 0);
  const Columns extra = sample_distinct(spread, grid_rows, kept % grid_rows);
  std::vector<Columns> kept_blocks(grid_rows);
  ExceptionTrap trap;
#pragma omp parallel for schedule(dynamic, 64)
  for (std::int64_t i = 0; i < grid_rows; ++i) {
    RandomStream random(stream_seed(seed, 2), i);
    const bool one_more = std::binary_search(extra.begin(), extra.end(), i);
    trap.run([&] {
      kept_blocks[i] = sample_distinct(random, grid_cols, kept / grid_rows + (one_more ? 1 : 0));
    });
  }
  trap.rethrow();
  return pattern_from_rows(shape.rows, shape.cols, [&](std::int64_t r, Columns& out) {
    RandomStream random(stream_seed(seed, 3), r);
    for (const std::int64_t block : kept_blocks[r / shape.block_rows]) {
      const std::int64_t end = std::min(shape.cols, (block + 1) * shape.block_cols);
      for (std::int64_t c = block * shape.block_cols; c < end; ++c)
        if (fill >= 1 || random.chance(fill)) out.push_back(static_cast<std::int32_t>(c));
    }
  });
}

}  // namespace spmmbench
