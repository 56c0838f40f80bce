#include "select/predict.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "select/coefficients.hpp"

namespace spmmbench {
namespace {

// What was fitted for fp16 serves bf16, which moves the same bytes through the same units.
Precision fitted_precision(Precision precision) {
  return precision == Precision::bf16 ? Precision::fp16 : precision;
}

// 100 of them on each multiprocessor count as one unit, so that coefficients are of one order.
double per_sm(double count, const DeviceModel& device) { return count / device.sm_count / 100; }

// Windows of the height whose gathers and tiles cost least. A tile costs a quarter of its unit
// beside the gathers, and taller windows hold more registers (kernels/window).
struct WindowCost {
  double gather = 0, tiles = 0;
};
WindowCost best_windows(const MatrixFeatures& f, double row_bytes, const DeviceModel& device) {
  constexpr double kTileUs = 0.25;
  constexpr std::array<double, 3> kHeight = {8, 16, 32}, kSlowdown = {1, 1.25, 1.9};
  const std::array<double, 3> gathered = {f.gathered_8, f.gathered_16, f.gathered_32};
  const std::array<double, 3> stored = {f.stored_8, f.stored_16, f.stored_32};
  const double strips = std::ceil(row_bytes / 128);
  WindowCost best;
  double least = std::numeric_limits<double>::infinity();
  for (std::size_t h = 0; h < kHeight.size(); ++h) {
    const double gather = gathered[h] * f.nnz * row_bytes / device.gather_bytes_per_us;
    const double tiles =
        per_sm(std::max(stored[h] * f.nnz / 16, f.rows / kHeight[h]) * strips, device);
    const double cost = (gather + kTileUs * tiles) * kSlowdown[h];
    if (cost >= least) continue;
    least = cost;
    best = {gather, tiles * kSlowdown[h]};
  }
  return best;
}

// Thousands of columns that a tile of C walks, one after the other, on the busiest multiprocessor.
// Where at most a quarter of these has a tile, cuBLAS splits what is beyond 2304 columns: 512 rows
// take 4.9 us at 2048 columns and 6.0 at 4608 (H200, N = 64, fp16).
double dense_depth(const MatrixFeatures& f, double tiles_of_c, const DeviceModel& device) {
  constexpr double kFew = 0.25, kUnsplit = 2304, kSplit = 3;
  double columns = f.cols;
  if (tiles_of_c <= kFew * device.sm_count)
    columns = std::min(columns, kUnsplit) + std::max(0.0, columns - kUnsplit) / kSplit;
  return std::ceil(tiles_of_c / device.sm_count) * columns / 1000;
}

}  // namespace

Terms terms_of(const MatrixFeatures& f, std::int64_t n, Precision precision,
               const DeviceModel& device) {
  // The part of the L2 cache that B can hold while A and C stream past it.
  constexpr double kL2Share = 0.6;
  constexpr double kSectorBytes = 32, kPieceBytes = 256, kTile = 128;
  constexpr double kAligned = 8;  // elements: 16 bytes in fp16, below which cuBLAS loads narrower
  const auto columns = static_cast<double>(n);
  const auto value_bytes = static_cast<double>(bytes_of(storage_type(precision)));
  const double row_bytes = std::ceil(columns * value_bytes / 16) * 16;
  const double b_bytes = f.cols * row_bytes;
  const double gathered = f.nnz * std::ceil(row_bytes / kSectorBytes) * kSectorBytes;
  const double spilled = std::max(0.0, 1 - kL2Share * device.l2_bytes / std::max(b_bytes, 1.0));
  const double pieces = std::ceil(row_bytes / kPieceBytes);
  const double tiles_of_c = std::ceil(f.rows / kTile) * std::ceil(columns / kTile);
  const double waves = std::ceil(tiles_of_c / device.sm_count);
  const WindowCost windows = best_windows(f, row_bytes, device);
  Terms t;
  t.a_csr = (f.nnz * (4 + value_bytes) + f.rows * 8) / device.memory_bytes_per_us;
  t.b = b_bytes / device.memory_bytes_per_us;
  t.c = f.rows * columns * 4 / device.memory_bytes_per_us;
  t.gather_rows = gathered / device.gather_bytes_per_us;
  t.gather_spill = gathered * spilled / device.memory_bytes_per_us;
  t.gather_window = windows.gather;
  t.tiles = windows.tiles;
  t.nonzeros = per_sm(f.nnz * pieces, device);
  t.rows = per_sm(f.rows * pieces, device);
  t.longest_row = std::min(f.max_row, 4000.0) / 1000;
  t.variation = std::min(f.cv_row, 3.0);
  t.dense_flops = waves * device.sm_count * kTile * kTile * 2 * f.cols / device.dense_flops_per_us;
  t.block_steps =
      std::ceil(std::ceil(f.rows / kTile) * std::ceil(columns / (2 * kTile)) / device.sm_count) *
      f.band_blocks;
  t.dense_depth = dense_depth(f, tiles_of_c, device);
  t.dense_odd =
      std::fmod(columns, kAligned) != 0 || std::fmod(f.cols, kAligned) != 0 ? t.dense_depth : 0;
  t.dense_a = f.rows * f.cols * value_bytes / device.memory_bytes_per_us;
  return t;
}

std::array<std::pair<const char*, double>, Terms::kCount> named(const Terms& t) {
  return {{{"launch", t.launch},
           {"a_csr", t.a_csr},
           {"b", t.b},
           {"c", t.c},
           {"gather_rows", t.gather_rows},
           {"gather_spill", t.gather_spill},
           {"gather_window", t.gather_window},
           {"tiles", t.tiles},
           {"nonzeros", t.nonzeros},
           {"rows", t.rows},
           {"longest_row", t.longest_row},
           {"variation", t.variation},
           {"dense_flops", t.dense_flops},
           {"dense_a", t.dense_a},
           {"block_steps", t.block_steps},
           {"dense_depth", t.dense_depth},
           {"dense_odd", t.dense_odd}}};
}

std::optional<Prediction> predict(std::string_view candidate, const MatrixFeatures& features,
                                  std::int64_t n, Precision precision, const DeviceModel& device) {
  for (const Coefficients& row : kCoefficients) {
    if (row.candidate != candidate || row.precision != fitted_precision(precision) ||
        n < row.least_n || n > row.most_n)
      continue;
    Prediction out;
    const auto terms = named(terms_of(features, n, precision, device));
    for (int i = 0; i < Terms::kCount; ++i) out.us += row.us[i] * terms[i].second;
    const auto& prepare = row.prepare_ms;
    out.prepare_ms = prepare[0] + prepare[1] * features.nnz * 1e-6 +
                     prepare[2] * features.rows * 1e-6 +
                     prepare[3] * features.rows * features.cols * 1e-6;
    out.rank_us = out.us * row.margin;
    return out;
  }
  return std::nullopt;
}

std::vector<std::string> candidates(Precision precision) {
  std::vector<std::string> out;
  for (const Coefficients& row : kCoefficients)
    if (row.precision == fitted_precision(precision) &&
        std::find(out.begin(), out.end(), row.candidate) == out.end())
      out.emplace_back(row.candidate);
  return out;
}

}  // namespace spmmbench
