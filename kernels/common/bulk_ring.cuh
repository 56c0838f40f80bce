#pragma once
// A ring through which a run of bytes passes from global memory, unit by unit. Its readers are a
// warp or a CTA. They ask for the next unit when all of them have read the one that it replaces, so
// there are no barriers for empty stages:
//
//   begin(run)    request() for every stage   next()  read a unit   all have read it   request()
//                                               ^                                         |
//                                               +-----------------------------------------+

#include <cstdint>

#include "common/mbarrier.cuh"
#include "ptx/cuda_ptx.cuh"

namespace spmmbench {

// Bytes: the type that counts the bytes of a run.
template <int kStages, int kUnitBytes, class Bytes = int>
class BulkRing {
 public:
  // `full`: a barrier for each stage, which expects one arrival.
  __device__ BulkRing(char* stages, std::uint64_t* full) : stages_(stages), full_(full) {}

  // A new run, when the one before was read to its end.
  __device__ void begin(const char* from, Bytes bytes) {
    from_ = from;
    left_ = bytes;
  }
  // Whether a unit is left to ask for.
  __device__ bool more() const { return left_ > 0; }
  // All readers call this. One of them, the issuer, starts the copy of the next unit, if one is
  // left.
  __device__ void request(bool issuer) {
    if (left_ <= 0) return;
    if (issuer) {
      const auto bytes = static_cast<std::uint32_t>(min(left_, Bytes{kUnitBytes}));
      std::uint64_t* const full = full_ + fill_stage_;
      mbarrier::arrive_expect(full, bytes);
      ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, stages_ + fill_stage_ * kUnitBytes,
                         from_, bytes, full);
    }
    from_ += kUnitBytes;
    left_ -= kUnitBytes;
    fill_stage_ = fill_stage_ + 1 == kStages ? 0 : fill_stage_ + 1;
  }
  // Waits for the next unit.
  __device__ const char* next() {
    at_.wait_full(full_);
    const char* const unit = stages_ + at_.stage * kUnitBytes;
    at_.advance(kStages);
    return unit;
  }

 private:
  char* stages_;
  std::uint64_t* full_;
  const char* from_ = nullptr;
  Bytes left_ = 0;
  int fill_stage_ = 0;
  mbarrier::Cursor at_;
};

}  // namespace spmmbench
