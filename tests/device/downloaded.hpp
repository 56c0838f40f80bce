#pragma once

#include <cstddef>
#include <vector>

#include "spmmbench/device.hpp"

namespace spmmbench::test {

// `count` elements that lie on the device.
template <class T>
std::vector<T> downloaded(Device& device, const void* data, std::size_t count) {
  std::vector<T> host(count);
  if (count > 0) device.download(host.data(), data, count * sizeof(T));
  return host;
}

}  // namespace spmmbench::test
