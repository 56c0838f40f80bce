#include "measure/operands.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "core/block_scales.hpp"
#include "core/dense_bytes.hpp"
#include "core/greatest_magnitude.hpp"
#include "core/numbered.hpp"
#include "gpu/backend.hpp"
#include "measure/rows_of_b.hpp"
#include "spmmbench/random.hpp"
#include "verify/reference.hpp"

namespace spmmbench {

constexpr std::uint64_t kStreamC = 0xC;  // of a seed, besides those of random.hpp
constexpr unsigned char kNan = 0xFF;     // all ones is a NaN in every element type
constexpr unsigned char kLarge = 0x7A;   // 3.3e35 in fp32 and bf16, 53,056 in fp16, 7e281 in fp64

namespace {

// Element (i, j) as it is stored.
double rounded_element(const DenseMatrix& host, std::int64_t i, std::int64_t j, float scale,
                       const std::vector<float>& block_scales, Precision precision) {
  const double value = host.value(i * host.cols + j) / scale;
  return round_to(precision,
                  block_scales.empty() ? value : value / block_scales[scale_at_b(i, j, host.cols)]);
}

}  // namespace

void upload_rounded(const DenseMatrix& host, const DenseView& view, Precision precision,
                    Device& device, const std::vector<float>& block_scales) {
  std::vector<unsigned char> image(view.bytes(), kNan);
  const std::size_t pitch = static_cast<std::size_t>(view.ld) * bytes_of(view.type);
#pragma omp parallel for schedule(static)
  for (std::int64_t line = 0; line < (host.values.empty() ? 0 : view.lines()); ++line)
    for (std::int64_t at = 0; at < view.line_length(); ++at) {
      const std::int64_t i = (view.layout == Layout::row_major ? line : at) % host.rows;
      const std::int64_t j = (view.layout == Layout::row_major ? at : line) % host.cols;
      store_element(view.type, image.data() + line * pitch, at,
                    rounded_element(host, i, j, view.scale, block_scales, precision));
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
  return static_cast<unsigned char*>(operands.c.data) + operands.c.bytes() + operands.tail_bytes;
}

void mend_guards(const Operands& operands, Device& device) {
  device.fill_bytes(operands.c_memory.data(), kGuard, operands.guard_bytes());
  device.fill_bytes(after_c(operands), kGuard, operands.guard_bytes());
}

ByteSpan bytes_at(const void* data, std::size_t bytes) {
  return {static_cast<const std::byte*>(data), bytes};
}

std::uint64_t checksum_of(ByteSpan memory, Device& device) {
  return checksums({&memory, 1}, device).front();
}

std::uint64_t checksum_of_b(const Operands& operands, Device& device) {
  return checksum_of(bytes_at(operands.b_memory.data(), operands.b_memory.bytes()), device);
}

// Places the views of B, and returns all of its memory as one view. There are as many as a sample
// may have launches, or as find place in a small part of B or of the cache. Where lines have no
// gap, views may begin anywhere. Where rows have one, views are whole rows apart. Columns get room
// behind each.
DenseView place_views(Operands& operands, const DeviceInfo& device) {
  constexpr std::size_t kFewest = 16, kMost = 256;
  constexpr std::size_t kApart = 256;  // bytes; what plug-ins are promised of the address of B
  constexpr std::size_t kShare = 64;   // of B
  constexpr std::size_t kSmallOnHost = std::size_t{4} << 10, kShareOfCache = 32;  // bytes; of L2
  const std::size_t small =
      device.kind == DeviceKind::host ? kSmallOnHost : device.l2_bytes / kShareOfCache;
  DenseView& b = operands.b;
  if (b.ld == 0) return b;  // columns of no row
  const std::size_t value_bytes = bytes_of(b.type);
  const std::size_t pitch = static_cast<std::size_t>(b.ld) * value_bytes;
  const bool row_major = b.layout == Layout::row_major;
  const bool has_gaps = b.lines() > 1 && b.ld > b.line_length();
  const std::size_t room =
      has_gaps && !row_major ? pitch / kShare : std::max(saturated_bytes(b) / kShare, small);
  operands.view_step = has_gaps && row_major ? std::lcm(pitch, kApart) : kApart;
  operands.views = static_cast<int>(std::clamp(1 + room / operands.view_step, kFewest, kMost));
  const std::size_t bytes = (operands.views - 1) * operands.view_step;
  const auto elements = static_cast<std::int64_t>(bytes / value_bytes);
  DenseView all = b;
  std::int64_t& lines = row_major ? all.rows : all.cols;
  std::int64_t& length = row_major ? all.cols : all.rows;
  if (b.lines() == 1) {
    length += elements;
    all.ld += elements;
  } else if (has_gaps && !row_major) {
    length += elements;
    all.ld = b.ld += elements;
  } else {
    lines += (elements + b.ld - 1) / b.ld;
  }
  return all;
}

}  // namespace

void poison(const DenseView& c, const KernelInfo& kernel, Device& device, Poison with) {
  device.fill_bytes(c.data, with == Poison::nan ? kNan : kLarge, c.bytes());
  if (kernel.ignores_stream) device.synchronize();
}

void start_c(const DenseView& c, const Update& update, const KernelInfo& kernel, Device& device,
             Poison with) {
  if (update.beta == 0) return poison(c, kernel, device, with);
  update.start.fill(c, device);
  if (kernel.ignores_stream) device.synchronize();
}

StartOfC drawn_c(ElementType c_type, std::uint64_t seed) {
  StartOfC start;
  start.seed = stream_seed(seed, kStreamC);
  start.precision = *std::ranges::find(kPrecisions, c_type, storage_type);
  return start;
}

std::size_t Operands::guard_bytes() const {
  constexpr std::size_t kLeast = std::size_t{64} << 10, kMost = std::size_t{4} << 20;
  constexpr std::size_t kLines = 256;  // the rows of the largest tile
  constexpr std::size_t kShare = 32, kAlignment = 256;
  const std::size_t lines = static_cast<std::size_t>(c.ld) * bytes_of(c.type) * kLines;
  const std::size_t share = saturated_bytes(c) / kShare / kAlignment * kAlignment;
  return std::clamp(std::min(lines, share), kLeast, kMost);
}

std::uint64_t checksum_of_a(const SparseOperand& a, Device& device) {
  const CsrMatrix& csr = *a.a;
  std::uint64_t sum = 0;
  const auto add = [&sum](std::uint64_t of_array) { sum = mix64(sum) + of_array; };
  const std::array host_arrays = {
      std::as_bytes(std::span(csr.row_ptr)), std::as_bytes(std::span(csr.col_idx)),
      std::as_bytes(std::span(csr.values)), std::as_bytes(std::span(csr.values64)),
      std::as_bytes(std::span(csr.block_scales))};
  const auto add_host = [&] {
    for (const std::uint64_t of_array : checksums_on_host(host_arrays)) add(of_array);
  };
  const DeviceCsr* const copy = a.on_device;
  if (copy == nullptr || device.info().kind == DeviceKind::host) add_host();
  if (copy == nullptr) return sum;
  const auto nnz = static_cast<std::size_t>(copy->nnz);
  const std::array arrays = {
      bytes_at(copy->row_ptr, static_cast<std::size_t>(copy->rows + 1) * sizeof(std::int64_t)),
      bytes_at(copy->col_idx, nnz * sizeof(std::int32_t)),
      bytes_at(copy->values, nnz * bytes_of(copy->value_type))};
  const bool on_host = device.info().kind == DeviceKind::host;
  for (const std::uint64_t of_array :
       on_host ? checksums_on_host(arrays) : cuda_checksums(arrays, device, add_host))
    add(of_array);
  return sum;
}

bool is_intact(const Operands& operands, Device& device) {
  const std::size_t guard = operands.guard_bytes();
  const std::array memories = {bytes_at(operands.b_memory.data(), operands.b_memory.bytes()),
                               bytes_at(operands.c_memory.data(), guard),
                               bytes_at(after_c(operands), guard)};
  // Where lines have no gap, C may end within a word.
  if (reinterpret_cast<std::uintptr_t>(after_c(operands)) % sizeof(std::uint64_t) != 0)
    return false;
  const std::vector<std::uint64_t> sums = checksums(memories, device);
  return sums[0] == operands.b_checksum && sums[1] == operands.guard_checksum &&
         sums[2] == operands.guard_checksum;
}

std::string damage_around_c(const Operands& operands, Device& device) {
  const std::size_t guard = operands.guard_bytes();
  std::vector<unsigned char> before(guard), after(guard);
  device.download(before.data(), operands.c_memory.data(), guard);
  device.download(after.data(), after_c(operands), guard);
  device.synchronize();
  const auto damaged = [](unsigned char byte) { return byte != kGuard; };
  const auto first_after = std::find_if(after.begin(), after.end(), damaged);
  const auto last_before = std::find_if(before.rbegin(), before.rend(), damaged);
  if (first_after == after.end() && last_before == before.rend()) return {};
  const auto bytes = std::count_if(before.begin(), before.end(), damaged) +
                     std::count_if(after.begin(), after.end(), damaged);
  mend_guards(operands, device);
  return first_after != after.end()
             ? fmt::format("wrote {} outside of C, {} after its end", numbered(bytes, "byte"),
                           numbered(first_after - after.begin(), "byte"))
             : fmt::format("wrote {} outside of C, {} before its begin", numbered(bytes, "byte"),
                           numbered(last_before - before.rbegin() + 1, "byte"));
}

bool wrote_to_b(const Operands& operands, Device& device) {
  if (checksum_of_b(operands, device) == operands.b_checksum) return false;
  operands.fill_b();
  return true;
}

DenseView make_operand_b(std::int64_t k, const Shape& shape, Precision precision, bool packed) {
  return packed_if(packed, make_b_view(k, shape.n, shape.layout, storage_type(precision)));
}

Operands make_operands(const CsrMatrix& a, std::int64_t n, Precision precision, ElementType c_type,
                       Layout layout, const DenseMatrix* host_b, std::uint64_t seed, Device& device,
                       const OperandForm& form, std::span<const std::int32_t> rows) {
  Operands operands;
  operands.b = make_operand_b(a.cols, {n, c_type, layout}, precision, form.packed);
  if (has_block_scales(precision)) {
    operands.scales_of_b =
        host_b != nullptr ? block_scales_of(*host_b, precision)
                          : drawn_block_scales(a.cols, n, stream_seed(seed, kStreamB), precision);
    operands.scales_memory = device.upload(operands.scales_of_b);
    operands.b.block_scales = operands.scales_memory.as<float>();
  } else {
    operands.b.scale =
        scale_of(precision, host_b != nullptr ? greatest_magnitude(host_b->values) : 1);
  }
  operands.c = packed_if(form.packed, make_dense_view(a.rows, n, layout, c_type));
  const std::int64_t over = a.rows % form.c_row_multiple;  // rows of C in the last multiple
  const std::int64_t tail_rows = over == 0 ? 0 : form.c_row_multiple - over;
  operands.tail_bytes = static_cast<std::size_t>(tail_rows * operands.c.ld) * bytes_of(c_type);
  DenseView all_of_b = place_views(operands, device.info());
  const std::size_t c_bytes =
      saturated_bytes(operands.c) + operands.tail_bytes + 2 * operands.guard_bytes();
  // On the host, a given B is there twice while it is rounded.
  const bool twice = host_b != nullptr && device.info().kind == DeviceKind::host;
  const std::size_t needed = saturated_bytes(all_of_b) * (twice ? 2 : 1) + c_bytes;
  if (needed > device.free_bytes()) throw OutOfMemory(out_of_memory(device, needed));
  operands.b_memory = device.allocate(all_of_b.bytes());
  operands.c_memory = device.allocate(c_bytes);
  operands.b.data = all_of_b.data = operands.b_memory.data();
  operands.c.data = operands.c_memory.as<unsigned char>() + operands.guard_bytes();
  mend_guards(operands, device);
  const ValuesOfB drawn = {.seed = stream_seed(seed, kStreamB), .precision = precision};
  // Behind B the rows begin once more.
  std::vector<std::int32_t> wrapped(rows.empty() ? 0 : all_of_b.rows);
  for (std::size_t i = 0; i < wrapped.size(); ++i) wrapped[i] = rows[i % rows.size()];
  const auto on_device = std::make_shared<Buffer>(device.upload(wrapped));
  operands.value_of_b = [b = all_of_b, host_b, precision, drawn, scales = operands.scales_of_b,
                         wrapped = std::move(wrapped)](std::int64_t at) -> double {
    const std::int64_t line = at / b.ld, position = at % b.ld;
    const bool row_major = b.layout == Layout::row_major;
    const std::int64_t k = row_major ? line : position, j = row_major ? position : line;
    if (host_b != nullptr)
      return rounded_element(*host_b, k % host_b->rows, j % host_b->cols, b.scale, scales,
                             precision);
    if (wrapped.empty()) return drawn(k, j);
    return wrapped[k] < 0 ? 0 : drawn(wrapped[k], j);
  };
  operands.fill_b = [b = all_of_b, host_b, precision, drawn, on_device,
                     scales = operands.scales_of_b, &device] {
    if (host_b != nullptr) upload_rounded(*host_b, b, precision, device, scales);
    else if (on_device->bytes() > 0) fill_rows(b, on_device->as<std::int32_t>(), drawn, device);
    else device.fill_uniform(b, drawn.seed, precision);
    device.synchronize();
  };
  operands.fill_b();
  operands.b_checksum = checksum_of_b(operands, device);
  operands.guard_checksum =
      checksum_of(bytes_at(operands.c_memory.data(), operands.guard_bytes()), device);
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
