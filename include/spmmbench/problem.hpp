#pragma once
// One product C[M,N] = A[M,K] * B[K,N] as every kernel sees it.

#include <cstdint>
#include <span>

#include "spmmbench/device.hpp"
#include "spmmbench/device_csr.hpp"
#include "spmmbench/matrix.hpp"
#include "spmmbench/precision.hpp"
#include "spmmbench/reordering.hpp"
#include "spmmbench/spec.hpp"

namespace spmmbench {

struct MatrixFeatures;  // src/select/features.hpp

// A as a kernel gets it.
struct SparseOperand {
  // Its values already rounded to `precision`; in fp64 they are values64. Outlives everything
  // prepared from it. A lazy one is copied from `on_device` when it is first read, so that a kernel
  // that builds on the device does not read it.
  HostCsr a = {};
  // Row i of `a` is row row_ids[i] of C. Empty means the identity. Only kernels whose info says
  // `writes_row_ids` are given any.
  std::span<const std::int32_t> row_ids = {};
  Precision precision = Precision::fp32;
  // For kernels that choose a row order themselves. Null only in a call of `supports`.
  RowOrders* orders = nullptr;
  // The caller's estimates of `a`, which kernels then need not make. They outlive everything
  // prepared from this. Null where the caller has made none.
  const MatrixFeatures* features = nullptr;
  // The same matrix where it lies in the memory of the device that it is prepared for, else null.
  // Outlives everything prepared from it.
  const DeviceCsr* on_device = nullptr;
  // Whether a row order may be sought that takes long to find and gains over many products.
  bool thorough = true;

  std::int64_t m() const { return on_device != nullptr ? on_device->rows : a->rows; }
  std::int64_t k() const { return on_device != nullptr ? on_device->cols : a->cols; }
  float scale() const { return on_device != nullptr ? on_device->scale : a->scale; }
  std::int64_t nnz() const { return on_device != nullptr ? on_device->nnz : a->nnz(); }
};

// What a plan is bound to: B is K x n, C is M x n.
struct Shape {
  std::int64_t n = 0;
  ElementType c_type = ElementType::f32;
  Layout layout = Layout::row_major;  // of B and C
  std::int64_t ld_b = 0, ld_c = 0;    // of every launch; 0: not known when the plan is bound
};

// A, shape and options together, as `supports` gets them.
struct Problem : SparseOperand, Shape {
  Options options;  // the kernel's own

  const SparseOperand& operand() const { return *this; }
  const Shape& shape() const { return *this; }
};

}  // namespace spmmbench
