#include "multi/local_product.hpp"

#include <utility>

#include "verify/bound.hpp"
#include "verify/reference.hpp"

namespace spmmbench {
namespace {

ExactTraits traits_of(const KernelInfo& info, Precision precision) {
  return {.binary = info.binary,
          .sum_bits = sum_bits(info, precision),
          .packed = info.form.packed,
          .precision = precision};
}

}  // namespace

LocalA::LocalA(CsrMatrix a, Precision precision, Device& device)
    : a_(std::move(a)), precision_(precision), orders_(make_row_orders(a_, {"none", {}})) {
  if (device.info().kind == DeviceKind::cuda) resident_.emplace(a_, precision, device);
  checksum_ = checksum_of_a(operand(), device);
}

SparseOperand LocalA::operand() const {
  SparseOperand operand;
  operand.a = &a_;
  operand.precision = precision_;
  operand.orders = orders_.get();
  operand.on_device = resident_ ? &resident_->view() : nullptr;
  return operand;
}

LocalProduct::LocalProduct(const LocalA& a, const KernelChoice& choice, const Shape& shape,
                           std::span<const std::int32_t> rows, std::uint64_t seed, Device& device)
    : operands_(make_operands(a.csr(), shape.n, a.operand().precision, shape.c_type, shape.layout,
                              nullptr, seed, device, choice.kernel->info().form, rows)),
      reference_(make_reference(a.csr(), {}, operands_.b, device)),
      exact_(a.csr(), {}, nullptr, seed, traits_of(choice.info(), a.operand().precision)) {
  static_cast<SparseOperand&>(input_.problem) = a.operand();
  static_cast<Shape&>(input_.problem) = shape;
  input_.problem.ld_b = operands_.b.ld;
  input_.problem.ld_c = operands_.c.ld;
  input_.problem.options = choice.options;
  input_.choice = &choice;
  input_.prepared = &prepared_;
  input_.device = &device;
  input_.operands = &operands_;
  input_.reference = reference_.get();
  input_.a_checksum = a.checksum();
  input_.exact = &exact_;
  input_.compulsory_bytes = compulsory_bytes(a.csr(), shape.n, a.operand().precision, shape.c_type);
  input_.bound_us = input_.compulsory_bytes / device.copy_bytes_per_second() * 1e6;
}

bool LocalProduct::run(const SampleLimits& limits, ResultRow& row) {
  return run_case(input_, limits, row);
}

std::unique_ptr<Plan> LocalProduct::bind() {
  prepared_.exact_a.reset();
  exact_.release_memory();
  StageTimer not_counted;  // the row has the stages of the plan that was measured
  std::unique_ptr<Plan> plan = prepared_.kernel_a->bind(input_.problem.shape(), not_counted);
  plan->settle(not_counted);
  plan->inspect_b(operands_.b, not_counted);
  input_.device->synchronize();
  return plan;
}

CsrMatrix with_lattice_of_whole(CsrMatrix part, std::int64_t first_row,
                                std::span<const std::int32_t> original, const Lattice& lattice) {
#pragma omp parallel for schedule(dynamic, 1024)
  for (std::int64_t row = 0; row < part.rows; ++row)
    for (std::int64_t e = part.row_ptr[row]; e < part.row_ptr[row + 1]; ++e) {
      const double value = lattice.a(first_row + row, original[part.col_idx[e]]);
      part.values[e] = static_cast<float>(value);
      if (!part.values64.empty()) part.values64[e] = value;
    }
  return part;
}

}  // namespace spmmbench
