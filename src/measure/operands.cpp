#include "measure/operands.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "core/dense_bytes.hpp"
#include "spmmbench/random.hpp"
#include "verify/reference.hpp"

namespace spmmbench {

constexpr unsigned char kNan = 0xFF;    // all ones is a NaN in fp32, fp16 and bf16
constexpr unsigned char kLarge = 0x7A;  // 3.3e35 in fp32 and bf16, 53,056 in fp16

void upload_rounded(const DenseMatrix& host, const DenseView& view, Precision precision,
                    Device& device) {
  std::vector<unsigned char> image(view.bytes(), kNan);
  const std::size_t pitch = static_cast<std::size_t>(view.ld) * bytes_of(view.type);
#pragma omp parallel for schedule(static)
  for (std::int64_t line = 0; line < view.lines(); ++line)
    for (std::int64_t at = 0; at < view.line_length(); ++at) {
      const std::int64_t i = view.layout == Layout::row_major ? line : at;
      const std::int64_t j = view.layout == Layout::row_major ? at : line;
      store_element(view.type, image.data() + line * pitch, at,
                    round_to(precision, host.values[i * host.cols + j]));
    }
  device.upload(view.data, image.data(), image.size());
}

namespace {

DenseView packed_if(bool packed, DenseView view) {
  if (packed) view.ld = view.line_length();
  return view;
}

constexpr unsigned char kGuard = 0xA5;  // no special value in any element type

unsigned char* after_c(const Operands& operands) {
  return static_cast<unsigned char*>(operands.c.data) + operands.c.bytes();
}

void mend_guards(const Operands& operands, Device& device) {
  device.fill_bytes(operands.c_memory.data(), kGuard, kGuardBytes);
  device.fill_bytes(after_c(operands), kGuard, kGuardBytes);
}

}  // namespace

void poison(const DenseView& c, const KernelInfo& kernel, Device& device, Poison with) {
  device.fill_bytes(c.data, with == Poison::nan ? kNan : kLarge, c.bytes());
  if (kernel.ignores_stream) device.synchronize();
}

std::string damage_around_c(const Operands& operands, Device& device) {
  std::vector<unsigned char> before(kGuardBytes), after(kGuardBytes);
  device.download(before.data(), operands.c_memory.data(), kGuardBytes);
  device.download(after.data(), after_c(operands), kGuardBytes);
  device.synchronize();
  const auto damaged = [](unsigned char byte) { return byte != kGuard; };
  const auto first_after = std::find_if(after.begin(), after.end(), damaged);
  const auto last_before = std::find_if(before.rbegin(), before.rend(), damaged);
  if (first_after == after.end() && last_before == before.rend()) return {};
  const auto bytes = std::count_if(before.begin(), before.end(), damaged) +
                     std::count_if(after.begin(), after.end(), damaged);
  mend_guards(operands, device);
  return first_after != after.end()
             ? fmt::format("wrote {} bytes outside of C, {} bytes after its end", bytes,
                           first_after - after.begin())
             : fmt::format("wrote {} bytes outside of C, {} bytes before its begin", bytes,
                           last_before - before.rbegin() + 1);
}

bool wrote_to_b(const Operands& operands, Device& device) {
  if (checksum(operands.b, device) == operands.b_checksum) return false;
  operands.fill_b();
  return true;
}

DenseView make_operand_b(std::int64_t k, const Shape& shape, Precision precision, bool packed) {
  return packed_if(packed, make_b_view(k, shape.n, shape.layout, storage_type(precision)));
}

Operands make_operands(const CsrMatrix& a, std::int64_t n, Precision precision, ElementType c_type,
                       Layout layout, const DenseMatrix* host_b, std::uint64_t seed, Device& device,
                       bool packed) {
  Operands operands;
  operands.b = make_operand_b(a.cols, {n, c_type, layout}, precision, packed);
  operands.c = packed_if(packed, make_dense_view(a.rows, n, layout, c_type));
  const std::size_t c_bytes = saturated_bytes(operands.c) + 2 * kGuardBytes;
  // On the host, a given B is there twice while it is rounded.
  const bool twice = host_b != nullptr && device.info().kind == DeviceKind::host;
  const std::size_t needed = saturated_bytes(operands.b) * (twice ? 2 : 1) + c_bytes;
  if (needed > device.free_bytes()) throw OutOfMemory(out_of_memory(device, needed));
  operands.b_memory = device.allocate(operands.b.bytes());
  operands.c_memory = device.allocate(c_bytes);
  operands.b.data = operands.b_memory.data();
  operands.c.data = operands.c_memory.as<unsigned char>() + kGuardBytes;
  mend_guards(operands, device);
  operands.fill_b = [b = operands.b, host_b, precision, seed, &device] {
    if (host_b != nullptr) upload_rounded(*host_b, b, precision, device);
    else device.fill_uniform(b, stream_seed(seed, kStreamB), precision);
    device.synchronize();
  };
  operands.fill_b();
  operands.b_checksum = checksum(operands.b, device);
  return operands;
}

std::string out_of_memory(const Device& device, std::size_t needed) {
  constexpr double kGib = std::size_t{1} << 30;
  return fmt::format("out of {} memory: needs {:.2f} GiB, {:.2f} GiB free",
                     device.info().kind == DeviceKind::host ? "host" : "device",
                     static_cast<double>(needed) / kGib,
                     static_cast<double>(device.free_bytes()) / kGib);
}

}  // namespace spmmbench
