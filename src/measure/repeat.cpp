#include "measure/repeat.hpp"

#include <cstring>
#include <utility>
#include <vector>

#include "core/matrix_memory.hpp"
#include "measure/operands.hpp"
#include "process/interrupt.hpp"

namespace spmmbench {
namespace {

using Image = std::vector<unsigned char>;

Image image_of(Device& device, const DenseView& c) {
  Image image(c.bytes());
  device.download(image.data(), c.data, image.size());
  return image;
}

// Whether two C are the same to the bit, the padding between lines left out.
bool same_bits(const DenseView& c, const void* a, const void* b) {
  const std::size_t pitch = static_cast<std::size_t>(c.ld) * bytes_of(c.type);
  const std::size_t used = static_cast<std::size_t>(c.line_length()) * bytes_of(c.type);
  for (std::int64_t line = 0; line < c.lines(); ++line)
    if (std::memcmp(static_cast<const unsigned char*>(a) + line * pitch,
                    static_cast<const unsigned char*>(b) + line * pitch, used) != 0)
      return false;
  return true;
}

void launch_alone(Device& device, const KernelInfo& kernel, const DenseView& c, Poison with,
                  const std::function<void()>& launch) {
  poll_interrupt();
  poison(c, kernel, device, with);
  launch();
  if (kernel.ignores_stream) device.wait_idle();
  else device.synchronize();
}

}  // namespace

Repeats repeat_launches(Device& device, const KernelInfo& kernel, const DenseView& c,
                        const std::function<void()>& launch, const CheckC& check) {
  require_host_memory(2 * c.bytes());
  Repeats found;
  Image first;
  for (int i = 0; i < kRepeats && found.right; ++i) {
    launch_alone(device, kernel, c, Poison::nan, launch);
    Image image = image_of(device, c);
    const bool same = i > 0 && same_bits(c, first.data(), image.data());
    found.right = check(same);
    if (i == 0) first = std::move(image);
    else found.same_bits &= same;
  }
  return found;
}

bool launches_stay_right(Device& device, const KernelInfo& kernel, const DenseView& c,
                         const std::function<void()>& launch, const CheckC& check) {
  const bool on_host = device.info().kind == DeviceKind::host;
  // Where memory does not suffice for a copy, each C is compared with the reference.
  const bool keeps = on_host && c.bytes() <= device.free_bytes();
  const Image right = keeps ? image_of(device, c) : Image();
  for (int i = 0; i < kLaunchesAfterTiming; ++i) {
    launch_alone(device, kernel, c, i == 1 ? Poison::large : Poison::nan, launch);
    if (!check(keeps && same_bits(c, right.data(), c.data))) return false;
  }
  return true;
}

}  // namespace spmmbench
