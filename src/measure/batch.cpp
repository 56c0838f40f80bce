#include "measure/batch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "core/matrix_memory.hpp"
#include "spmmbench/error.hpp"
#include "spmmbench/scalars.hpp"

namespace spmmbench {
namespace {

class MembersPlan : public Plan {
 public:
  MembersPlan(std::unique_ptr<Plan> plan, std::int64_t members)
      : plan_(std::move(plan)), members_(members) {}

  void launch(const DenseView& b, const DenseView& c, Stream stream) override {
    for (std::int64_t i = 0; i < members_; ++i)
      plan_->launch(member_of(b, members_, i), member_of(c, members_, i), stream);
  }
  bool prepares_next() const override { return plan_->prepares_next(); }
  void settle(StageTimer& stages) override { plan_->settle(stages); }
  PlanReport report() const override {
    PlanReport report = plan_->report();
    if (report.issued_flops) *report.issued_flops *= static_cast<double>(members_);
    return report;
  }

 protected:
  std::unique_ptr<Plan> plan_;
  std::int64_t members_;
};

// The same for a plan that takes scalars.
class ScaledMembersPlan final : public MembersPlan, public ScalingPlan {
 public:
  using MembersPlan::MembersPlan;

  void launch_scaled(const DenseView& b, const DenseView& c, const Scalars& scalars,
                     Stream stream) override {
    auto& plan = dynamic_cast<ScalingPlan&>(*plan_);
    for (std::int64_t i = 0; i < members_; ++i)
      plan.launch_scaled(member_of(b, members_, i), member_of(c, members_, i), scalars, stream);
  }
};

template <class T>
void repeat(std::vector<T>& values, std::int64_t times) {
  const std::vector<T> once = values;
  values.reserve(once.size() * static_cast<std::size_t>(times));
  for (std::int64_t i = 1; i < times; ++i) values.insert(values.end(), once.begin(), once.end());
}

}  // namespace

std::string why_no_batch(const KernelInfo& kernel) {
  if (kernel.inspects_b) return "no batch: it looks at what one B holds";
  if (kernel.form.c_row_multiple > 1)
    return "no batch: it writes rows behind C, where the next member lies";
  return {};
}

std::unique_ptr<Plan> bind_members(Prepared& a, const Shape& shape, std::int64_t members,
                                   StageTimer& stages) {
  if (members == 1) return a.bind(shape, stages);
  if (auto* const together = dynamic_cast<BatchPrepared*>(&a))
    if (std::unique_ptr<Plan> plan = together->bind_batch(shape, members, stages)) return plan;
  std::unique_ptr<Plan> plan = a.bind(shape, stages);
  if (dynamic_cast<ScalingPlan*>(plan.get()) != nullptr)
    return std::make_unique<ScaledMembersPlan>(std::move(plan), members);
  return std::make_unique<MembersPlan>(std::move(plan), members);
}

std::size_t diagonal_bytes(const CsrMatrix& a, std::int64_t members) {
  return memory_bytes(a) * static_cast<std::size_t>(members);
}

Diagonal on_diagonal(const CsrMatrix& a, std::span<const std::int32_t> row_ids,
                     std::int64_t members) {
  if (std::max(a.rows, a.cols) > std::numeric_limits<std::int32_t>::max() / members)
    throw Error(fmt::format("a batch of {} has too many rows or columns to be checked", members));
  require_host_memory(diagonal_bytes(a, members));
  Diagonal all{a, {row_ids.begin(), row_ids.end()}};
  all.a.rows *= members;
  all.a.cols *= members;
  repeat(all.a.values, members);
  repeat(all.a.values64, members);
  repeat(all.a.col_idx, members);
  repeat(all.row_ids, members);
  for (std::int64_t i = 1; i < members; ++i) {
    for (std::int64_t row = 1; row <= a.rows; ++row)
      all.a.row_ptr.push_back(i * a.nnz() + a.row_ptr[row]);
    for (std::int64_t e = i * a.nnz(); e < (i + 1) * a.nnz(); ++e)
      all.a.col_idx[e] += static_cast<std::int32_t>(i * a.cols);
    for (std::size_t row = 0; row < row_ids.size(); ++row)
      all.row_ids[i * a.rows + row] += static_cast<std::int32_t>(i * a.rows);
  }
  return all;
}

}  // namespace spmmbench
