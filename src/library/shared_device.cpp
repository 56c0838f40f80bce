#include "library/shared_device.hpp"

#include <cstdint>
#include <map>

#include "gpu/backend.hpp"
#include "library/open_device.hpp"

namespace spmmbench {

SharedDevice& shared_device(DeviceKind kind) {
  static std::mutex mutex;
  static auto& devices = *new std::map<int, SharedDevice>;
  constexpr int kHost = -1;
  const int index = kind == DeviceKind::cuda ? current_cuda_device() : kHost;
  const std::scoped_lock lock(mutex);
  SharedDevice& shared = devices[index];
  if (shared.device) return shared;
  shared.device = open_device(
      kind, [&shared] { return shared.prepares_in_order && !shared.has_other_streams; });
  return shared;
}

bool is_default(const void* stream) {
  return stream == nullptr || stream == reinterpret_cast<const void*>(std::uintptr_t{1});
}

}  // namespace spmmbench
