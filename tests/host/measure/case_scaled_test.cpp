// Cases of C = alpha A B + beta C.

#include <gtest/gtest.h>

#include <memory>

#include "fake_device.hpp"
#include "measure/case.hpp"
#include "spmmbench/scalars.hpp"
#include "verify/reference.hpp"

namespace spmmbench {
namespace {

enum class ScaledFault {
  none,
  ignores_alpha,
  ignores_beta,
  ignores_beta_when_timed,
  ignores_an_old_c,  // of the launch before
  leaves_empty_rows,
  reads_c_without_beta,
};

// C = alpha A B + beta C, in fp32.
void multiply_scaled(const CsrMatrix& a, const DenseView& b, const DenseView& c, float alpha,
                     float beta, bool reads_c, bool leaves_empty_rows) {
  for (std::int64_t i = 0; i < a.rows; ++i)
    for (std::int64_t j = 0; j < c.cols; ++j) {
      if (leaves_empty_rows && a.row_length(i) == 0) continue;
      float sum = 0;
      for (std::int64_t e = a.row_ptr[i]; e < a.row_ptr[i + 1]; ++e)
        sum += a.values[e] * static_cast<const float*>(b.data)[a.col_idx[e] * b.ld + j];
      float& out = static_cast<float*>(c.data)[i * c.ld + j];
      out = alpha * sum + (reads_c ? beta * out : 0);
    }
}

class ProductAlone final : public Plan {
 public:
  explicit ProductAlone(const CsrMatrix& a) : a_(a) {}
  void launch(const DenseView& b, const DenseView& c, Stream) override {
    multiply_scaled(a_, b, c, 1, 0, false, false);
  }
  PlanReport report() const override { return {}; }

 private:
  const CsrMatrix& a_;
};

class ScalesItself final : public Plan, public ScalingPlan {
 public:
  ScalesItself(const CsrMatrix& a, ScaledFault fault) : a_(a), fault_(fault) {}
  void launch(const DenseView&, const DenseView&, Stream) override {
    ADD_FAILURE() << "every launch has scalars";
  }
  void launch_scaled(const DenseView& b, const DenseView& c, const Scalars& scalars,
                     Stream) override {
    ++launches_;
    const auto alpha = static_cast<float>(fault_ == ScaledFault::ignores_alpha ? 1 : scalars.alpha);
    bool adds = scalars.beta != 0;
    if (fault_ == ScaledFault::ignores_beta) adds = false;
    if (fault_ == ScaledFault::ignores_beta_when_timed && launches_ > 2) adds = false;
    // What a launch leaves in an element is not what the next one finds.
    auto* const first = static_cast<float*>(c.data);
    if (fault_ == ScaledFault::ignores_an_old_c && *first == left_) adds = false;
    multiply_scaled(a_, b, c, alpha, static_cast<float>(scalars.beta),
                    adds || fault_ == ScaledFault::reads_c_without_beta,
                    fault_ == ScaledFault::leaves_empty_rows);
    left_ = *first;
  }
  PlanReport report() const override { return {}; }

 private:
  const CsrMatrix& a_;
  ScaledFault fault_;
  int launches_ = 0;
  float left_ = -1;
};

class ScaledPrepared final : public Prepared {
 public:
  ScaledPrepared(const CsrMatrix& a, bool native, ScaledFault fault)
      : a_(a), native_(native), fault_(fault) {}
  std::unique_ptr<Plan> bind(const Shape&, StageTimer&) override {
    if (!native_) return std::make_unique<ProductAlone>(a_);
    return std::make_unique<ScalesItself>(a_, fault_);
  }

 private:
  const CsrMatrix& a_;
  bool native_;
  ScaledFault fault_;
};

class ScaledKernel final : public Kernel {
 public:
  ScaledKernel(bool native, ScaledFault fault) : native_(native), fault_(fault) {
    info_.name = "test";
    info_.device = DeviceKind::host;
    info_.precisions = {Precision::fp32};
    if (native) info_.flags = {kTakesScalars};
  }
  const KernelInfo& info() const override { return info_; }
  Support supports(const Problem&, const DeviceInfo&) const override { return Support::yes(0); }
  std::unique_ptr<Prepared> prepare(const SparseOperand& a, const Options&, Device&,
                                    StageTimer&) const override {
    return std::make_unique<ScaledPrepared>(*a.a, native_, fault_);
  }

 private:
  bool native_;
  ScaledFault fault_;
  KernelInfo info_;
};

class ScaledCase : public ::testing::Test {
 protected:
  ResultRow run(bool native, Scalars scalars, ScaledFault fault = ScaledFault::none) {
    const ScaledKernel kernel(native, fault);
    const KernelChoice choice{&kernel, {}};
    const Operands operands = make_operands(a_, 6, Precision::fp32, ElementType::f32,
                                            Layout::row_major, nullptr, 1, device_);
    const auto reference = make_reference(a_, {}, operands.b, device_);
    PreparedA prepared;
    CaseInput input;
    input.choice = &choice;
    input.problem.a = &a_;
    input.problem.n = 6;
    input.prepared = &prepared;
    input.device = &device_;
    input.operands = &operands;
    input.reference = reference.get();
    input.update = {scalars.alpha, scalars.beta, drawn_c(ElementType::f32, 1)};
    input.a_checksum = checksum_of_a(input.problem, device_);
    input.repeat_check = true;
    ExactOperands exact(
        a_, {}, nullptr, 1,
        {.sum_bits = exact_sum_bits(kernel.info(), Precision::fp32, ElementType::f32, scalars)});
    input.exact = &exact;
    ResultRow row;
    run_case(input, {.noise = 0.01, .min_samples = 5, .max_samples = 5, .max_seconds = 1}, row);
    return row;
  }

  FakeDevice device_;
  CsrMatrix a_{4, 4, {0, 2, 3, 3, 4}, {0, 3, 1, 2}, {0.5F, -0.25F, 2.0F, 0.3F}};
};

TEST_F(ScaledCase, RightKernelsAreTimedWhetherTheyTakeScalarsOrNot) {
  for (const bool native : {false, true})
    for (const Scalars& scalars :
         {Scalars{1.5, 0.5}, {2, 0}, {1, 1}, {-0.1, 0.3}, {1, -1}, {1e-3, 2}}) {
      const ResultRow row = run(native, scalars);
      EXPECT_EQ(row.status, Status::ok)
          << scalars.alpha << ", " << scalars.beta << ": " << row.reason;
      EXPECT_TRUE(row.exact->passed) << row.exact->not_made;
      EXPECT_GT(row.hot->launches_per_sample, 1);
      // 4 rows of 8 elements, the padding included.
      EXPECT_EQ(row.device_bytes, native ? 0 : 4 * 8 * sizeof(float)) << "the product's memory";
    }
}

TEST_F(ScaledCase, WrongKernelsAreFound) {
  for (const ScaledFault fault :
       {ScaledFault::ignores_alpha, ScaledFault::ignores_beta, ScaledFault::ignores_beta_when_timed,
        ScaledFault::ignores_an_old_c, ScaledFault::leaves_empty_rows}) {
    const ResultRow row = run(true, {1.5, 0.5}, fault);
    EXPECT_EQ(row.status, Status::wrong) << static_cast<int>(fault);
  }
}

TEST_F(ScaledCase, CIsNotReadWhereBetaIsZero) {
  EXPECT_EQ(run(true, {2, 0}).status, Status::ok);
  EXPECT_EQ(run(true, {2, 0}, ScaledFault::reads_c_without_beta).status, Status::wrong);
}

}  // namespace
}  // namespace spmmbench
