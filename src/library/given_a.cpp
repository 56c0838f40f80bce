#include "library/given_a.hpp"

#include <fmt/format.h>

#include <utility>

#include "core/transpose.hpp"
#include "gpu/download_csr.hpp"
#include "library/arguments.hpp"
#include "spmmbench/replacing.hpp"

namespace spmmbench {
namespace {

GivenCsr given_arrays(const spmmbench_csr& given, Precision precision, bool checked) {
  check_sizes(given);
  return {given.rows,
          given.cols,
          given.nnz,
          given.row_ptr,
          given.col_idx,
          given.values,
          is_wide(given.row_ptr_type),
          is_wide(given.col_idx_type),
          given.values == nullptr ? ElementType::f32 : read_element_type(given.value_type),
          is_scaled(precision) ? scale_of_given(given, "spmmbench_csr") : 1,
          checked};
}

}  // namespace

GivenA::GivenA(const spmmbench_csr& given, Precision precision, std::uint64_t flags, bool to_device,
               Device& device, Device& memory, StageTimer& stages)
    : precision_(precision), device_of_kernel_(device), nnz_(given.nnz) {
  const bool transposed = (flags & SPMMBENCH_TRANSPOSED) != 0;
  const bool on_gpu = device.info().kind == DeviceKind::cuda;
  if (on_gpu && given.memory == SPMMBENCH_CUDA) {
    const auto timed = stages.scope(transposed ? "transpose" : "check");
    const GivenCsr arrays = given_arrays(given, precision, (flags & SPMMBENCH_UNCHECKED) == 0);
    if ((flags & SPMMBENCH_CHECKED_LATE) != 0) {
      CsrReadAhead read =
          (transposed ? read_transposed_ahead : read_csr_ahead)(arrays, precision, device);
      keep_on_device(std::move(read.a));
      check_ = std::move(read.check);
      return;
    }
    keep_on_device(
        (transposed ? read_transposed_on_device : read_csr_on_device)(arrays, precision, device));
    return;
  }
  host_ = read_csr(given, precision, memory, &source_);
  if (transposed) {
    const auto timed = stages.scope("transpose");
    transpose_host(*host_, source_);
  }
  if (on_gpu && to_device) bring_to_device();
}

GivenA::GivenA(GivenA& a, std::uint64_t flags, StageTimer& stages)
    : precision_(a.precision_), device_of_kernel_(a.device_of_kernel_), nnz_(a.nnz_) {
  const auto timed = stages.scope("transpose");
  a.require_not_refused();
  if (a.reader_ != nullptr) a.reader_->bring_operand_up_to_date(device_of_kernel_.stream());
  if (!a.device_) {
    transpose_host(*a.host_, a.source_);
  } else if ((flags & SPMMBENCH_CHECKED_LATE) != 0) {
    CsrReadAhead made = transpose_ahead(*a.device_, device_of_kernel_);
    keep_on_device(std::move(made.a));
    check_ = std::move(made.check);
  } else {
    const bool waits = (flags & SPMMBENCH_UNCHECKED) == 0;
    keep_on_device(waits ? transpose_on_device(*a.device_, device_of_kernel_)
                         : enqueue_transpose(*a.device_, device_of_kernel_));
  }
}

void GivenA::transpose_host(const CsrMatrix& a, const std::vector<std::int64_t>& source_of_a) {
  std::vector<std::int64_t> source;
  CsrMatrix transposed = transpose(a, &source);
  for (std::int64_t& entry : source)
    if (!source_of_a.empty()) entry = source_of_a[entry];
  host_ = std::move(transposed);
  source_ = std::move(source);
}

void GivenA::bring_to_device() {
  keep_on_device({CsrOnDevice(*host_, precision_, device_of_kernel_), {}, host_->scale});
  if (!source_.empty())
    device_->source =
        device_of_kernel_.upload(std::vector<std::int32_t>(source_.begin(), source_.end()));
}

void GivenA::keep_on_device(ReorderedCsr a) {
  device_ = std::move(a);
  view_ = device_->a.view();
  view_.scale = device_->scale;
}

void GivenA::require_not_refused() const {
  if (!refusal_.empty()) throw Error(refusal_);
}

void GivenA::mark() {
  require_not_refused();
  if (check_) check_->mark();
}

void GivenA::finish_check() {
  require_not_refused();
  if (!check_) return;
  try {
    check_->finish(*device_);
  } catch (const Error& error) {
    refusal_ = error.what();
    throw;
  }
  check_.reset();
}

bool GivenA::is_symmetric() {
  finish_check();
  if (reader_ != nullptr) reader_->bring_operand_up_to_date(device_of_kernel_.stream());
  if (device_) return spmmbench::is_symmetric(view_, device_of_kernel_);
  return host_->rows == host_->cols && transpose(*host_) == *host_;
}

const CsrMatrix& GivenA::get() {
  finish_check();
  if (!host_) host_ = download(view_, device_of_kernel_);
  return *host_;
}

// A kernel that reads values in their own order and type brings them into the operand, too, at once
// or when it is asked.
void GivenA::take_from_device(const void* values, ElementType type, Stream stream,
                              Prepared& prepared) {
  auto* const reader = dynamic_cast<ReadsNewValues*>(&prepared);
  const bool is_read = type == ElementType::f32 || type == storage_type(precision_);
  if (reader != nullptr && is_read && device_->source.data() == nullptr) {
    reader_ = reader;
    return reader->read_values({values, nnz_, type, precision_, device_->a.values()}, stream);
  }
  convert_values(values, type, device_->source.as<std::int32_t>(), device_->a.values(), precision_,
                 nnz_, stream);
  prepared.take_values(stream);
}

void GivenA::replace_values(const void* values, ElementType type, std::int32_t memory,
                            Stream stream, Device& values_device, Prepared& prepared) {
  if (is_scaled(precision_) && type != storage_type(precision_))
    throw Unsupported(fmt::format("at {} the scale of A stays: new values are of {}",
                                  to_string(precision_), to_string(storage_type(precision_))));
  if (!device_) {
    const std::vector<double> read = read_values(values, nnz_, type, memory, values_device);
    for (std::int64_t i = 0; i < nnz_; ++i) {
      const double value = read[source_.empty() ? i : source_[i]];
      host_->values[i] = static_cast<float>(round_to(precision_, value));
      if (!host_->values64.empty()) host_->values64[i] = value;
    }
    prepared.take_values(stream);
  } else if (memory == SPMMBENCH_CUDA) {
    require_device_memory(values, nnz_ * static_cast<std::int64_t>(bytes_of(type)), "values",
                          device_of_kernel_);
    take_from_device(values, type, stream, prepared);
  } else {
    device_of_kernel_.wait_idle();  // launches that read the present values
    const Buffer copy = device_of_kernel_.allocate(nnz_ * bytes_of(type));
    device_of_kernel_.upload(copy.data(), values, copy.bytes());
    take_from_device(copy.data(), type, stream, prepared);
    device_of_kernel_.wait_idle();
  }
}

}  // namespace spmmbench
