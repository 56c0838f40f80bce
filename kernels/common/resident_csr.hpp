#pragma once
// Plain CSR on the device: the caller's arrays where A lies there already, else a copy of A.

#include <cstddef>
#include <optional>
#include <utility>

#include "gpu/csr_on_device.hpp"
#include "spmmbench/problem.hpp"
#include "spmmbench/stage_timer.hpp"

namespace spmmbench {

// Stage "upload": what others spent on the copy of A on the device, which the caller uses.
inline void count_copy(const DeviceCsr& there, StageTimer& stages) {
  if (there.upload_ms > 0) stages.add_once("A on the device", "upload", there.upload_ms);
}

class ResidentCsr {
 public:
  // Stage "upload": the copy, made here or by others. The caller's arrays outlive this.
  ResidentCsr(const SparseOperand& a, Device& device, StageTimer& stages) {
    if (a.on_device != nullptr) {
      view_ = *a.on_device;
      upload_ms_ = view_.upload_ms;
      count_copy(view_, stages);
      return;
    }
    const auto timed = stages.scope("upload");
    view_ = copy_.emplace(*a.a, a.precision, device).view();
    upload_ms_ = std::exchange(view_.upload_ms, 0);  // it is in the stage already
  }

  const DeviceCsr& view() const { return view_; }
  std::size_t copied_bytes() const { return copy_ ? copy_->bytes() : 0; }
  double upload_ms() const { return upload_ms_; }  // of the copy, made here or by others

 private:
  std::optional<CsrOnDevice> copy_;
  DeviceCsr view_;
  double upload_ms_ = 0;
};

// What the copy takes, where one is made.
inline std::size_t resident_bytes(const SparseOperand& a) {
  if (a.on_device != nullptr) return 0;
  return static_cast<std::size_t>(a.m() + 1) * sizeof(std::int64_t) +
         static_cast<std::size_t>(a.nnz()) *
             (sizeof(std::int32_t) + bytes_of(storage_type(a.precision)));
}

}  // namespace spmmbench
