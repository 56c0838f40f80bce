// C = A * B by Eigen: its product of a row-major sparse matrix and a dense one, whose own OpenMP
// loop spreads the rows over the threads. The baseline that a CPU kernel has to beat.
//
// Eigen multiplies fp32 by fp32 here, or fp64 by fp64, since its 16-bit types would also add in 16
// bits. A 16-bit B
// is widened and a 16-bit C is rounded in every launch, by loops that are faster than Eigen's
// casts.

#include <fmt/format.h>

#include <Eigen/SparseCore>
#include <limits>
#include <memory>
#include <type_traits>
#include <vector>

#include "spmmbench/registry.hpp"

namespace spmmbench::eigen_csr {
namespace {

// Eigen's indices are of one type, so the row pointers are copied to A's 32-bit columns.
template <class Value>
using SparseRows = Eigen::Map<const Eigen::SparseMatrix<Value, Eigen::RowMajor, std::int32_t>>;

template <class Value, int kOrder>
using Dense = Eigen::Matrix<Value, Eigen::Dynamic, Eigen::Dynamic, kOrder>;

// Memory for a matrix that its kernel fills. The device compares it with the memory that is left,
// and filled with zeros it counts as taken.
template <class Value, int kOrder>
class Held {
 public:
  Held() = default;
  Held(Device& device, std::int64_t rows, std::int64_t cols)
      : memory_(device.allocate(rows * cols * sizeof(Value))), rows_(rows), cols_(cols) {
    device.fill_bytes(memory_.data(), 0, memory_.bytes());
  }

  std::size_t bytes() const { return memory_.bytes(); }
  Eigen::Map<Dense<Value, kOrder>> matrix() const { return {memory_.as<Value>(), rows_, cols_}; }

 private:
  Buffer memory_;
  std::int64_t rows_ = 0, cols_ = 0;
};

template <class Value, int kOrder>
Eigen::Map<Dense<Value, kOrder>, Eigen::Unaligned, Eigen::OuterStride<>> view_of(
    const DenseView& view) {
  return {static_cast<Value*>(view.data), view.rows, view.cols, Eigen::OuterStride<>(view.ld)};
}

// The elements of a matrix in memory of any type to fp32 without padding, and back.
void widen(const DenseView& from, float* to) {
  visit_element(from.type, [&](auto element) {
    using Bits = typename decltype(element)::Bits;
#pragma omp parallel for schedule(static)
    for (std::int64_t line = 0; line < from.lines(); ++line) {
      const Bits* const in = static_cast<const Bits*>(from.data) + line * from.ld;
      float* const out = to + line * from.line_length();
      for (std::int64_t i = 0; i < from.line_length(); ++i)
        out[i] = static_cast<float>(element.decode(in[i]));
    }
  });
}

void narrow(const float* from, const DenseView& to) {
  visit_element(to.type, [&](auto element) {
    using Bits = typename decltype(element)::Bits;
#pragma omp parallel for schedule(static)
    for (std::int64_t line = 0; line < to.lines(); ++line) {
      Bits* const out = static_cast<Bits*>(to.data) + line * to.ld;
      const float* const in = from + line * to.line_length();
      for (std::int64_t i = 0; i < to.line_length(); ++i) out[i] = element.encode(in[i]);
    }
  });
}

// Whether B, and C, have another type than Eigen multiplies in.
bool widens(Precision precision) { return bytes_of(storage_type(precision)) < sizeof(float); }
bool rounds(ElementType c_type) { return bytes_of(c_type) < sizeof(float); }

template <class Value, int kOrder>
class EigenPlan final : public Plan {
 public:
  EigenPlan(const SparseRows<Value>& a, const SparseOperand& operand, const Shape& shape,
            Device& device)
      : a_(a) {
    if (widens(operand.precision)) b_ = {device, operand.k(), shape.n};
    if (rounds(shape.c_type)) c_ = {device, operand.m(), shape.n};
  }

  void launch(const DenseView& b, const DenseView& c, Stream) override {
    if constexpr (std::is_same_v<Value, float>) {
      if (b_.bytes() > 0) {
        widen(b, b_.matrix().data());
        return multiply(b_.matrix(), c);
      }
    }
    multiply(view_of<Value, kOrder>(b), c);
  }

