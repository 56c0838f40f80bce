// The exact test, and the comparison of repeated launches, of kernels that fail in one way each.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <new>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "fake_device.hpp"
#include "measure/exact_test.hpp"
#include "measure/operands.hpp"
#include "measure/repeat.hpp"
#include "spmmbench/error.hpp"
#include "spmmbench/picking.hpp"
#include "spmmbench/random.hpp"
#include "verify/exact.hpp"

namespace spmmbench {
namespace {

// Of row i of A, which is row c_row of C: the sums, given the number of the launch from 1.
using WriteRow = std::function<void(const CsrMatrix& a, std::int64_t row, std::int64_t c_row,
                                    const DenseView& b, const DenseView& c, int launch)>;

float& at(const DenseView& view, std::int64_t i, std::int64_t j) {
  return static_cast<float*>(view.data)[i * view.ld + j];
}

void write_product(const CsrMatrix& a, std::int64_t row, std::int64_t c_row, const DenseView& b,
                   const DenseView& c, int) {
  for (std::int64_t j = 0; j < c.cols; ++j) {
    float sum = 0;
    for (std::int64_t e = a.row_ptr[row]; e < a.row_ptr[row + 1]; ++e)
      sum += a.values[e] * at(b, a.col_idx[e], j);
    at(c, c_row, j) = sum;
  }
}

class RowKernel final : public Kernel {
 public:
  explicit RowKernel(WriteRow write) : write_(std::move(write)) {
    info_.name = "rows";
    info_.device = DeviceKind::host;
    info_.writes_row_ids = true;
  }
  const KernelInfo& info() const override { return info_; }
  KernelInfo& info() { return info_; }
  Support supports(const Problem&, const DeviceInfo&) const override { return Support::yes(0); }
  std::unique_ptr<Prepared> prepare(const SparseOperand& a, const Options&, Device&,
                                    StageTimer&) const override {
    return std::make_unique<Rows>(write_, a);
  }

 private:
  class Rows final : public Prepared {
   public:
    Rows(const WriteRow& write, const SparseOperand& a) : write_(write), a_(a) {}
    std::unique_ptr<Plan> bind(const Shape&, StageTimer&) override {
      return std::make_unique<RowPlan>(write_, a_);
    }

   private:
    const WriteRow& write_;
    SparseOperand a_;
  };
  class RowPlan final : public Plan {
   public:
    RowPlan(const WriteRow& write, const SparseOperand& a) : write_(write), a_(a) {}
    void launch(const DenseView& b, const DenseView& c, Stream) override {
      ++launches_;
      for (std::int64_t row = 0; row < a_.a->rows; ++row)
        write_(*a_.a, row, a_.row_ids.empty() ? row : a_.row_ids[row], b, c, launches_);
    }
    PlanReport report() const override { return {}; }

   private:
    const WriteRow& write_;
    SparseOperand a_;
    int launches_ = 0;
  };

  WriteRow write_;
  KernelInfo info_;
};

// A prepared A of a kernel that picks others, and notes which it is told.
class Picks final : public Prepared, public BindsPick {
 public:
  Picks(std::unique_ptr<Prepared> own, std::unique_ptr<Prepared> other)
      : own_(std::move(own)), other_(std::move(other)) {}
  std::unique_ptr<Plan> bind(const Shape& shape, StageTimer& stages) override {
    return own_->bind(shape, stages);
  }
  std::unique_ptr<Plan> bind_pick(const std::string& kernel, const Shape& shape,
                                  StageTimer& stages) override {
    told = kernel;
    return other_->bind(shape, stages);
  }
  std::string told;

 private:
  std::unique_ptr<Prepared> own_, other_;
};

class RunExactTest : public ::testing::Test {
 protected:
  ExactTest run(const RowKernel& kernel) {
    ExactOperands exact(a_, row_ids_, b_ ? &*b_ : nullptr, kSeed, {.sum_bits = sum_bits_});
    const Operands operands = make_operands(a_, kColumns, Precision::fp32, ElementType::f32,
                                            Layout::row_major, nullptr, kSeed, device_);
    std::unique_ptr<Prepared> prepared;
    return run_exact_test(kernel, {problem(), exact, operands.c, device_}, prepared).test;
  }
  Problem problem() const {
    Problem problem;
    problem.a = &a_;
    problem.row_ids = row_ids_;
    problem.n = kColumns;
    return problem;
  }
  // Of a plan that has launched before.
  ExactTest test_timed(const RowKernel& kernel, PreparedA& prepared) {
    ExactOperands exact(a_, row_ids_, nullptr, kSeed, {.sum_bits = sum_bits_});
    const Operands operands = make_operands(a_, kColumns, Precision::fp32, ElementType::f32,
                                            Layout::row_major, nullptr, kSeed, device_);
    StageTimer stages;
    Problem bound = problem();
    bound.ld_b = operands.b.ld;
    prepared.kernel_a = kernel.prepare(bound.operand(), {}, device_, stages);
    const std::unique_ptr<Plan> plan = prepared.kernel_a->bind(bound.shape(), stages);
    ScaledLaunches launches(*plan, kernel.info(), device_);
    launches.launch(operands.b, operands.c, {}, {});
    return test_timed_plan({bound, exact, operands.c, device_}, kernel.info(), prepared, launches);
  }

