#include "gpu/nvml.hpp"

#include <algorithm>
#include <array>

#include "core/shared_library.hpp"

namespace spmmbench {
namespace {

// NVML's C interface, as documented in the NVML API reference; nvml.h is not part of every toolkit
// installation.
using NvmlDevice = struct nvmlDevice_st*;
constexpr int kSuccess = 0;
constexpr int kClockSm = 1;
constexpr int kClockMemory = 2;
constexpr int kTemperatureGpu = 0;

class Nvml {
 public:
  static const Nvml& instance() {
    static const Nvml nvml;
    return nvml;
  }

  std::string driver_version() const {
    std::array<char, 96> text{};
    if (system_driver_version_ == nullptr ||
        system_driver_version_(text.data(), text.size() - 1) != kSuccess)
      return {};
    return text.data();
  }

  DeviceModes modes(const std::string& uuid) const {
    NvmlDevice device = nullptr;
    if (handle_by_uuid_ == nullptr || handle_by_uuid_(uuid.c_str(), &device) != kSuccess) return {};
    DeviceModes modes;
    const auto ask = [device](auto* query, std::optional<bool>& mode) {
      unsigned current = 0, pending = 0;
      if (query != nullptr && query(device, &current, &pending) == kSuccess) mode = current != 0;
    };
    ask(ecc_mode_, modes.ecc);
    ask(mig_mode_, modes.mig);
    return modes;
  }

  int other_processes(const std::string& uuid) const {
    NvmlDevice device = nullptr;
    if (handle_by_uuid_ == nullptr || handle_by_uuid_(uuid.c_str(), &device) != kSuccess) return 0;
    unsigned count = 0;  // stays the number that there are where no room is given for them
    if (processes_ != nullptr) (void)processes_(device, &count, nullptr);
    return std::max(static_cast<int>(count) - 1, 0);
  }

  ClockState clock_state(const std::string& uuid) const {
    NvmlDevice device = nullptr;
    if (handle_by_uuid_ == nullptr || handle_by_uuid_(uuid.c_str(), &device) != kSuccess) return {};
    ClockState state;
    unsigned value = 0;
    unsigned long long reasons = 0;
    if (clock_info_ != nullptr && clock_info_(device, kClockSm, &value) == kSuccess)
      state.sm_mhz = value;
    if (clock_info_ != nullptr && clock_info_(device, kClockMemory, &value) == kSuccess)
      state.memory_mhz = value;
    if (temperature_ != nullptr && temperature_(device, kTemperatureGpu, &value) == kSuccess)
      state.temperature_c = value;
    if (power_ != nullptr && power_(device, &value) == kSuccess) state.power_w = value / 1000;
    if (throttle_ != nullptr && throttle_(device, &reasons) == kSuccess)
      state.throttle_reasons = reasons;
    return state;
  }

 private:
  // The library stays loaded and initialised until the process ends.
  Nvml() : library_("libnvidia-ml.so.1") {
    int (*init)() = nullptr;
    find("nvmlInit_v2", init);
    if (init == nullptr || init() != kSuccess) return;
    find("nvmlSystemGetDriverVersion", system_driver_version_);
    find("nvmlDeviceGetHandleByUUID", handle_by_uuid_);
    find("nvmlDeviceGetEccMode", ecc_mode_);
    find("nvmlDeviceGetMigMode", mig_mode_);
    find("nvmlDeviceGetClockInfo", clock_info_);
    find("nvmlDeviceGetTemperature", temperature_);
    find("nvmlDeviceGetPowerUsage", power_);
    find("nvmlDeviceGetCurrentClocksThrottleReasons", throttle_);
    find("nvmlDeviceGetComputeRunningProcesses_v3", processes_);
  }

  template <class Function>
  void find(const char* name, Function*& function) {
    function = reinterpret_cast<Function*>(library_.find(name));
  }

  SharedLibrary library_;
  int (*system_driver_version_)(char*, unsigned) = nullptr;
  int (*handle_by_uuid_)(const char*, NvmlDevice*) = nullptr;
  int (*ecc_mode_)(NvmlDevice, unsigned*, unsigned*) = nullptr;  // now, and after a reset
  int (*mig_mode_)(NvmlDevice, unsigned*, unsigned*) = nullptr;
  int (*clock_info_)(NvmlDevice, int, unsigned*) = nullptr;
  int (*temperature_)(NvmlDevice, int, unsigned*) = nullptr;
  int (*power_)(NvmlDevice, unsigned*) = nullptr;  // milliwatts
  int (*processes_)(NvmlDevice, unsigned*, void*) = nullptr;
  int (*throttle_)(NvmlDevice, unsigned long long*) = nullptr;
};

}  // namespace

std::string nvml_driver_version() { return Nvml::instance().driver_version(); }

DeviceModes nvml_modes(const std::string& uuid) { return Nvml::instance().modes(uuid); }

int nvml_other_processes(const std::string& uuid) { return Nvml::instance().other_processes(uuid); }

ClockState nvml_clock_state(const std::string& uuid) { return Nvml::instance().clock_state(uuid); }

}  // namespace spmmbench
