#include "common/by_rows.hpp"

#include <utility>

#include "common/dependent_launch.hpp"
#include "common/transpose.hpp"

namespace spmmbench {
namespace {

DenseView b_by_rows(const SparseOperand& a, const Shape& shape) {
  return make_b_view(a.k(), shape.n, Layout::row_major, storage_type(a.precision));
}
DenseView c_by_rows(const SparseOperand& a, const Shape& shape) {
  return make_dense_view(a.m(), shape.n, Layout::row_major, shape.c_type);
}

class PlanByRows final : public Plan {
 public:
  PlanByRows(const SparseOperand& a, const Shape& shape, Device& device, StageTimer& stages,
             const std::function<std::unique_ptr<Plan>(const Shape&)>& bind)
      : b_(b_by_rows(a, shape)), c_(c_by_rows(a, shape)), overlap_(kernels_wait()) {
    {
      const auto timed = stages.scope("build");
      b_memory_ = device.allocate(b_.bytes());
      c_memory_ = device.allocate(c_.bytes());
    }
    b_.data = b_memory_.data();
    c_.data = c_memory_.data();
    plan_ = bind({.n = shape.n, .c_type = shape.c_type, .ld_b = b_.ld, .ld_c = c_.ld});
  }

  void launch(const DenseView& b, const DenseView& c, Stream stream) override {
    b_.scale = b.scale;
    transpose(b, b_, overlap_, stream);
    plan_->launch(b_, c_, stream);
    transpose(c_, c, overlap_, stream);
  }

  PlanReport report() const override {
    PlanReport report = plan_->report();
    report.device_bytes += b_memory_.bytes() + c_memory_.bytes();
    return report;
  }

 private:
  DenseView b_, c_;
  bool overlap_;
  Buffer b_memory_, c_memory_;
  std::unique_ptr<Plan> plan_;
};

}  // namespace

std::size_t bytes_by_rows(const Problem& problem) {
  if (!is_by_rows(problem)) return 0;
  return b_by_rows(problem, problem).bytes() + c_by_rows(problem, problem).bytes();
}

std::unique_ptr<Plan> bind_by_rows(const SparseOperand& a, const Shape& shape, Device& device,
                                   StageTimer& stages,
                                   const std::function<std::unique_ptr<Plan>(const Shape&)>& bind) {
  if (!is_by_rows(shape)) return bind(shape);
  return std::make_unique<PlanByRows>(a, shape, device, stages, bind);
}

}  // namespace spmmbench
