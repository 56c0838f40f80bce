#include "run/matrix_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <new>
#include <utility>

#include "core/reads_transposed.hpp"
#include "core/steady_seconds.hpp"
#include "gpu/given_csr.hpp"
#include "measure/preparation.hpp"
#include "process/processors.hpp"
#include "run/failing.hpp"
#include "verify/reference.hpp"

namespace spmmbench {
namespace {

std::string reason_of(const std::exception& error) {
  return dynamic_cast<const std::bad_alloc*>(&error) ? "out of host memory" : error.what();
}

// A in device memory, copied as often as short preparations are made: the fastest copy counts.
CsrOnDevice fastest_copy(const CsrMatrix& a, Precision precision, Device& device) {
  CsrOnDevice fastest(a, precision, device);
  for (int i = 1; i < kShortPreparations; ++i) {
    if (fastest.view().upload_ms >= kShortPreparationMs || fastest.bytes() > device.free_bytes())
      break;
    CsrOnDevice next(a, precision, device);
    if (next.view().upload_ms < fastest.view().upload_ms) fastest = std::move(next);
  }
  return fastest;
}

}  // namespace

MatrixRun::MatrixRun(LoadedInput& loaded, const Cases& cases, const Protocol& protocol,
                     Machine& machine)
    : cases_(cases),
      protocol_(protocol),
      machine_(machine),
      host_b_(loaded.b ? &*loaded.b : nullptr),
      a_(std::move(loaded.a.csr)),
      transposed_(cases.load.transpose),
      transpose_ms_({{DeviceKind::host, loaded.transpose_ms}}) {}

// Frees what the new case does not share with the one before, then prepares A.
void MatrixRun::select(const PlannedCase& planned) {
  const KernelInfo info = planned.choice->info();
  const bool binary = info.binary;
  const auto bits_of = [&](const PlannedCase& of) {
    return exact_sum_bits(of.choice->info(), of.group->precision, of.group->c_type,
                          rounded(cases_.scalars, of.group->precision));
  };
  const bool new_a = !current_ || current_->reorder->to_string() != planned.reorder->to_string() ||
                     current_->group != planned.group ||
                     current_->choice->kernel->info().binary != binary;
  const bool new_test = new_a || bits_of(*current_) != bits_of(planned) ||
                        current_->choice->kernel->info().form.packed != info.form.packed;
  if (new_a || current_->choice != planned.choice) prepared_ = {};
  current_ = planned;
  if (!new_test) return;
  exact_.reset();
  if (new_a) {
    a_checksums_.clear();
    resident_.reset();
    operands_.clear();
    copy_.reset();
    diagonal_.reset();
    compulsory_.clear();
    found_ = std::make_shared<FoundInA>();
    a_error_.clear();
  }
  try {
    if (new_a) a_.select(*planned.reorder, planned.group->precision, binary);
    exact_.emplace(a_.csr(), a_.row_ids(), host_b_, cases_.load.seed,
                   ExactTraits{.binary = binary,
                               .sum_bits = bits_of(planned),
                               .packed = info.form.packed,
                               .precision = planned.group->precision});
  } catch (const std::exception& error) {
    a_error_ = fmt::format("reorder {}: {}", planned.reorder->to_string(), reason_of(error));
  }
}

MatrixRun::OnDevice& MatrixRun::on_device(const PlannedCase& planned, const CaseInput& input) {
  Device& device = *input.device;
  const Layout layout = input.problem.layout;
  const OperandForm& form = planned.choice->kernel->info().form;
  OnDevice& made = operands_[{device.info().kind, planned.n, layout, form}];
  if (made.reference) return made;
  const auto make = [&] {
    made.operands =
        make_operands(input.checked_a(), input.problem.n, planned.group->precision,
                      planned.group->c_type, layout, host_b_, cases_.load.seed, device, form);
    made.reference =
        make_reference(input.checked_a(), input.checked_row_ids(), made.operands.b, device, &copy_);
  };
  try {
    make();
  } catch (const DeviceError& error) {
    if (error.device_lost()) throw;
    made = {};  // try again, after freeing what is held for other N
    free_memory(made);
    make();
  }
  return made;
}

// Frees all operands but those that are needed, and the memory that their reference keeps for
// speed.
void MatrixRun::free_memory(const OnDevice& needed) {
  prepared_ = {};
  std::erase_if(operands_, [&](const auto& entry) { return &entry.second != &needed; });
  if (needed.reference) needed.reference->release_memory();
  if (exact_) exact_->release_memory();
}

void MatrixRun::release_memory() {
  prepared_ = {};
  resident_.reset();
  operands_.clear();
  copy_.reset();
  if (exact_) exact_->release_memory();
}

// What it takes to make A^T, on a GPU from A in its memory, as often as short preparations are
// made.
double MatrixRun::transpose_ms(Device& device) {
  const auto [entry, is_new] = transpose_ms_.try_emplace(device.info().kind);
  if (!is_new) return entry->second;
  const ReorderedCsr given =
      transpose_on_device({CsrOnDevice(a_.csr(), Precision::fp32, device), {}}, device);
  double fastest = std::numeric_limits<double>::infinity();
  for (int i = 0; i < kShortPreparations; ++i) {
    const double start = steady_seconds();
    (void)transpose_on_device(given, device);
    fastest = std::min(fastest, (steady_seconds() - start) * 1e3);
  }
  return entry->second = fastest;
}

void MatrixRun::note_a(const PlannedCase& planned, ResultRow& row) const {
  if (!a_.row_ids().empty()) add_stages(a_.reorder_stages(), row);
  if (a_.log2_scale() != 0) row.metrics["a_scale_log2"] = a_.log2_scale();
  if (a_.rounded_to_zero() != 0)
    row.metrics["a_rounded_to_zero"] = static_cast<double>(a_.rounded_to_zero());
  if (a_.not_finite() != 0) row.metrics["a_not_finite"] = static_cast<double>(a_.not_finite());
  if (has_block_scales(planned.group->precision))
    row.metrics["a_scales"] = static_cast<double>(a_.csr().block_scales.size());
  else if (is_scaled(planned.group->precision)) row.metrics["a_scale"] = a_.csr().scale;
}

void MatrixRun::describe(const PlannedCase& planned, Device& device, CaseInput& input) {
  const Precision precision = planned.group->precision;
  const ElementType c_type = planned.group->c_type;
  input.choice = planned.choice;
  input.device = &device;
  input.problem.a = &a_.csr();
  input.problem.row_ids = a_.row_ids();
  input.reorder = *planned.reorder;
  input.a_memory = protocol_.a_memory;
  input.problem.n = planned.n;
  input.problem.precision = precision;
  input.problem.c_type = c_type;
  input.problem.layout = layout_for(planned.choice->info(), cases_.layout, planned.n);
  if (input.problem.layout == Layout::col_major) input.problem.n *= cases_.batch;
  else input.members = cases_.batch;
  input.problem.options = planned.choice->options;
  input.problem.orders = &a_.orders();
  input.prepared = &prepared_;
  input.found = found_;
  if (!protocol_.save_failing.empty())
    input.save_wrong = [&](const ResultRow& wrong, const Problem& problem, const DenseView& b,
                           const Update& update) {
      return save_failing(protocol_.save_failing, wrong, problem, b, input.operands->c, update,
                          device);
    };
  const Scalars scalars = rounded(cases_.scalars, precision);
  input.update = {scalars.alpha, scalars.beta, drawn_c(c_type, cases_.load.seed)};
  input.b_is_drawn = host_b_ == nullptr;
  input.repeat_check = protocol_.repeat_check;
  input.calls_curve = protocol_.calls_curve;
  input.one_launch = protocol_.one_launch;
  if (!protocol_.one_launch) input.exact = &*exact_;
  const auto [bytes, is_new] = compulsory_.try_emplace(planned.n);
  if (is_new) {
    if (!referenced_) referenced_ = count_referenced_columns(a_.csr());
    bytes->second = compulsory_bytes(a_.csr(), planned.n * cases_.batch, precision, c_type,
                                     scalars.beta != 0, referenced_);
  }
  input.compulsory_bytes = bytes->second;
  // A copy bandwidth that the parent measured belongs to its main device.
  const double copy_rate = protocol_.rates.copy_bytes_per_second > 0 && &device == &machine_.main()
                               ? protocol_.rates.copy_bytes_per_second
                               : device.copy_bytes_per_second();
  input.bound_us = bytes->second / copy_rate * 1e6;
}

void MatrixRun::add_operands(const PlannedCase& planned, CaseInput& input, ResultRow& row) {
  const Precision precision = planned.group->precision;
  Device& device = *input.device;
  if (input.members > 1) {
    if (!diagonal_) diagonal_ = on_diagonal(a_.csr(), a_.row_ids(), input.members);
    input.diagonal = &*diagonal_;
  }
  OnDevice& made = on_device(planned, input);
  if (device.info().kind == DeviceKind::cuda) {
    if (!resident_) {
      resident_ = fastest_copy(a_.csr(), precision, device);
      resident_view_ = resident_->view();
      if (protocol_.a_memory == DeviceKind::cuda) resident_view_.upload_ms = 0;  // it is there
    }
    input.problem.on_device = &resident_view_;
  }
  if (transposed_ && !reads_transposed(planned.choice->kernel->info()))
    row.stages_ms["transpose"] = transpose_ms(device);
  const auto [sum, is_first] = a_checksums_.try_emplace(device.info().kind);
  if (is_first) sum->second = checksum_of_a(input.problem, device);
  input.a_checksum = sum->second;
  input.operands = &made.operands;
  if (has_block_scales(precision))
    row.metrics["b_scales"] = static_cast<double>(made.operands.scales_of_b.size());
  else if (is_scaled(precision)) row.metrics["b_scale"] = made.operands.b.scale;
  input.problem.ld_b = made.operands.b.ld;
  input.problem.ld_c = made.operands.c.ld;
  input.reference = made.reference.get();
  input.free_memory = [this, &made] { free_memory(made); };
}

void MatrixRun::run(const PlannedCase& planned, ResultRow& row) {
  // What one kernel chose is not for the next.
  thread_local const Processors at_first;
  at_first.restore();
  const auto fail = [&row](const std::string& reason) {
    row.status = Status::failed;
    row.reason = reason;
  };
  const KernelInfo& info = planned.choice->kernel->info();
  Device& device = info.device == DeviceKind::cuda ? machine_.main() : *machine_.host;
  const auto lose = [&] { machine_.lost_in = row.kernel; };
  if (device.info().kind == DeviceKind::cuda && !machine_.lost_in.empty())
    return fail(
        fmt::format("device lost in {}; --isolate would keep it to that row", machine_.lost_in));
  CaseInput input;
  try {
    select(planned);
    if (!a_error_.empty()) return fail(a_error_);
    note_a(planned, row);
    describe(planned, device, input);
    // A kernel of another kind of device is skipped by run_case and needs no operands.
    if (device.info().kind == info.device) add_operands(planned, input, row);
  } catch (const DeviceError& error) {
    if (error.device_lost()) lose();
    input.operands_error = error.what();
  } catch (const std::exception& error) {
    input.operands_error = reason_of(error);
  }
  if (input.device == nullptr) return fail(input.operands_error);
  if (!run_case(input, protocol_.limits, row)) lose();
  // What the kernel has made from A^T is the input.
  if (transposed_ && reads_transposed(info)) row.stages_ms.erase("transpose");
}

}  // namespace spmmbench
