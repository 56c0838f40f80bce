#include "measure/exact_test.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <new>
#include <type_traits>
#include <utility>

#include "core/available_memory.hpp"
#include "core/block_scales.hpp"
#include "core/matrix_memory.hpp"
#include "core/row_lengths.hpp"
#include "core/steady_seconds.hpp"
#include "gpu/backend.hpp"
#include "gpu/scaled_launches.hpp"
#include "gpu/upload_values.hpp"
#include "measure/operands.hpp"
#include "measure/preparation.hpp"
#include "spmmbench/error.hpp"
#include "spmmbench/picking.hpp"
#include "spmmbench/random.hpp"
#include "spmmbench/replacing.hpp"
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
  require_host_memory(memory_bytes(original_));
  keeps_zeros_ = given_b_ != nullptr && !only_zero_products(original_, *given_b_);
  if (traits_.binary) a_ = original_;
  else a_ = with_lattice_values(original_, row_ids_, lattice_);
  if (has_block_scales(traits_.precision))
    a_->block_scales =
        exact_block_scales(scales_of_a(a_->rows, a_->cols), stream_seed(seed_, kStreamA));
  return *a_;
}

bool ExactOperands::can_be_made() {
  try {
    (void)a();
    return true;
  } catch (const NotExact&) {
    return false;
  }
}

ExactOperands ExactOperands::with_sum_bits(int bits) const {
  ExactTraits traits = traits_;
  traits.sum_bits = bits;
  return {original_, row_ids_, given_b_, seed_, traits};
}

std::vector<const void*> ExactOperands::values(const SparseOperand& like, Device& device) {
  if (device.info().kind == DeviceKind::host) return {a().values.data(), a().values64.data()};
  if (values_memory_.data() == nullptr)
    values_memory_ = upload_values(device, a(), like.on_device->value_type);
  return {values_memory_.data()};
}

const DeviceCsr* ExactOperands::resident(const SparseOperand& like, Device& device) {
  if (like.on_device == nullptr || device.info().kind == DeviceKind::host) return nullptr;
  if (!a().block_scales.empty()) return nullptr;
  resident_ = *like.on_device;
  resident_.values = values(like, device).front();
  resident_.scale = a().scale;
  resident_.upload_ms = 0;
  return &resident_;
}

