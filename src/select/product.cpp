#include "select/product.hpp"

#include <algorithm>
#include <cmath>

namespace spmmbench {

Product::Product(const MatrixFeatures& features, const Shape& shape, Precision of_values,
                 const DeviceModel& model)
    : f(features),
      n(shape.n),
      layout(shape.layout),
      precision(of_values),
      device(model),
      columns(static_cast<double>(n)),
      value_bytes(static_cast<double>(bytes_of(storage_type(precision)))),
      row_bytes(static_cast<double>(
          make_b_view(1, n, Layout::row_major, storage_type(precision)).bytes())),
      b_bytes(std::min(columns_in_use(f), f.nnz) * row_bytes),
      c_bytes(f.rows * columns *
              static_cast<double>(bytes_of(type_of_c(precision, ElementType::f32)))),
      entries(f.rows * f.cols) {}

double Product::spilled(double bytes) const {
  constexpr double kL2Share = 0.6;
  return std::max(0.0, 1 - kL2Share * device.l2_bytes / std::max(bytes, 1.0));
}

namespace amounts {
namespace {

constexpr double kRowPieceBytes = 256, kLoadBytes = 16;

double csr_bytes(const Product& p) { return p.f.nnz * (4 + p.value_bytes) + p.f.rows * 8; }
double gathered_bytes(const Product& p) {
  return p.f.nnz * std::ceil(p.row_bytes / kSectorBytes) * kSectorBytes;
}
double pieces(const Product& p) { return std::ceil(p.row_bytes / kRowPieceBytes); }

// With lines that begin between two pieces of 16 bytes cuBLAS has narrower loads.
bool odd(const Product& p) {
  const double aligned = kLoadBytes / p.value_bytes;
  return std::fmod(p.columns, aligned) != 0 || std::fmod(p.f.cols, aligned) != 0;
}

// The share of the rate of fp16, on an H100 and an H200: fp64 on tensor cores is as fast as fp32
// without them.
double share_of_flops(Precision precision) {
  constexpr double kOfTf32 = 0.5, kOfWider = 0.068;  // 67 of 989 TFLOP/s
  if (precision == Precision::tf32) return kOfTf32;
  return precision == Precision::fp32 || precision == Precision::fp64 ? kOfWider : 1;
}

}  // namespace

double launch(const Product&) { return 1; }
double a_csr(const Product& p) { return p.memory_us(csr_bytes(p)); }
double b(const Product& p) { return p.memory_us(p.b_bytes); }
double c(const Product& p) { return p.memory_us(p.c_bytes); }
double by_rows(const Product& p) {
  // Measured on an H200 with N = 8 to 128.
  constexpr double kLaunchesUs = 4;  // of two
  constexpr double kShareOfRate = 0.65;
  if (p.layout == Layout::row_major || p.is_vector()) return 0;
  return kLaunchesUs + p.memory_us(2 * (p.f.cols * p.row_bytes + p.c_bytes)) / kShareOfRate;
}
double spill(const Product& p) {
  const double bytes = csr_bytes(p) + p.b_bytes + p.c_bytes;
  return p.memory_us(bytes * p.spilled(bytes));
}
double gather_rows(const Product& p) { return gathered_bytes(p) / p.device.gather_bytes_per_us; }
double gather_distinct(const Product& p) { return gather_rows(p) * p.f.gathered_8; }
double nonzeros(const Product& p) { return p.per_sm(p.f.nnz * pieces(p)); }
double loads(const Product& p) { return p.per_sm(p.f.nnz * std::ceil(p.row_bytes / kLoadBytes)); }
double rows(const Product& p) { return p.per_sm(p.f.rows * pieces(p)); }

// What can grow without bound is capped.
double longest_row(const Product& p) {
  constexpr double kMost = 4000, kUnit = 1000;  // nonzeros
  return std::min(p.f.max_row, kMost) / kUnit;
}
double variation(const Product& p) {
  constexpr double kMost = 3;
  return std::min(p.f.cv_row, kMost);
}
double uneven_rows(const Product& p) {
  constexpr double kMost = 2;
  return gather_rows(p) * std::min(p.f.cv_row, kMost);
}
double mean_row(const Product& p) {
  constexpr double kMost = 256, kUnit = 100;  // nonzeros
  return std::min(p.f.mean_row, kMost) / kUnit;
}

double dense_flops(const Product& p) {
  return 2 * p.entries * p.columns / (p.device.dense_flops_per_us * share_of_flops(p.precision));
}
double dense_a(const Product& p) { return p.memory_us(p.entries * p.value_bytes); }
double dense_spill(const Product& p) {
  const double a_bytes = p.entries * p.value_bytes, all_of_b = p.f.cols * p.row_bytes;
  return p.memory_us((a_bytes + all_of_b) * p.spilled(a_bytes + all_of_b + p.c_bytes));
}

// The depth of the busiest multiprocessor. Where at most a quarter of the multiprocessors has a
// tile, cuBLAS splits the columns beyond 2304: 512 rows take 4.9 us at 2048 columns and 6.0 at 4608
// (H200, N = 64, fp16). Very many columns are split among all multiprocessors: 64 rows take 95 us
// at a million columns, about what memory takes.
double dense_depth(const Product& p) {
  constexpr double kFew = 0.25, kUnsplit = 2304, kSplit = 3, kMost = 4 * kUnsplit, kUnit = 1000;
  const double tiles_of_c = std::ceil(p.f.rows / kTileOfC) * std::ceil(p.columns / kTileOfC);
  double columns = p.f.cols;
  if (tiles_of_c <= kFew * p.device.sm_count) {
    const double of_all = columns * tiles_of_c / p.device.sm_count;
    columns = std::min(columns, kUnsplit) + std::max(0.0, columns - kUnsplit) / kSplit;
    columns = std::min(columns, std::max(kMost, of_all));
  }
  return std::ceil(tiles_of_c / p.device.sm_count) * columns / kUnit;
}
double dense_odd(const Product& p) { return odd(p) ? dense_depth(p) : 0; }
double dense_a_odd(const Product& p) { return odd(p) ? dense_a(p) : 0; }

}  // namespace amounts

namespace prepare_amounts {

constexpr double kMillion = 1e6;
double constant(const Product&) { return 1; }
double nonzeros(const Product& p) { return p.f.nnz / kMillion; }
double rows(const Product& p) { return p.f.rows / kMillion; }
double dense(const Product& p) { return p.entries * p.value_bytes / kMillion; }

// As measured on the host of the recorded H200. Where A is there already, or is copied for all
// candidates, this cancels out.
double copy_of_a_ms(const Product& p) {
  constexpr double kOnceMs = 0.065, kOfNonzeros = 0.97, kOfRows = 0.41;  // ms of 10^6
  return kOnceMs + kOfNonzeros * nonzeros(p) + kOfRows * rows(p);
}

}  // namespace prepare_amounts

namespace {

double alike_rows(const MatrixFeatures& f) { return f.row_overlap / std::max(1.0, f.cv_row); }

}  // namespace

// Windows of 8 rows gather the fewer rows of B per nonzero the more of a row's columns similar rows
// have, less clearly where rows differ in length. The constants lose least on matrices that were
// left out of the fit (docs/decisions/selection-model.md).
double left_by_order(const MatrixFeatures& f) {
  constexpr double kGain = 1.25, kLeastShare = 0.35, kOfEqualRows = 1.0 / 8;
  if (f.gathered_8 == 0) return 1;
  const double least = std::lerp(kLeastShare, kOfEqualRows, equal_rows(f));
  const double left = std::max(least, 1 - kGain * alike_rows(f));
  return std::min(f.gathered_8, left) / f.gathered_8;
}

double equal_rows(const MatrixFeatures& f) {
  constexpr double kFrom = 0.9;  // a choice (docs/decisions/selection-model.md)
  return std::max(0.0, alike_rows(f) - kFrom) / (1 - kFrom);
}

// Random rows share this part of their columns: their mean length over the columns that any row
// has. Where rows overlap less, an order of them rarely gains (docs/decisions/selection-model.md).
bool rows_overlap(const MatrixFeatures& f) {
  constexpr double kLeast = 0.02, kOfRandomRows = 2;
  return f.row_overlap >= kLeast + kOfRandomRows * f.mean_row / columns_in_use(f);
}

}  // namespace spmmbench
