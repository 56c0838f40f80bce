#include "run/repeat.hpp"

#include <cstring>
#include <vector>

#include "process/interrupt.hpp"
#include "run/operands.hpp"

namespace spmmbench {
namespace {

constexpr int kLaunches = 10;

std::vector<unsigned char> result_of_launch(Device& device, const KernelInfo& kernel,
                                            const DenseView& c,
                                            const std::function<void()>& launch) {
  poison(c, kernel, device);
  launch();
  device.synchronize();
  std::vector<unsigned char> image(c.bytes());
  device.download(image.data(), c.data, image.size());
  return image;
}

}  // namespace

bool launches_repeat(Device& device, const KernelInfo& kernel, const DenseView& c,
                     const std::function<void()>& launch) {
  const std::vector<unsigned char> first = result_of_launch(device, kernel, c, launch);
  const std::size_t pitch = static_cast<std::size_t>(c.ld) * bytes_of(c.type);
  const std::size_t used = static_cast<std::size_t>(c.line_length()) * bytes_of(c.type);
  for (int i = 1; i < kLaunches; ++i) {
    poll_interrupt();
    const std::vector<unsigned char> again = result_of_launch(device, kernel, c, launch);
    for (std::int64_t line = 0; line < c.lines(); ++line)  // without the padding between lines
      if (std::memcmp(first.data() + line * pitch, again.data() + line * pitch, used) != 0)
        return false;
  }
  return true;
}

}  // namespace spmmbench
