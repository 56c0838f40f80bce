#include "measure/case_times.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "gpu/rates.hpp"
#include "measure/case_checks.hpp"
#include "measure/checked_times.hpp"
#include "timing/quantiles.hpp"

namespace spmmbench {
namespace {

// The fastest rate at which this device was seen to write, in bytes per second: of a buffer that
// fits in the cache next to its cores. Infinity where there is no cache, or no memory for one.
double fastest_writes(Device& device) {
  constexpr std::size_t kMostBytes = std::size_t{16} << 10;  // of the cache of a processor's core
  constexpr int kTries = 3, kFills = 16;
  const bool on_host = device.info().kind == DeviceKind::host;
  const std::size_t bytes = on_host ? kMostBytes : device.info().l2_bytes / 4;
  if (bytes == 0 || bytes > device.free_bytes()) return std::numeric_limits<double>::infinity();
  const Buffer buffer = device.allocate(bytes);
  const auto fill = [&] { device.fill_bytes(buffer.data(), 0, bytes); };
  fill();
  double us = device.time_us(fill, kFills);
  for (int i = 1; i < kTries; ++i) us = std::min(us, device.time_us(fill, kFills));
  const int cores = on_host ? std::max(device.info().sm_count, 1) : 1;
  return cores * static_cast<double>(bytes) * kFills / (us * 1e-6);
}

// More multiplications and additions than the device does in a second.
double most_flops(Device& device) {
  constexpr double kMargin =
      4;  // a choice: vendors' products reach 1.6, and 8 bits take half of 16
  if (device.info().kind == DeviceKind::cuda) return kMargin * measure_tensor_cores(device);
  constexpr double kPerCycle = 1024;  // of a core's matrix unit: Intel's AMX with bf16
  constexpr double kHz = 6.2e9;       // the highest clock that a processor is sold with
  return kPerCycle * kHz * std::max(device.info().sm_count, 1);
}

struct Rates {
  double bytes_per_second, flops;
};

Rates measure_rates(Device& device) { return {fastest_writes(device), most_flops(device)}; }

// The rates of a GPU are measured once in a process, since that takes as long as a few samples.
Rates fastest_rates(Device& device) {
  if (device.info().kind == DeviceKind::host) return measure_rates(device);
  static std::mutex guard;
  static std::map<int, Rates> known;  // by index
  const std::scoped_lock lock(guard);
  const auto found = known.find(device.info().index);
  if (found != known.end()) return found->second;
  return known.emplace(device.info().index, measure_rates(device)).first->second;
}

// Why no launch takes so little time; empty where one may.
std::string why_impossible(const LeastTimes& least, double us) {
  if (us < least.writing_us)
    return fmt::format("takes {:.3g} us, and writing C alone takes {:.3g} us", us,
                       least.writing_us);
  if (us < least.products_us)
    return fmt::format("takes {:.3g} us, and its products alone take {:.3g} us", us,
                       least.products_us);
  return {};
}

// What the plan needs to look at a B that changes counts with every product.
void add_inspection(const ResultRow& row, Timing& timing) {
  const auto inspection = row.metrics.find("inspect_b_us");
  if (inspection == row.metrics.end()) return;
  for (double& sample : timing.samples_us) sample += inspection->second;
  timing = summarise(std::move(timing.samples_us), timing.launches_per_sample);
}

// The time, in microseconds, of zeroing C, which is part of every launch of a kernel that adds to
// it.
double zeroing_us(const DenseView& c, int launches_per_sample, Device& device) {
  constexpr int kTries = 5;
  const auto zero = [&] { device.fill_bytes(c.data, 0, c.bytes()); };
  double us = device.time_us(zero, launches_per_sample);
  for (int i = 1; i < kTries; ++i) us = std::min(us, device.time_us(zero, launches_per_sample));
  return us / launches_per_sample;
}

}  // namespace

LeastTimes least_times(const CaseInput& input) {
  constexpr double kMargin = 4;  // a choice: cores may write faster in another moment
  Device& device = *input.device;
  const auto c_bytes = static_cast<double>(input.operands->c.bytes());
  LeastTimes least;
  const Rates rates = fastest_rates(device);
  least.writing_us = c_bytes / (kMargin * rates.bytes_per_second) * 1e6;
  if (!input.b_is_drawn) return least;
  const CsrMatrix& a = input.checked_a();
  std::optional<std::int64_t>& not_zero = input.found->values_not_zero;
  if (!not_zero) not_zero = a.nnz() - std::ranges::count(a.values, 0.0F);
  const double products = static_cast<double>(*not_zero) * input.operands->b.cols;
  least.products_us = 2 * products / rates.flops * 1e6;
  return least;
}

bool take_times(const CaseInput& input, const SampleLimits& limits, ScaledLaunches& launches,
                ResultRow& row) {
  Device& device = *input.device;
  SpotChecks checks(input.checked_a(), input.checked_row_ids(), *input.operands, bound_of(input),
                    input.problem.precision, input.choice->kernel->info().inspects_b, device,
                    input.update, input.b_is_drawn);
  const LaunchAt launch = [&](int at) {
    launches.launch(checks.b(at), input.operands->c, input.scalars(), device.stream());
  };
  std::optional<Times> times;
  try {
    times = take_checked_times(input, limits, launch, checks, row);
  } catch (const WrongLaunch& wrong) {
    checks.restore();
    if (!(wrong.verdict().error_over_bound <= row.verify->error_over_bound))
      row.verify = wrong.verdict();
    call_wrong(input, row, wrong.what());
  }
  if (!times) return false;
  const LeastTimes least = least_times(input);
  row.metrics["least_us"] = std::max(least.writing_us, least.products_us);
  if (const std::string why = why_impossible(least, times->hot.median_us); !why.empty()) {
    call_wrong(input, row, why);
    return false;
  }
  if (input.choice->kernel->info().adds_to_c)
    row.metrics["zero_c_us"] =
        zeroing_us(input.operands->c, times->hot.launches_per_sample, device);
  add_inspection(row, times->hot);
  add_inspection(row, times->cold);
  row.hot = std::move(times->hot);
  row.cold = std::move(times->cold);
  return true;
}

}  // namespace spmmbench
