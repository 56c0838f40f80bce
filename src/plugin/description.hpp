#pragma once
// How a library describes its kernels, in the structs of spmmbench/plugin.h.

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "spmmbench/kernel.hpp"
#include "spmmbench/plugin.h"

namespace spmmbench {

inline constexpr std::array kAccumulations = {Accumulation::fp32_fma,
                                              Accumulation::fp32_tensor_core, Accumulation::fp16};
inline constexpr std::array kLayouts = {Layout::row_major, Layout::col_major};
inline constexpr std::array kDeviceKinds = {DeviceKind::host, DeviceKind::cuda};

// Whether `value` is in a SPMMBENCH_SET.
inline bool has(std::uint32_t set, std::int64_t value) { return (set >> value & 1U) != 0; }

template <class Enum, std::size_t kCount>
std::vector<Enum> members(std::uint32_t set, const std::array<Enum, kCount>& all) {
  std::vector<Enum> out;
  for (const Enum value : all)
    if (has(set, static_cast<int>(value))) out.push_back(value);
  return out;
}

// What a library says, as far as it is looked at; empty for NULL.
inline std::string text(const char* given) {
  constexpr std::size_t kLongest = 4'096;
  return given == nullptr ? std::string() : std::string(given, strnlen(given, kLongest));
}

// Whether it can name a kernel, an option or a stage: letters, digits, '_', '-' and '.', at
// most 64.
bool is_word(std::string_view text);
// Whether the text is one line of at most 1000 characters.
bool is_line(std::string_view text);

// What a kernel says of itself, in the struct of this version: what a library of version 1 has not
// is 0. The size was checked.
spmmbench_kernel described_by(const spmmbench_library& library, const spmmbench_kernel& kernel);

SizeLimits sizes_of(const spmmbench_kernel& described);
// "keeps_a" for SPMMBENCH_KEEPS_A, in the order of plugin.h.
std::vector<std::string> flags_of(const spmmbench_kernel& described);
Variant variant_of(const spmmbench_variant& variant);

// Throws Error naming the kernel and what plugin.h does not allow. Nothing else reads a description
// before.
void check_description(const spmmbench_kernel& kernel);

OptionSpec option_of(const spmmbench_option& option);

}  // namespace spmmbench
