#pragma once
// A product whose time is estimated, and amounts of work that several kernels have in common. Where
// no other unit is named an amount is the microseconds that the work takes at the device's rates,
// so that an ideal kernel has the factor 1.

#include <cstdint>

#include "select/device_model.hpp"
#include "select/features.hpp"
#include "spmmbench/precision.hpp"
#include "spmmbench/problem.hpp"

namespace spmmbench {

// It holds what it is made from, so that this may be a temporary.
struct Product {
  Product(const MatrixFeatures& features, const Shape& shape, Precision of_values,
          const DeviceModel& model);

  MatrixFeatures f;
  std::int64_t n;
  Layout layout;  // of B and C
  Precision precision;
  DeviceModel device;
  double columns;      // n
  double value_bytes;  // of A and B
  double row_bytes;    // of a row of B
  double b_bytes;      // of rows that A has nonzeros for, at most
  double c_bytes;
  double entries;  // of A, zeros included

  double memory_us(double bytes) const { return bytes / device.memory_bytes_per_us; }
  // The share of this many bytes that the L2 cache cannot hold while other data streams through it.
  double spilled(double bytes) const;
  // A in a format of this many bytes: the time for the part of it that every launch reads from
  // memory, because the L2 cache cannot hold A, B and C.
  double spill_us(double bytes) const {
    return memory_us(bytes * spilled(bytes + b_bytes + c_bytes));
  }
  // Hundreds on each multiprocessor, so that all factors are of a similar size.
  double per_sm(double count) const { return count / device.sm_count / 100; }
  bool is_vector() const { return n == 1; }
};

// Amounts of a call.
namespace amounts {

inline constexpr double kSectorBytes = 32;  // of the L2 cache
inline constexpr double kTileOfC = 128;     // rows and columns of one in a dense product

double launch(const Product&);           // 1: the fixed cost of a launch
double a_csr(const Product&);            // A in CSR, from memory
double b(const Product&);                // B once, from memory
double c(const Product&);                // C once, to memory, in fp32, or fp64 for itself
double by_rows(const Product&);          // column-major B to rows and C back (common/by_rows.hpp)
double spill(const Product&);            // what the L2 cache cannot hold of A, B and C, from memory
double gather_rows(const Product&);      // a row of B per nonzero, from the L2 cache
double gather_distinct(const Product&);  // the same, once for 8 rows of A that have the column
double nonzeros(const Product&);         // times groups of 256 bytes of B, 100 per multiprocessor
double loads(const Product&);  // nonzeros times groups of 16 bytes of B, 100 per multiprocessor
double rows(const Product&);   // times groups of 256 bytes of B, 100 per multiprocessor
double longest_row(const Product&);  // thousands of nonzeros, 4 at most
double variation(const Product&);    // of the row lengths, 3 at most
double uneven_rows(const Product&);  // gather_rows times the variation, of which 2 counts at most
double mean_row(const Product&);     // hundreds of nonzeros, 2.56 at most
double dense_flops(const Product&);  // the product with A's zeros
double dense_a(const Product&);      // A with its zeros, from memory
double dense_spill(const Product&);  // what the L2 cache cannot hold of that A and of all of B
double dense_depth(
    const Product&);               // thousands of columns that one tile of the dense product walks
double dense_odd(const Product&);  // the same where a line of A or B is no multiple of 16 bytes
double dense_a_odd(const Product&);  // dense_a in the same case

}  // namespace amounts

// Amounts of preparation.
namespace prepare_amounts {

double constant(const Product&);  // 1
double nonzeros(const Product&);  // millions
double rows(const Product&);      // millions
double dense(const Product&);     // megabytes of A with its zeros
// What the copy of A in CSR to the device takes, with which all kernels begin that are prepared
// there.
double copy_of_a_ms(const Product&);

}  // namespace prepare_amounts

// The share of gathers in natural order that is left once rows are reordered.
double left_by_order(const MatrixFeatures& features);
// From 0 to 1: how nearly rows that were found by one column have all columns in common. There are
// then enough such rows to fill windows, whose tiles an order makes as few as their gathers.
double equal_rows(const MatrixFeatures& features);
// Whether rows share more columns than random rows do.
bool rows_overlap(const MatrixFeatures& features);
// Deviation of row lengths over their mean, up to which rows are about as long as one another.
inline constexpr double kAlikeRows = 0.5;

}  // namespace spmmbench