  static constexpr std::int64_t kColumns = 5;
  static constexpr std::uint64_t kSeed = 3;
  FakeDevice device_;
  CsrMatrix a_{3, 4, {0, 2, 3, 3}, {0, 3, 1}, {0.5F, -0.25F, 2.0F}};
  std::vector<std::int32_t> row_ids_;
  std::optional<DenseMatrix> b_;
  int sum_bits_ = 24;
};

TEST_F(RunExactTest, PassesARightKernelInAnyOrderOfRows) {
  EXPECT_TRUE(run(RowKernel(write_product)).passed);
  row_ids_ = {2, 0, 1};
  EXPECT_TRUE(run(RowKernel(write_product)).passed);
}

TEST_F(RunExactTest, APlanThatWasTimedGetsOtherValuesInPlaceAndItsOwnBack) {
  const CsrMatrix own = a_;
  PreparedA prepared;
  const ExactTest test = test_timed(RowKernel(write_product), prepared);
  EXPECT_TRUE(test.passed);
  EXPECT_TRUE(test.timed_plan);
  EXPECT_EQ(a_, own);
  EXPECT_FALSE(prepared.has_other_values);
  row_ids_ = {2, 0, 1};
  EXPECT_TRUE(test_timed(RowKernel(write_product), prepared).passed);
}

TEST_F(RunExactTest, APlanThatKeepsItsFirstValuesFailsWhenItWasTimed) {
  std::vector<float> kept;
  PreparedA prepared;
  const RowKernel keeps([&](auto& a, auto row, auto c_row, auto& b, auto& c, int n) {
    if (n == 1) kept = a.values;
    CsrMatrix first = a;
    first.values = kept;
    write_product(first, row, c_row, b, c, n);
  });
  EXPECT_FALSE(test_timed(keeps, prepared).passed);
  EXPECT_FALSE(prepared.has_other_values);
  EXPECT_TRUE(run(keeps).passed) << "a plan of its own has the values of the test alone";
}

TEST_F(RunExactTest, AIsPutBackWhereTheTestOfATimedPlanFails) {
  const CsrMatrix own = a_;
  PreparedA prepared;
  const RowKernel fails([](auto& a, auto row, auto c_row, auto& b, auto& c, int n) {
    if (n > 1) throw DeviceError("at fault", false);
    write_product(a, row, c_row, b, c, n);
  });
  EXPECT_THROW(test_timed(fails, prepared), DeviceError);
  EXPECT_EQ(a_, own);
  EXPECT_TRUE(prepared.has_other_values) << "the plan has them";
}

TEST_F(RunExactTest, NamesTheElementThatDiffers) {
  const ExactTest test = run(RowKernel([](auto& a, auto row, auto c_row, auto& b, auto& c, int n) {
    write_product(a, row, c_row, b, c, n);
    if (c_row == 1) at(c, 1, 3) += 0.125F;
  }));
  EXPECT_FALSE(test.passed);
  EXPECT_EQ(test.not_made, "");
  EXPECT_EQ(test.worst_row, 1);
  EXPECT_EQ(test.worst_col, 3);
}

TEST_F(RunExactTest, FindsAKernelThatKeepsBOfItsFirstLaunch) {
  std::vector<float> kept;
  EXPECT_FALSE(run(RowKernel([&](auto& a, auto row, auto c_row, DenseView b, auto& c, int n) {
                 const auto* data = static_cast<const float*>(b.data);
                 if (n == 1 && row == 0) kept.assign(data, data + b.rows * b.ld);
                 b.data = kept.data();
                 write_product(a, row, c_row, b, c, n);
               })).passed);
}

TEST_F(RunExactTest, FindsAKernelThatWritesEmptyRowsOnce) {
  EXPECT_FALSE(run(RowKernel([](auto& a, auto row, auto c_row, auto& b, auto& c, int n) {
                 if (n == 1 || a.row_length(row) > 0) write_product(a, row, c_row, b, c, n);
               })).passed);
}

TEST_F(RunExactTest, IsMadeOfSumsInFp16WhereRowsAreShort) {
  const RowKernel half([](auto& a, auto row, auto c_row, auto& b, auto& c, int) {
    for (std::int64_t j = 0; j < c.cols; ++j) {
      float sum = 0;
      for (std::int64_t e = a.row_ptr[row]; e < a.row_ptr[row + 1]; ++e)
        sum = round_to(Precision::fp16, sum + a.values[e] * at(b, a.col_idx[e], j));
      at(c, c_row, j) = sum;
    }
  });
  const RowKernel zeros([](auto&, auto, auto c_row, auto&, auto& c, int) {
    for (std::int64_t j = 0; j < c.cols; ++j) at(c, c_row, j) = 0;
  });
  sum_bits_ = 11;
  for (const std::int64_t row : {41, 600, 2047}) {
    a_ = {1, row, {0, row}, std::vector<std::int32_t>(row), std::vector<float>(row, 1)};
    std::iota(a_.col_idx.begin(), a_.col_idx.end(), 0);
    EXPECT_TRUE(run(half).passed) << row;
    EXPECT_FALSE(run(zeros).passed) << row;
  }
  a_ = {1, 1, {0, 2048}, std::vector<std::int32_t>(2048), std::vector<float>(2048, 1)};
  EXPECT_EQ(run(half).not_made,
            "a row of 2048 nonzeros is too long to be exact in sums of 11 bits");
}

TEST_F(RunExactTest, IsNotMadeWhereMemoryIsShort) {
  EXPECT_EQ(run(RowKernel([](auto&&...) { throw OutOfMemory("no memory"); })).not_made,
            "no memory");
  EXPECT_EQ(run(RowKernel([](auto&&...) { throw std::bad_alloc(); })).not_made,
            "out of host memory");
}

TEST_F(RunExactTest, AnErrorOfTheKernelEndsTheCase) {
  for (const bool lost : {false, true}) {
    try {
      run(RowKernel([lost](auto&&...) { throw DeviceError("at fault", lost); }));
      FAIL();
    } catch (const DeviceError& error) {
      EXPECT_STREQ(error.what(), "exact test: at fault");
      EXPECT_EQ(error.device_lost(), lost);
    }
  }
  EXPECT_THROW(run(RowKernel([](auto&&...) { throw Unsupported("these values"); })), Error);
}

TEST_F(RunExactTest, ItsOperandsKeepTheStructureOfAAndTheZerosOfB) {
  b_ = DenseMatrix{4, kColumns, std::vector<float>(4 * kColumns, 1)};
  b_->values[7] = 0;
  ExactOperands exact(a_, {}, &*b_, kSeed);
  const Lattice lattice = *make_lattice(kSeed, 2, Precision::fp32);
  EXPECT_EQ(exact.a(), with_lattice_values(a_, {}, lattice));
  const DenseMatrix expected = with_lattice_values(*b_, lattice);
  const DenseView& made = exact.on_device(problem(), device_).b;
  ExactOperands drawn(a_, {}, nullptr, kSeed);
  const DenseView& random = drawn.on_device(problem(), device_).b;
  for (std::int64_t i = 0; i < 4; ++i)
    for (std::int64_t j = 0; j < kColumns; ++j) {
      EXPECT_EQ(at(made, i, j), expected.values[i * kColumns + j]);
      EXPECT_EQ(at(random, i, j), lattice.b(i, j));
    }
  EXPECT_EQ(ExactOperands(a_, {}, nullptr, kSeed, {.binary = true}).a(), a_);
}

TEST_F(RunExactTest, AGivenBWhoseProductsAreAllZeroIsDrawn) {
  b_ = DenseMatrix{4, kColumns, std::vector<float>(4 * kColumns)};
  const RowKernel zeros([](auto&, auto, auto c_row, auto&, auto& c, int) {
    for (std::int64_t j = 0; j < c.cols; ++j) at(c, c_row, j) = 0;
  });
  EXPECT_FALSE(run(zeros).passed);
  EXPECT_TRUE(run(RowKernel(write_product)).passed);
  b_->values[2 * kColumns] = 1;  // A has no nonzero in column 2
  EXPECT_FALSE(run(zeros).passed);
}

// A C of 3 x 5 whose lines are longer than its rows. A right launch fills it with ones.
class Repeated : public ::testing::Test {
 protected:
  Repeated() {
    c_ = make_dense_view(3, 5, Layout::row_major, ElementType::f32);
    memory_ = device_.allocate(c_.bytes());
    c_.data = memory_.data();
  }
  // `write`: what a launch, given its number from 1, does besides.
  std::function<void()> launch(std::function<void(int launch)> write) {
    launches_ = checks_ = 0;
    return [this, write = std::move(write)] {
      ++launches_;
      fill(1);
      write(launches_);
    };
  }
  void fill(float value) {
    for (int i = 0; i < 3; ++i)
      for (int j = 0; j < 5; ++j) at(c_, i, j) = value;
  }
  bool check(bool known) {
    checks_ += known ? 0 : 1;
    return known || std::abs(at(c_, 2, 4) - 1) < 0.25;
  }
  Repeats repeat(std::function<void(int launch)> write) {
    return repeat_launches(device_, {}, c_, launch(std::move(write)),
                           [this](bool known) { return check(known); });
  }
  bool stays_right(std::function<void(int launch)> write) {
    fill(1);
    return launches_stay_right(device_, {}, c_, launch(std::move(write)),
                               [this](bool known) { return check(known); });
  }

