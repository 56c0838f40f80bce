#include "measure/calls_curve.hpp"

#include <fmt/format.h>

#include <iterator>
#include <memory>
#include <optional>

#include "gpu/csr_on_device.hpp"
#include "gpu/scaled_launches.hpp"
#include "measure/alone_on_gpu.hpp"
#include "measure/batch.hpp"
#include "process/interrupt.hpp"
#include "spmmbench/reordering.hpp"
#include "spmmbench/stage_timer.hpp"
#include "timing/quantiles.hpp"

namespace spmmbench {
namespace {

// The time of preparation and the calls together, in microseconds.
double time_once(const KernelChoice& choice, Problem problem, const Spec& reorder,
                 const Operands& operands, std::int64_t calls, Device& device,
                 const Scalars& scalars, std::int64_t members, const Clock& clock) {
  StageTimer stages;
  std::optional<AloneOnGpu> alone;
  std::unique_ptr<RowOrders> orders;
  if (problem.on_device != nullptr) {
    alone.emplace(problem, reorder, device).give_to(problem);
  } else {
    orders = make_row_orders(problem.a, reorder);
    problem.orders = orders.get();
  }
  poison(operands.c, choice.kernel->info(), device);
  device.flush_cache();
  device.wait_idle();
  const double start = clock();
  std::optional<CsrOnDevice> copy;
  if (problem.on_device == nullptr && choice.kernel->info().prepares_on_device) {
    copy.emplace(*problem.a, problem.precision, device);
    problem.on_device = &copy->view();
  }
  const std::unique_ptr<Prepared> a =
      choice.kernel->prepare(problem.operand(), problem.options, device, stages);
  const std::unique_ptr<Plan> plan = bind_members(*a, problem.shape(), members, stages);
  plan->inspect_b(operands.b, stages);
  ScaledLaunches launches(*plan, choice.kernel->info(), device);
  for (std::int64_t i = 0; i < calls; ++i)
    launches.launch(operands.b, operands.c, scalars, device.stream());
  device.wait_idle();
  return (clock() - start) * 1e6;
}

}  // namespace

std::vector<std::pair<std::string, double>> measure_calls_curve(
    const KernelChoice& choice, const Problem& problem, const Spec& reorder,
    const Operands& operands, std::span<const std::int64_t> calls, Device& device,
    const Scalars& scalars, std::int64_t members, const Clock& clock) {
  std::vector<std::pair<std::string, double>> curve;
  for (const std::int64_t count : calls) {
    std::vector<double> times;
    double all_us = 0;
    while (std::ssize(times) < kLeastCurveRepeats ||
           (std::ssize(times) < kMostCurveRepeats && all_us < kCurveUs)) {
      poll_interrupt();
      times.push_back(
          time_once(choice, problem, reorder, operands, count, device, scalars, members, clock));
      all_us += times.back();
    }
    curve.emplace_back(fmt::format("{}", count), summarise(std::move(times), 1).median_us);
  }
  return curve;
}

}  // namespace spmmbench
