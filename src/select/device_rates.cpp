#include "select/device_rates.hpp"

#include <fmt/format.h>

#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>

#include "gpu/vendor_libraries.hpp"
#include "select/cache.hpp"

namespace spmmbench {
namespace {

constexpr const char* kRatesKind = "rates";
constexpr const char* kGather = "gather_bytes_per_second";
constexpr const char* kDense = "dense_flops_per_second";

// What the rates of a device depend on, of what is known without running it.
CacheEntry key_of(DeviceInfo device) {
  name_libraries(device);
  return {{"device", device.name},
          {"uuid", device.uuid},
          {"sms", fmt::format("{}", device.sm_count)},
          {"driver", device.driver_version},
          {"cublas", device.cublas_version}};
}

// The same within a process, which has one version of cuBLAS.
auto identity_of(const DeviceInfo& device) {
  return std::tie(device.name, device.uuid, device.sm_count, device.driver_version);
}
using Identity = std::tuple<std::string, std::string, int, std::string>;

std::mutex rates_mutex;  // of what follows
std::map<Identity, DeviceRates, std::less<>>& all_known() {
  static std::map<Identity, DeviceRates, std::less<>> rates;
  return rates;
}

// Whether both were there.
bool read_kept(const CacheEntry& key, DeviceRates& rates) {
  const auto entry = read_cache(kRatesKind, key);
  if (!entry) return false;
  const auto rate = [&](const char* name) -> std::optional<double> {
    const auto found = entry->find(name);
    return found == entry->end() ? std::nullopt : positive_number(found->second);
  };
  const auto gather = rate(kGather), dense = rate(kDense);
  if (!gather || !dense) {
    reject_cache(kRatesKind, key, "expected a gather and a dense rate, both positive");
    return false;
  }
  rates.gather_bytes_per_second = *gather;
  rates.dense_flops_per_second = *dense;
  return true;
}

}  // namespace

void set_rates(const DeviceInfo& device, const DeviceRates& rates) {
  const std::lock_guard lock(rates_mutex);
  all_known()[identity_of(device)] = rates;
}

DeviceRates known_rates(const DeviceInfo& device) {
  const std::lock_guard lock(rates_mutex);
  const auto found = all_known().find(identity_of(device));
  return found == all_known().end() ? DeviceRates{} : found->second;
}

DeviceRates rates_of(Device& device, const MeasureRate& gather, const MeasureRate& dense) {
  const std::lock_guard lock(rates_mutex);
  DeviceRates& known = all_known()[identity_of(device.info())];
  DeviceRates rates = known;
  if (rates.copy_bytes_per_second == 0)
    rates.copy_bytes_per_second = device.copy_bytes_per_second();  // which the device remembers
  const auto all = [&rates] {
    return rates.gather_bytes_per_second > 0 && rates.dense_flops_per_second > 0;
  };
  if (all() || device.info().kind == DeviceKind::host) return rates;
  const CacheEntry key = has_cache_folder() ? key_of(device.info()) : CacheEntry{};
  if (!read_kept(key, rates)) {
    if (rates.gather_bytes_per_second == 0) rates.gather_bytes_per_second = gather(device);
    if (rates.dense_flops_per_second == 0) rates.dense_flops_per_second = dense(device);
    if (all())
      write_cache(kRatesKind, key,
                  {{kGather, fmt::format("{}", rates.gather_bytes_per_second)},
                   {kDense, fmt::format("{}", rates.dense_flops_per_second)}});
  }
  known.gather_bytes_per_second = rates.gather_bytes_per_second;
  known.dense_flops_per_second = rates.dense_flops_per_second;
  return rates;
}

}  // namespace spmmbench