  FakeDevice device_;
  DenseView c_;
  Buffer memory_;
  int launches_ = 0, checks_ = 0;
};

TEST_F(Repeated, LaunchesAreComparedToTheLastElementOfTheLastOne) {
  const Repeats same = repeat([](int) {});
  EXPECT_TRUE(same.right && same.same_bits);
  EXPECT_EQ(launches_, kRepeats);
  EXPECT_EQ(checks_, 1) << "the same bits are as right";
  const Repeats varied = repeat([&](int n) { at(c_, 2, 4) += n == kRepeats ? 0.125F : 0; });
  EXPECT_TRUE(varied.right);
  EXPECT_FALSE(varied.same_bits);
  ASSERT_GT(c_.ld, 5);
  EXPECT_TRUE(repeat([&](int n) { at(c_, 0, 5) = static_cast<float>(n); }).same_bits)
      << "padding is nobody's";
}

TEST_F(Repeated, ALaunchThatIsWrongEndsTheComparison) {
  const Repeats wrong = repeat([&](int n) { at(c_, 2, 4) += n == 3 ? 1.0F : 0; });
  EXPECT_FALSE(wrong.right);
  EXPECT_FALSE(wrong.same_bits);
  EXPECT_EQ(launches_, 3);
  EXPECT_FALSE(repeat([&](int) { at(c_, 2, 4) = 7; }).right) << "the same is not right";
}

TEST_F(Repeated, LaunchesFindAPoisonedC) {
  repeat_launches(
      device_, {}, c_, [&] { EXPECT_TRUE(std::isnan(at(c_, 1, 1))); }, [](bool) { return true; });
}

TEST_F(Repeated, LaunchesAfterTheTimedOnesFindNanAndLargeNumbers) {
  std::vector<float> found;
  launches_stay_right(
      device_, {}, c_, [&] { found.push_back(at(c_, 2, 4)); }, [](bool) { return true; });
  ASSERT_EQ(found.size(), std::size_t{kLaunchesAfterTiming});
  EXPECT_TRUE(std::isnan(found[0]));
  EXPECT_GT(found[1], 1e30F);
  EXPECT_TRUE(std::isfinite(found[1]));
}

TEST_F(Repeated, TheReferenceJudgesOnTheHostOnlyWhatHasOtherBits) {
  EXPECT_TRUE(stays_right([](int) {}));
  EXPECT_EQ(checks_, 0);
  EXPECT_TRUE(stays_right([&](int) { at(c_, 2, 4) += 0.125F; }));
  EXPECT_EQ(checks_, kLaunchesAfterTiming);
  EXPECT_FALSE(stays_right([&](int n) { at(c_, 2, 4) += n == 3 ? 1.0F : 0; }));
  device_.device_info.kind = DeviceKind::cuda;
  EXPECT_TRUE(stays_right([](int) {}));
  EXPECT_EQ(checks_, kLaunchesAfterTiming);
}

// What its kernel itself would bind is wrong.
TEST_F(RunExactTest, AKernelThatPicksOthersIsToldWhich) {
  const RowKernel wrong([](const CsrMatrix&, std::int64_t, std::int64_t c_row, const DenseView&,
                           const DenseView& c, int) { at(c, c_row, 0) = 1; });
  const RowKernel right(write_product);
  ExactOperands exact(a_, row_ids_, nullptr, kSeed, {.sum_bits = sum_bits_});
  const Operands operands = make_operands(a_, kColumns, Precision::fp32, ElementType::f32,
                                          Layout::row_major, nullptr, kSeed, device_);
  Problem exact_problem = problem();
  exact_problem.a = &exact.a();
  StageTimer stages;
  auto made = std::make_unique<Picks>(wrong.prepare(exact_problem.operand(), {}, device_, stages),
                                      right.prepare(exact_problem.operand(), {}, device_, stages));
  const Picks& picks = *made;
  std::unique_ptr<Prepared> prepared = std::move(made);
  ExactSetting setting{problem(), exact, operands.c, device_};
  EXPECT_FALSE(run_exact_test(wrong, setting, prepared).test.passed);
  EXPECT_EQ(picks.told, "");
  setting.pick = "other?way=1";
  EXPECT_TRUE(run_exact_test(wrong, setting, prepared).test.passed);
  EXPECT_EQ(picks.told, setting.pick);
}

}  // namespace
}  // namespace spmmbench
