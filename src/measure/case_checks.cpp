#include "measure/case_checks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <new>
#include <tuple>
#include <utility>
#include <vector>

#include "core/numbered.hpp"
#include "core/row_lengths.hpp"
#include "spmmbench/error.hpp"
#include "verify/bound.hpp"

namespace spmmbench {
namespace {

std::string describe(const Verdict& verdict) {
  return fmt::format("error {:.3g} x bound at C({}, {})", verdict.error_over_bound,
                     verdict.worst_row, verdict.worst_col);
}

// Saves what a wrong case had and gave, where that is asked for. Returns the end of its reason.
std::string save_wrong(const CaseInput& input, const Problem& problem, const DenseView& b,
                       const Update& update, const ResultRow& row) {
  if (!input.save_wrong) return {};
  std::string why;
  try {
    return fmt::format("; saved in {}", input.save_wrong(row, problem, b, update));
  } catch (const DeviceError& error) {
    if (error.device_lost()) throw;
    why = error.what();
  } catch (const std::bad_alloc&) {
    why = "out of host memory";
  } catch (const std::exception& error) {
    why = error.what();
  }
  return "; could not be saved: " + why;
}

bool is_same(const ErrorBound& a, const ErrorBound& b) {
  const auto members = [](const ErrorBound& bound) {
    // All by name: with a new one this does not compile until it is compared.
    const auto& [unit, chunk_unit, chunk, underflow, scaling, to_nearest, scaling_absolute,
                 output_unit, output_absolute, overflow, sum_overflow] = bound;
    return std::tuple(unit, chunk_unit, chunk, underflow, scaling, to_nearest, scaling_absolute,
                      output_unit, output_absolute, overflow, sum_overflow);
  };
  return members(a) == members(b);
}

double mean_error_of(const CaseInput& input) {
  const std::int64_t n = input.problem.n;
  const ErrorBound bound = bound_of(input);
  std::vector<FoundInA::MeanError>& known = input.found->mean_errors;
  const auto found = std::ranges::find_if(
      known, [&](const auto& one) { return one.n == n && is_same(one.bound, bound); });
  if (found != known.end()) return found->error;
  const double error = mean_error(input.checked_a(), n, bound, input.update);
  known.push_back({n, bound, error});
  return error;
}

// Says how C differs from the reference; empty if it does not. Of several verdicts the row keeps
// the worst.
std::string fault_in_c(const CaseInput& input, ResultRow& row) {
  Verdict verdict = input.reference->check(input.operands->c, bound_of(input));
  if (input.b_is_drawn) {
    const double allowed = mean_error_of(input);
    verdict.error_over_mean = verdict.error_frobenius == 0 ? 0 : verdict.error_frobenius / allowed;
  }
  const double mean = row.verify ? std::max(row.verify->error_over_mean, verdict.error_over_mean)
                                 : verdict.error_over_mean;
  if (!row.verify || !(verdict.error_over_bound <= row.verify->error_over_bound))
    row.verify = verdict;
  row.verify->error_over_mean = mean;
  if (!verdict.ok) return describe(verdict);
  // Where the exact test has failed, it is the reason, and names an element.
  const bool is_inexact = row.exact && !row.exact->passed && row.exact->not_made.empty();
  if (verdict.error_over_mean > 1 && !is_inexact)
    return fmt::format("all errors together are {:.3g} x what rounding leaves",
                       verdict.error_over_mean);
  return {};
}

}  // namespace

ErrorBound bound_of(const CaseInput& input) {
  return error_bound(input.choice->info(), input.problem.precision, input.problem.c_type,
                     input.scalars());
}

void start_c(const CaseInput& input) {
  start_c(input.operands->c, input.update, input.choice->kernel->info(), *input.device);
}

void take_c(const CaseInput& input) {
  if (input.take_c) input.take_c();
}

std::function<void()> start_and_launch(const CaseInput& input, std::function<void()> launch) {
  return [&input, launch = std::move(launch)] {
    if (input.update.beta != 0) start_c(input);
    launch();
    take_c(input);
  };
}

bool verify(const CaseInput& input, ResultRow& row, const std::string& which, bool known) {
  const bool intact = is_intact(*input.operands, *input.device);
  const bool in_b = !intact && wrote_to_b(*input.operands, *input.device);  // which is read below
  const std::string in_c = known || in_b ? std::string() : fault_in_c(input, row);
  std::string fault;
  if (!intact) fault = damage_around_c(*input.operands, *input.device);
  if (in_b) fault = "the kernel wrote to B";
  else if (fault.empty()) fault = in_c;
  if (fault.empty()) return true;
  call_wrong(input, row, which + fault);
  return false;
}

void call_wrong(const CaseInput& input, ResultRow& row, const std::string& fault) {
  row.status = Status::wrong;
  Problem problem = input.problem;
  problem.a = &input.checked_a();
  problem.row_ids = input.checked_row_ids();
  row.reason = fault + save_wrong(input, problem, input.operands->b, input.update, row);
}

std::string describe_failure(const CaseInput& input, const ResultRow& row) {
  std::string fault = fmt::format("exact test{}: C({}, {}) differs from the reference",
                                  row.exact->timed_plan ? " with other values in place" : "",
                                  row.exact->worst_row, row.exact->worst_col);
  if (!input.save_wrong) return fault;
  Problem problem = input.problem;  // the test has an A and a B of its own
  if (!row.exact->timed_plan) problem.ld_b = 0;
  const ExactOperands::OnDevice& made =
      input.exact->on_device(problem, *input.device, input.members);
  problem.a = made.a;
  problem.row_ids = made.row_ids;
  return fault + save_wrong(input, problem, made.b, input.exact->update(input.update), row);
}

std::string why_unproved(const CaseInput& input, const ResultRow& row) {
  if (row.verify && row.verify->incomparable > 0)
    return fmt::format("the overflow of {} of C depends on the order of the sums",
                       numbered(row.verify->incomparable, "element"));
  const bool untested = row.exact && !row.exact->not_made.empty();
  if (const std::int64_t longest = untested ? longest_row(*input.problem.a) : 0;
      relative_growth(bound_of(input), static_cast<double>(longest)) >= 1)
    return fmt::format(
        "the error bound of a row of {} nonzeros lets zeros pass, and the exact test was not made: "
        "{}",
        longest, row.exact->not_made);
  // A C of zeros has 1. Where B is given, C may be small beside its rounding errors.
  constexpr double kMostRelative = 0.5;
  if (row.verify && row.verify->relative_frobenius > kMostRelative &&
      (input.b_is_drawn || untested))
    return fmt::format("the error of C is {:.2g} of C, which the bound of {} allows",
                       row.verify->relative_frobenius,
                       to_string(sum_type(input.choice->info(), input.problem.precision)));
  return {};
}

}  // namespace spmmbench
