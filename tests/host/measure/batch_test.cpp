#include "measure/batch.hpp"

#include <gtest/gtest.h>

#include "gpu/backend.hpp"
#include "measure/exact_test.hpp"
#include "spmmbench/stage_timer.hpp"
#include "verify/reference.hpp"

namespace spmmbench {
namespace {

const CsrMatrix kA{
    .rows = 2, .cols = 3, .row_ptr = {0, 2, 3}, .col_idx = {0, 2, 1}, .values = {1, 2, 3}};

TEST(OnDiagonal, HasAOnceForEachMember) {
  const std::vector<std::int32_t> row_ids = {1, 0};
  const Diagonal all = on_diagonal(kA, row_ids, 3);
  validate(all.a);
  EXPECT_EQ(all.a.rows, 6);
  EXPECT_EQ(all.a.cols, 9);
  EXPECT_EQ(all.a.row_ptr, (std::vector<std::int64_t>{0, 2, 3, 5, 6, 8, 9}));
  EXPECT_EQ(all.a.col_idx, (std::vector<std::int32_t>{0, 2, 1, 3, 5, 4, 6, 8, 7}));
  EXPECT_EQ(all.a.values, (std::vector<float>{1, 2, 3, 1, 2, 3, 1, 2, 3}));
  EXPECT_EQ(all.row_ids, (std::vector<std::int32_t>{1, 0, 3, 2, 5, 4}));
  EXPECT_TRUE(on_diagonal(kA, {}, 2).row_ids.empty());
}

TEST(OnDiagonal, RefusesMoreRowsThan32BitsCount) {
  CsrMatrix wide = kA;
  wide.cols = 1 << 30;
  EXPECT_THROW(on_diagonal(wide, {}, 2), Error);
}

TEST(WhyNoBatch, NamesWhatAKernelNeeds) {
  KernelInfo info;
  EXPECT_EQ(why_no_batch(info), "");
  info.inspects_b = true;
  EXPECT_NE(why_no_batch(info), "");
  info.inspects_b = false;
  info.form.c_row_multiple = 8;
  EXPECT_NE(why_no_batch(info), "");
}

struct Launched {
  const void *b, *c;
  std::int64_t b_rows, c_rows;
};

class NotedPlan final : public Plan {
 public:
  explicit NotedPlan(std::vector<Launched>& launched) : launched_(launched) {}
  void launch(const DenseView& b, const DenseView& c, Stream) override {
    launched_.push_back({b.data, c.data, b.rows, c.rows});
  }
  PlanReport report() const override {
    PlanReport report;
    report.issued_flops = 10;
    return report;
  }

 private:
  std::vector<Launched>& launched_;
};

class NotedA final : public Prepared {
 public:
  std::unique_ptr<Plan> bind(const Shape&, StageTimer&) override {
    return std::make_unique<NotedPlan>(launched);
  }
  std::vector<Launched> launched;
};

TEST(BindMembers, LaunchesOnceForEach) {
  NotedA a;
  StageTimer stages;
  const auto plan = bind_members(a, {.n = 4}, 3, stages);
  std::vector<float> b(9 * 4), c(6 * 4);
  plan->launch({b.data(), 9, 4, 4}, {c.data(), 6, 4, 4}, {});
  ASSERT_EQ(a.launched.size(), 3);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(a.launched[i].b, &b[i * 3 * 4]);
    EXPECT_EQ(a.launched[i].c, &c[i * 2 * 4]);
    EXPECT_EQ(a.launched[i].b_rows, 3);
    EXPECT_EQ(a.launched[i].c_rows, 2);
  }
  EXPECT_EQ(plan->report().issued_flops, 30);
}

// Takes all members where there are no more than four.
class TogetherA final : public Prepared, public BatchPrepared {
 public:
  std::unique_ptr<Plan> bind(const Shape&, StageTimer&) override {
    return std::make_unique<NotedPlan>(launched);
  }
  std::unique_ptr<Plan> bind_batch(const Shape& shape, std::int64_t members,
                                   StageTimer& stages) override {
    return members <= 4 ? bind(shape, stages) : nullptr;
  }
  std::vector<Launched> launched;
};

TEST(BindMembers, LaunchesOnceWhereAllAreTaken) {
  TogetherA a;
  StageTimer stages;
  std::vector<float> b(15 * 4), c(10 * 4);
  bind_members(a, {.n = 4}, 3, stages)->launch({b.data(), 9, 4, 4}, {c.data(), 6, 4, 4}, {});
  ASSERT_EQ(a.launched.size(), 1);
  EXPECT_EQ(a.launched[0].b_rows, 9);
  EXPECT_EQ(a.launched[0].c_rows, 6);
  bind_members(a, {.n = 4}, 5, stages)->launch({b.data(), 15, 4, 4}, {c.data(), 10, 4, 4}, {});
  EXPECT_EQ(a.launched.size(), 6);
}

TEST(ExactOperandsOfABatch, TellMembersApart) {
  constexpr std::int64_t kMembers = 3;
  const auto device = open_host_device();
  ExactOperands exact(kA, {}, nullptr, 1);
  Problem problem;
  problem.a = &exact.a();
  problem.n = 2;
  const auto& made = exact.on_device(problem, *device, kMembers);
  ASSERT_EQ(made.b.rows, 9);
  std::vector<float> c(6 * 2);
  const auto multiply = [&](std::int64_t member, std::int64_t with) {
    for (std::int64_t row = 0; row < kA.rows; ++row)
      for (std::int64_t j = 0; j < 2; ++j) {
        float& sum = c[(member * kA.rows + row) * 2 + j] = 0;
        for (std::int64_t e = kA.row_ptr[row]; e < kA.row_ptr[row + 1]; ++e)
          sum += exact.a().values[e] *
                 static_cast<float>(element_at(made.b, with * kA.cols + kA.col_idx[e], j));
      }
  };
  const DenseView view{c.data(), 6, 2, 2};
  for (std::int64_t i = 0; i < kMembers; ++i) multiply(i, i);
  EXPECT_TRUE(made.reference->check_equal(view).ok);
  for (std::int64_t i = 0; i < kMembers; ++i) {
    multiply(i, (i + 1) % kMembers);
    const Verdict verdict = made.reference->check_equal(view);
    EXPECT_FALSE(verdict.ok);
    EXPECT_EQ(verdict.worst_row / kA.rows, i);
    multiply(i, i);
  }
}

}  // namespace
}  // namespace spmmbench
