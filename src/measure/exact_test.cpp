#include "measure/exact_test.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <new>
#include <utility>

#include "core/available_memory.hpp"
#include "core/block_scales.hpp"
#include "core/row_lengths.hpp"
#include "core/steady_seconds.hpp"
#include "gpu/scaled_launches.hpp"
#include "measure/operands.hpp"
#include "measure/preparation.hpp"
#include "spmmbench/error.hpp"
#include "spmmbench/random.hpp"
#include "verify/bound.hpp"
#include "verify/exact.hpp"
#include "verify/reference.hpp"

namespace spmmbench {
namespace {

// With alpha = m 2^e, m of two bits and e in [-2, 2], and beta likewise, alpha A B + beta C is a
// multiple of one unit, and below 2^24 of them in fp32: a sum of at most 21 bits becomes at most 3
// 2^21, and 7 2^9 units of C at most 3 7 2^13.
constexpr int kScalarBits = 3;
constexpr std::int64_t kLargestOfC = 7;
constexpr double kUnitsOfC = 512;

double with_two_bits(double scalar) {
  if (scalar == 0) return 0;
  int exponent = 0;
  const double fraction = std::frexp(std::abs(scalar), &exponent);  // [0.5, 1)
  const double rounded = fraction < 0.625 ? 1 : 1.5;
  return std::copysign(std::ldexp(rounded, std::clamp(exponent - 1, -2, 2)), scalar);
}

}  // namespace

int exact_sum_bits(const KernelInfo& kernel, Precision precision, ElementType c_type,
                   const Scalars& scalars) {
  const int bits = sum_bits(kernel, precision);
  if (scalars.plain()) return bits;
  const bool fp64 = precision == Precision::fp64;
  const int all = -std::ilogb(unit_roundoff(fp64 ? ElementType::f64 : ElementType::f32));
  const int stored = takes_scalars(kernel) ? all : -std::ilogb(unit_roundoff(c_type));
  return std::min({bits, all - kScalarBits, stored});
}

Update ExactOperands::update(const Update& given) const {
  if (given.plain()) return given;
  Update update = {with_two_bits(given.alpha), with_two_bits(given.beta), given.start};
  const double unit = lattice_.wide_unit * lattice_.narrow_unit * kUnitsOfC;
  update.start.exact = true;
  update.start.lattice = {stream_seed(seed_, kLargestOfC), kLargestOfC, kLargestOfC, unit, unit};
  return update;
}

const CsrMatrix& ExactOperands::a() {
  if (traits_.keeps_a) return original_;
  if (a_) return *a_;
  const std::int64_t longest = longest_row(original_);
  const std::optional<Lattice> lattice =
      make_lattice(seed_, longest, traits_.precision, traits_.sum_bits);
  if (!lattice)
    throw NotExact(fmt::format("a row of {} nonzeros is too long to be exact in sums of {} bits",
                               longest, traits_.sum_bits));
  lattice_ = *lattice;
  keeps_zeros_ = given_b_ != nullptr && !only_zero_products(original_, *given_b_);
  a_ = traits_.binary ? original_ : with_lattice_values(original_, row_ids_, lattice_);
  if (has_block_scales(traits_.precision))
    a_->block_scales =
        exact_block_scales(scales_of_a(a_->rows, a_->cols), stream_seed(seed_, kStreamA));
  return *a_;
}

const ExactOperands::OnDevice& ExactOperands::on_device(const Problem& problem, Device& device,
                                                        std::int64_t members) {
  OnDevice& made = on_device_[{device.info().kind, problem.n, problem.layout}];
  if (made.reference) return made;
  made.a = &a();
  made.row_ids = row_ids_;
  if (members > 1) {
    if (!diagonal_) diagonal_ = on_diagonal(a(), row_ids_, members);
    made.a = &diagonal_->a;
    made.row_ids = diagonal_->row_ids;
  }
  made.b = make_operand_b(made.a->cols, problem.shape(), problem.precision, traits_.packed);
  made.b_memory = device.allocate(made.b.bytes());
  made.b.data = made.b_memory.data();
  if (has_block_scales(problem.precision)) {
    made.scales_memory = device.upload(
        exact_block_scales(scales_of_b(made.b.rows, made.b.cols), stream_seed(seed_, kStreamB)));
    made.b.block_scales = made.scales_memory.as<float>();
  }
  fill(made.b, problem.precision, device);
  made.reference = make_reference(*made.a, made.row_ids, made.b, device);
  return made;
}

void ExactOperands::fill(const DenseView& b, Precision precision, Device& device) {
  if (traits_.keeps_a) {
    if (!one_product_b_) {
      // Here and, while it is rounded, in the type of B.
      const auto value_bytes = static_cast<double>(std::max(sizeof(float), bytes_of(b.type)));
      const double bytes = 2 * value_bytes * static_cast<double>(b.rows) * b.cols;
      if (bytes > static_cast<double>(available_memory_bytes())) throw std::bad_alloc();
      one_product_b_ = with_one_product(original_, b.cols, stream_seed(seed_, kStreamB));
      if (!one_product_b_) throw NotExact("A has values that are not finite");
    }
    upload_rounded(*one_product_b_, b, precision, device);
  } else if (keeps_zeros_)
    upload_rounded(with_lattice_values(*given_b_, lattice_), b, precision, device);
  else fill_members(b, device);
}

// Which factor of a product has many bits depends on its column of A, so that the rows of each
// member begin anew. With other ends of the range they have values of their own.
void ExactOperands::fill_members(const DenseView& b, Device& device) const {
  const std::int64_t members =
      b.layout == Layout::col_major || original_.cols == 0 ? 1 : b.rows / original_.cols;
  for (std::int64_t i = 0; i < members; ++i) {
    Lattice lattice = lattice_;
    lattice.wide = std::max<std::int64_t>(lattice.wide - i, 1);
    lattice.narrow = std::max<std::int64_t>(lattice.narrow - i, 1);
    device.fill_lattice(member_of(b, members, i), lattice);
  }
}

ExactOutcome run_exact_test(const Kernel& kernel, Problem problem, ExactOperands& operands,
                            std::unique_ptr<Prepared>& prepared, const DenseView& c, Device& device,
                            const std::function<void()>& take_c, const Update& update,
                            std::int64_t members) {
  const double start = steady_seconds();
  ExactOutcome outcome;
  ExactTest& test = outcome.test;
  const auto timed = [&](const auto& call) {
    const OwnSeconds since(launching_threads(device.info().kind));
    call();
    device.synchronize();
    outcome.kernel_ms += since.passed() * 1e3;
  };
  try {
    problem.a = &operands.a();
    const Update exact = operands.update(update);
    problem.on_device = nullptr;
    const ExactOperands::OnDevice& made = operands.on_device(problem, device, members);
    problem.ld_b = made.b.ld;
    problem.ld_c = c.ld;
    StageTimer not_counted;
    std::unique_ptr<Plan> plan;
    timed([&] {
      if (!prepared)
        prepared = kernel.prepare(problem.operand(), problem.options, device, not_counted);
      plan = bind_members(*prepared, problem.shape(), members, not_counted);
      plan->inspect_b(made.b, not_counted);
    });
    std::optional<ScaledLaunches> launches(std::in_place, *plan, kernel.info(), device);
    const auto launch = [&] {
      start_c(c, exact, kernel.info(), device);
      timed([&] { launches->launch(made.b, c, {exact.alpha, exact.beta}, device.stream()); });
      if (take_c) take_c();
    };
    // The first launch has zeros in the same memory. A kernel that keeps a result, or a part of B,
    // from one launch to the next then gives a wrong result.
    device.fill_bytes(made.b.data, 0, made.b.bytes());
    launch();
    operands.fill(made.b, problem.precision, device);
    launch();
    launches.reset();
    timed([&] { plan.reset(); });
    operands.fill(made.b, problem.precision, device);  // for the reference, if a launch wrote to it
    made.reference->expect(exact);
    const Verdict verdict = made.reference->check_equal(c);
    test.passed = verdict.ok;
    if (!verdict.ok) {
      test.worst_row = verdict.worst_row;
      test.worst_col = verdict.worst_col;
    }
  } catch (const NotExact& error) {
    test.not_made = error.what();
  } catch (const Unsupported&) {
    throw;  // as in every other launch
  } catch (const OutOfMemory& error) {
    test.not_made = error.what();
  } catch (const std::bad_alloc&) {
    test.not_made = "out of host memory";
  } catch (const DeviceError& error) {
    throw DeviceError(fmt::format("exact test: {}", error.what()), error.device_lost());
  } catch (const std::exception& error) {
    throw Error(fmt::format("exact test: {}", error.what()));
  }
  if (!test.not_made.empty()) {
    prepared.reset();
    operands.release_memory();
  }
  test.ms = (steady_seconds() - start) * 1e3;
  return outcome;
}

}  // namespace spmmbench