  PlanReport report() const override {
    PlanReport report;
    report.device_bytes =
        static_cast<std::size_t>(a_.rows() + 1) * sizeof(std::int32_t) +
        static_cast<std::size_t>(a_.nonZeros()) * (sizeof(std::int32_t) + sizeof(Value)) +
        b_.bytes() + c_.bytes();
    report.params["threads"] = fmt::format("{}", Eigen::nbThreads());
    return report;
  }

 private:
  template <class B>
  void multiply(const B& b, const DenseView& c) {
    if constexpr (std::is_same_v<Value, float>) {
      if (c_.bytes() > 0) {
        c_.matrix().noalias() = a_ * b;
        return narrow(c_.matrix().data(), c);
      }
    }
    view_of<Value, kOrder>(c).noalias() = a_ * b;
  }

  const SparseRows<Value>& a_;
  Held<Value, kOrder> b_, c_;  // empty where B and C are used as they lie
};

template <class Value>
class EigenPrepared final : public Prepared {
 public:
  EigenPrepared(const SparseOperand& a, Device& device, StageTimer& stages)
      : operand_(a),
        device_(device),
        row_ptr_(copy(*a.a, stages)),
        a_(a.m(), a.k(), a.nnz(), row_ptr_.data(), a.a->col_idx.data(), values(*a.a)) {}

  std::unique_ptr<Plan> bind(const Shape& shape, StageTimer& stages) override {
    const auto timed = stages.scope("build");
    if (shape.layout == Layout::row_major)
      return std::make_unique<EigenPlan<Value, Eigen::RowMajor>>(a_, operand_, shape, device_);
    return std::make_unique<EigenPlan<Value, Eigen::ColMajor>>(a_, operand_, shape, device_);
  }

 private:
  static std::vector<std::int32_t> copy(const CsrMatrix& a, StageTimer& stages) {
    const auto timed = stages.scope("build");
    return {a.row_ptr.begin(), a.row_ptr.end()};
  }

  static const Value* values(const CsrMatrix& a) {
    if constexpr (std::is_same_v<Value, double>) return a.values64.data();
    else return a.values.data();
  }

  SparseOperand operand_;
  Device& device_;
  std::vector<std::int32_t> row_ptr_;
  SparseRows<Value> a_;
};

class EigenCsr final : public Kernel {
 public:
  const KernelInfo& info() const override { return info_; }

  Support supports(const Problem& problem, const DeviceInfo&) const override {
    if (problem.nnz() > std::numeric_limits<std::int32_t>::max())
      return Support::no("needs fewer than 2^31 nonzeros");
    return Support::yes(static_cast<std::size_t>((widens(problem.precision) ? problem.k() : 0) +
                                                 (rounds(problem.c_type) ? problem.m() : 0)) *
                            problem.n * sizeof(float) +
                        problem.a->row_ptr.size() * sizeof(std::int32_t));
  }

  std::unique_ptr<Prepared> prepare(const SparseOperand& a, const Options&, Device& device,
                                    StageTimer& stages) const override {
    if (a.precision == Precision::fp64)
      return std::make_unique<EigenPrepared<double>>(a, device, stages);
    return std::make_unique<EigenPrepared<float>>(a, device, stages);
  }

 private:
  KernelInfo info_ = {
      .name = "eigen_csr",
      .summary = "Eigen's sparse times dense product on the CPU, rows spread by OpenMP",
      .source = fmt::format("Eigen {}.{}.{}", EIGEN_WORLD_VERSION, EIGEN_MAJOR_VERSION,
                            EIGEN_MINOR_VERSION),
      .device = DeviceKind::host,
      .precisions = {Precision::fp32, Precision::tf32, Precision::fp16, Precision::bf16,
                     Precision::fp64},
      .c_types = {ElementType::f32, ElementType::f16, ElementType::bf16},
      .layouts = {Layout::row_major, Layout::col_major},
      .accumulation = Accumulation::fp32_fma,
      .baseline = true,
  };
};

SPMMBENCH_REGISTER_KERNEL(EigenCsr);

}  // namespace
}  // namespace spmmbench::eigen_csr