const ExactOperands::OnDevice& ExactOperands::on_device(const Problem& problem, Device& device,
                                                        std::int64_t members) {
  const DenseView b =
      make_operand_b(a().cols * members, problem.shape(), problem.precision, traits_.packed);
  const std::int64_t ld = problem.ld_b == 0 ? b.ld : problem.ld_b;
  OnDevice& made = on_device_[{device.info().kind, problem.n, problem.layout, ld}];
  if (made.reference) return made;
  made.a = &a();
  made.row_ids = row_ids_;
  if (members > 1) {
    if (!diagonal_) diagonal_ = on_diagonal(a(), row_ids_, members);
    made.a = &diagonal_->a;
    made.row_ids = diagonal_->row_ids;
  }
  made.b = b;
  made.b.ld = ld;
  made.b_memory = device.allocate(made.b.bytes());
  made.b.data = made.b_memory.data();
  if (has_block_scales(problem.precision)) {
    made.scales_memory = device.upload(
        exact_block_scales(scales_of_b(made.b.rows, made.b.cols), stream_seed(seed_, kStreamB)));
    made.b.block_scales = made.scales_memory.as<float>();
  }
  fill(made.b, problem.precision, device);
  made.reference = make_reference(*made.a, made.row_ids, made.b, device,
                                  members > 1 ? nullptr : &copies_[device.info().kind]);
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

namespace {

// The time that a kernel takes in calls of its own.
class KernelTime {
 public:
  explicit KernelTime(Device& device) : device_(device) {}
  template <class Call>
  void operator()(const Call& call) {
    const OwnSeconds since(launching_threads(device_.info().kind));
    call();
    device_.synchronize();
    ms_ += since.passed() * 1e3;
  }
  double ms() const { return ms_; }

 private:
  Device& device_;
  double ms_ = 0;
};

using Launch = std::function<void(const DenseView& b, const Scalars& scalars)>;

// Launches twice, and compares what the second launch leaves. The first has zeros in the same
// memory. A kernel that keeps a result, or a part of B, from one launch to the next then gives a
// wrong result. `end` ends what was made for the launches.
void compare_exactly(const ExactSetting& in, const ExactOperands::OnDevice& made,
                     const Update& exact, const KernelInfo& kernel, KernelTime& timed,
                     const Launch& launch_product, const std::function<void()>& end,
                     ExactTest& test) {
  const auto launch = [&] {
    start_c(in.c, exact, kernel, in.device);
    timed([&] { launch_product(made.b, {exact.alpha, exact.beta}); });
    if (in.take_c) in.take_c();
  };
  in.device.fill_bytes(made.b.data, 0, made.b.bytes());
  launch();
  in.operands.fill(made.b, in.problem.precision, in.device);
  launch();
  end();
  // for the reference, if a launch wrote to it
  in.operands.fill(made.b, in.problem.precision, in.device);
  made.reference->expect(exact);
  const Verdict verdict = made.reference->check_equal(in.c);
  test.passed = verdict.ok;
  if (verdict.ok) return;
  test.worst_row = verdict.worst_row;
  test.worst_col = verdict.worst_col;
}

// Makes the test, and says why where that cannot be. Throws what else the kernel fails with.
template <class Make>
void make_test(const Make& make, ExactTest& test) {
  const double start = steady_seconds();
  try {
    make();
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
  test.ms = (steady_seconds() - start) * 1e3;
}

// Memory of A's values, where a kernel reads them (Prepared::take_values). It is not constant,
// though kernels see it so.
struct ValueArray {
  void* data;
  std::size_t bytes;
};

std::vector<ValueArray> values_of(const SparseOperand& a, DeviceKind kind) {
  if (kind == DeviceKind::cuda) {
    const DeviceCsr& csr = *a.on_device;
    return {{const_cast<void*>(csr.values),
             static_cast<std::size_t>(csr.nnz) * bytes_of(csr.value_type)}};
  }
  const auto array = [](const auto& values) {
    return ValueArray{const_cast<std::remove_cvref_t<decltype(values[0])>*>(values.data()),
                      values.size() * sizeof values[0]};
  };
  return {array(a.a->values), array(a.a->values64)};
}

void copy_within(const void* from, std::size_t bytes, void* to, Device& device) {
  if (bytes == 0) return;
  if (device.info().kind == DeviceKind::cuda) cuda_copy(from, bytes, to, device);
  else device.upload(to, from, bytes);
}

// Other values in A, which others use too, until the end of the block at the latest.
class OtherValues {
 public:
  OtherValues(const SparseOperand& a, const std::vector<const void*>& others, Device& device)
      : arrays_(values_of(a, device.info().kind)), device_(device) {
    for (const ValueArray& array : arrays_) {
      own_.push_back(device.allocate(array.bytes));
      copy_within(array.data, array.bytes, own_.back().data(), device);
    }
    for (std::size_t i = 0; i < arrays_.size(); ++i)
      copy_within(others[i], arrays_[i].bytes, arrays_[i].data, device);
  }
  OtherValues(const OtherValues&) = delete;
  ~OtherValues() {
    try {
      put_back();
    } catch (const std::exception&) {  // of a device that is lost; else the checksum of A tells
    }
  }
  void put_back() {
    const std::vector<Buffer> own = std::exchange(own_, {});
    for (std::size_t i = 0; i < own.size(); ++i)
      copy_within(own[i].data(), own[i].bytes(), arrays_[i].data, device_);
    device_.synchronize();
  }

 private:
  std::vector<ValueArray> arrays_;
  std::vector<Buffer> own_;
  Device& device_;
};

// The plans of the kernel that another has picked.
class OfPick final : public Prepared {
 public:
  OfPick(BindsPick& a, const std::string& pick) : a_(a), pick_(pick) {}
  std::unique_ptr<Plan> bind(const Shape& shape, StageTimer& stages) override {
    return a_.bind_pick(pick_, shape, stages);
  }

 private:
  BindsPick& a_;
  const std::string& pick_;
};

std::unique_ptr<Plan> bind_plan(const ExactSetting& in, Prepared& a, StageTimer& stages) {
  auto* const picks = in.pick.empty() ? nullptr : dynamic_cast<BindsPick*>(&a);
  if (picks == nullptr) return bind_members(a, in.problem.shape(), in.members, stages);
  OfPick picked(*picks, in.pick);
  return bind_members(picked, in.problem.shape(), in.members, stages);
}

}  // namespace

ExactOutcome run_exact_test(const Kernel& kernel, const ExactSetting& setting,
                            std::unique_ptr<Prepared>& prepared) {
  ExactSetting in = setting;
  ExactOutcome outcome;
  KernelTime timed(in.device);
  const auto make = [&] {
    in.problem.a = &in.operands.a();
    const Update exact = in.operands.update(in.update);
    in.problem.on_device = in.operands.resident(in.problem, in.device);
    outcome.from_same_memory =
        (in.problem.on_device == nullptr) == (setting.problem.on_device == nullptr);
    in.problem.ld_b = 0;  // any
    const ExactOperands::OnDevice& made = in.operands.on_device(in.problem, in.device, in.members);
    in.problem.ld_b = made.b.ld;
    in.problem.ld_c = in.c.ld;
    StageTimer not_counted;
    std::unique_ptr<Plan> plan;
    timed([&] {
      if (!prepared)
        prepared = kernel.prepare(in.problem.operand(), in.problem.options, in.device, not_counted);
      plan = bind_plan(in, *prepared, not_counted);
      plan->inspect_b(made.b, not_counted);
    });
    std::optional<ScaledLaunches> launches(std::in_place, *plan, kernel.info(), in.device);
    compare_exactly(
        in, made, exact, kernel.info(), timed,
        [&](const DenseView& b, const Scalars& scalars) {
          launches->launch(b, in.c, scalars, in.device.stream());
        },
        [&] {
          launches.reset();
          timed([&] { plan.reset(); });
        },
        outcome.test);
  };
  make_test(make, outcome.test);
  if (!outcome.test.not_made.empty()) {
    prepared.reset();
    in.operands.release_memory();
  }
  outcome.kernel_ms = timed.ms();
  return outcome;
}

ExactTest test_timed_plan(const ExactSetting& in, const KernelInfo& kernel, PreparedA& prepared,
                          ScaledLaunches& launches) {
  ExactTest test;
  test.timed_plan = true;
  KernelTime timed(in.device);
  const auto take_values = [&] {
    timed([&] { prepared.kernel_a->take_values(in.device.stream()); });
  };
  const auto make = [&] {
    (void)in.operands.a();  // or there are none
    const Update exact = in.operands.update(in.update);
    const ExactOperands::OnDevice& made = in.operands.on_device(in.problem, in.device, in.members);
    OtherValues values(in.problem, in.operands.values(in.problem, in.device), in.device);
    prepared.has_other_values = true;
    take_values();
    compare_exactly(
        in, made, exact, kernel, timed,
        [&](const DenseView& b, const Scalars& scalars) {
          launches.launch(b, in.c, scalars, in.device.stream());
        },
        [] {}, test);
    values.put_back();
    take_values();
    if (auto* const kept = dynamic_cast<KeepsForNewValues*>(prepared.kernel_a.get()))
      kept->free_kept_for_new_values();
    prepared.has_other_values = false;
  };
  make_test(make, test);
  if (!test.not_made.empty()) {
    prepared.exact_a.reset();  // which may refer to it
    in.operands.release_memory();
  }
  return test;
}

}  // namespace spmmbench
