// The functions of gpu/given_csr.hpp in a build without CUDA.

#include "gpu/given_csr.hpp"

#include "spmmbench/error.hpp"

namespace spmmbench {

ReorderedCsr read_csr_on_device(const GivenCsr&, Precision, Device&) {
  throw DeviceError("built without CUDA", false);
}

ReorderedCsr read_transposed_on_device(const GivenCsr&, Precision, Device&) {
  throw DeviceError("built without CUDA", false);
}

CsrReadAhead read_csr_ahead(const GivenCsr&, Precision, Device&) {
  throw DeviceError("built without CUDA", false);
}

CsrReadAhead read_transposed_ahead(const GivenCsr&, Precision, Device&) {
  throw DeviceError("built without CUDA", false);
}

CsrReadAhead transpose_ahead(const ReorderedCsr&, Device&) {
  throw DeviceError("built without CUDA", false);
}

ReorderedCsr enqueue_transpose(const ReorderedCsr&, Device&) {
  throw DeviceError("built without CUDA", false);
}

bool is_symmetric(const DeviceCsr&, Device&) { throw DeviceError("built without CUDA", false); }

ReorderedCsr transpose_on_device(const DeviceCsr&, Device&) {
  throw Error("this build has no CUDA");
}

ReorderedCsr transpose_on_device(const ReorderedCsr&, Device&) {
  throw DeviceError("built without CUDA", false);
}

void convert_values(const void*, ElementType, const std::int32_t*, void*, Precision, std::int64_t,
                    Stream) {
  throw DeviceError("built without CUDA", false);
}

void require_device_memory(const void*, std::int64_t, const char*, Device&) {
  throw DeviceError("built without CUDA", false);
}

}  // namespace spmmbench
