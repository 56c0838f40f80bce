#include "measure/bench.hpp"

#include <map>
#include <mutex>

#include "io/sha256.hpp"
#include "measure/case.hpp"
#include "measure/summary.hpp"
#include "verify/bound.hpp"
#include "verify/reference.hpp"

namespace spmmbench {
namespace {

class ProductPlan final : public Plan {
 public:
  explicit ProductPlan(const Launch& launch) : launch_(launch) {}
  void launch(const DenseView& b, const DenseView& c, Stream stream) override {
    launch_(b, c, stream);
  }
  PlanReport report() const override { return {}; }

 private:
  const Launch& launch_;
};

class PreparedProduct final : public Prepared {
 public:
  explicit PreparedProduct(Launch launch) : launch_(std::move(launch)) {}
  std::unique_ptr<Plan> bind(const Shape&, StageTimer&) override {
    return std::make_unique<ProductPlan>(launch_);
  }

 private:
  Launch launch_;
};

// The product as a kernel, for the A that it has.
class ProductKernel final : public Kernel {
 public:
  ProductKernel(const BroughtProduct& product, const CsrMatrix& a, const BenchSettings& settings,
                DeviceKind device)
      : product_(product), a_(a) {
    info_.name = product.name;
    info_.device = device;
    info_.min_compute_capability = 0;
    info_.precisions = {settings.precision};
    info_.c_types = {settings.shape.c_type};
    info_.layouts = {settings.shape.layout};
    info_.accumulation = product.accumulation;
    info_.ignores_stream = product.ignores_stream;
  }

  const KernelInfo& info() const override { return info_; }
  Support supports(const Problem&, const DeviceInfo&) const override { return Support::yes(0); }
  std::unique_ptr<Prepared> prepare(const SparseOperand& a, const Options&, Device&,
                                    StageTimer&) const override {
    return std::make_unique<PreparedProduct>(a.a.get() == &a_ ? product_.launch
                                                              : product_.with_values(*a.a));
  }

 private:
  const BroughtProduct& product_;
  const CsrMatrix& a_;
  KernelInfo info_;
};

SparseOperand operand_of(const CsrMatrix& a) {
  SparseOperand operand;
  operand.a = &a;
  return operand;
}

// Measured once in a process, so that the bounds of all its benches can be compared.
double copy_rate_of(Device& device) {
  static std::mutex mutex;
  static std::map<std::string, double> rates;  // by the device's UUID, bytes per second
  const std::lock_guard lock(mutex);
  double& rate = rates[device.info().uuid];
  if (rate == 0) rate = device.copy_bytes_per_second();
  return rate;
}

CsrMatrix rounded(CsrMatrix a, Precision precision) {
  for (float& value : a.values) value = round_to(precision, value);
  if (precision != Precision::fp64) a.values64 = {};
  return a;
}

}  // namespace

Bench::Bench(CsrMatrix a, BenchSettings settings, std::unique_ptr<Device> device)
    : settings_(std::move(settings)),
      summary_(summarise_matrix(a, settings_.matrix, {}, matrix_sha256(a, false))),
      a_(rounded(std::move(a), settings_.precision)),
      device_(std::move(device)),
      orders_(make_row_orders(a_, {"none", {}})),
      compulsory_bytes_(
          compulsory_bytes(a_, settings_.shape.n, settings_.precision, settings_.shape.c_type)),
      operands_(make_operands(a_, settings_.shape.n, settings_.precision, settings_.shape.c_type,
                              settings_.shape.layout, nullptr, settings_.seed, *device_,
                              {.packed = settings_.packed})),
      reference_(make_reference(a_, {}, operands_.b, *device_)),
      a_checksum_(checksum_of_a(operand_of(a_), *device_)) {}

ResultRow Bench::new_row(const BroughtProduct& product) const {
  ResultRow row;
  row.matrix = summary_;
  row.n = settings_.shape.n;
  row.kernel = product.name;
  row.precision = to_string(settings_.precision);
  row.c_type = to_string(settings_.shape.c_type);
  row.layout = settings_.shape.layout == Layout::row_major ? "row" : "col";
  row.reorder = "none";
  return row;
}

ResultRow Bench::run(const BroughtProduct& product) {
  processors_.restore();
  ResultRow row = new_row(product);
  const ProductKernel kernel(product, a_, settings_, device_->info().kind);
  const KernelChoice choice{&kernel, {}};
  const ExactTraits traits = {.sum_bits = sum_bits(kernel.info(), settings_.precision),
                              .keeps_a = !product.with_values,
                              .packed = settings_.packed,
                              .precision = settings_.precision};
  PreparedA prepared;
  CaseInput input;
  input.choice = &choice;
  input.problem.a = &a_;
  input.problem.precision = settings_.precision;
  input.problem.orders = orders_.get();
  static_cast<Shape&>(input.problem) = settings_.shape;
  input.prepared = &prepared;
  input.device = device_.get();
  input.operands = &operands_;
  input.reference = reference_.get();
  input.a_checksum = a_checksum_;
  input.found = found_;
  input.exact = &exact_
                     .try_emplace({traits.keeps_a, traits.sum_bits}, a_,
                                  std::span<const std::int32_t>(), nullptr, settings_.seed, traits)
                     .first->second;
  input.compulsory_bytes = compulsory_bytes_;
  input.bound_us = compulsory_bytes_ / copy_rate_of(*device_) * 1e6;
  if (product.take_c) input.take_c = [&] { product.take_c(operands_.c, device_->stream()); };
  (void)run_case(input, settings_.limits, row);
  return row;
}

}  // namespace spmmbench
