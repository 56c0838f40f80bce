#pragma once
// A as a caller of the C interface gave it, held for everything that is prepared from it.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gpu/given_csr.hpp"
#include "spmmbench/kernel.hpp"
#include "spmmbench/matrix.hpp"
#include "spmmbench/plugin.h"
#include "spmmbench/problem.hpp"
#include "spmmbench/replacing.hpp"
#include "spmmbench/stage_timer.hpp"

namespace spmmbench {

// Where A lies for a kernel: on the host, on the kernel's GPU, or on both.
class GivenA final : private LazyCsr {
 public:
  // Copies, checks and rounds A, or A^T. For a kernel on a GPU an A in its memory stays there, and
  // any A is brought there where `to_device`. `flags`: of spmmbench_problem; with CHECKED_LATE an A
  // in its memory is read ahead. `device`: of the kernel. `memory`: where the arrays are. Stages:
  // "check" on a GPU, "transpose". Throws Error, DeviceError.
  GivenA(const spmmbench_csr& given, Precision precision, std::uint64_t flags, bool to_device,
         Device& device, Device& memory, StageTimer& stages);

  // The transpose of `a` as it is there, where it lies. On a GPU it is only enqueued with UNCHECKED
  // or CHECKED_LATE among `flags`, and with CHECKED_LATE pending until the GPU has made it.
  GivenA(GivenA& a, std::uint64_t flags, StageTimer& stages);

  std::int64_t rows() const { return device_ ? view_.rows : host_->rows; }
  std::int64_t cols() const { return device_ ? view_.cols : host_->cols; }
  // Copied from the GPU when it is first read, where A lies there alone.
  HostCsr host() { return host_ ? HostCsr(&*host_) : HostCsr(static_cast<LazyCsr*>(this)); }
  const DeviceCsr* on_device() const { return device_ ? &view_ : nullptr; }

  // Throw Error where A was found to be no matrix. What is enqueued after `mark` is not waited for
  // by `finish_check`.
  void require_not_refused() const;
  void mark();
  // Waits for a pending check. Throws Error where A is no matrix, at every call.
  void finish_check();

  // Whether it equals its transpose.
  bool is_symmetric();
  std::size_t device_bytes() const {
    return device_ ? device_->a.bytes() + device_->source.bytes() : 0;
  }

  // Other values for the entries as they were given: here and in `prepared`, on a GPU in the order
  // of `stream`. Values on the host are there when this returns.
  void replace_values(const void* values, ElementType type, std::int32_t memory, Stream stream,
                      Device& values_device, Prepared& prepared);

 private:
  const CsrMatrix& get() override;
  void transpose_host(const CsrMatrix& a, const std::vector<std::int64_t>& source);
  void bring_to_device();
  void keep_on_device(ReorderedCsr a);
  void take_from_device(const void* values, ElementType type, Stream stream, Prepared& prepared);

  Precision precision_;
  Device& device_of_kernel_;
  std::int64_t nnz_ = 0;
  std::optional<CsrMatrix> host_;
  std::vector<std::int64_t> source_;  // of the entries on the host; empty: as they were given
  std::optional<ReorderedCsr> device_;
  DeviceCsr view_;  // of device_
  std::unique_ptr<PendingCheck> check_;
  std::string refusal_;               // what the check has found
  ReadsNewValues* reader_ = nullptr;  // whose values may be newer than those of device_
};

}  // namespace spmmbench
