#include "plugin/description.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <set>
#include <string_view>

#include "core/contains.hpp"
#include "spmmbench/error.hpp"
#include "spmmbench/scalars.hpp"

namespace spmmbench {
namespace {

constexpr std::int64_t kMostRowMultiple = 1024;  // more rows than any tile has

bool are_sizes(const std::int64_t* sizes, std::size_t count) {
  return count == 0 ||
         (sizes != nullptr &&
          std::all_of(sizes, sizes + count, [](std::int64_t size) { return size > 0; }));
}

// The nearest integer of 64 bits.
std::int64_t integer_near(double value) {
  constexpr double kEnd = 0x1p63;
  if (value >= kEnd) return INT64_MAX;
  return value <= -kEnd ? INT64_MIN : static_cast<std::int64_t>(value);
}

Allowed allowed_by(const spmmbench_option& option) {
  const bool any = option.minimum == 0 && option.maximum == 0;
  switch (option.type) {
    case SPMMBENCH_INTEGER:
      if (any) return IntegerRange{INT64_MIN, INT64_MAX};
      return IntegerRange{integer_near(std::ceil(option.minimum)),
                          integer_near(std::floor(option.maximum))};
    case SPMMBENCH_REAL:
      if (any)
        return RealRange{std::numeric_limits<double>::lowest(), std::numeric_limits<double>::max()};
      return RealRange{option.minimum, option.maximum};
    case SPMMBENCH_CHOICE: {
      Choices choices;
      for (const char* const* name = option.choices; name != nullptr && *name != nullptr; ++name)
        choices.names.emplace_back(*name);
      return choices;
    }
    default: return TextForm{"text", [](const std::string&) { return true; }, {}};
  }
}

void check_option(const spmmbench_option& option) {
  const auto require = [](bool holds, const char* expected) {
    if (!holds) throw Error(fmt::format("expected {}", expected));
  };
  require(option.type >= SPMMBENCH_TEXT && option.type <= SPMMBENCH_CHOICE, "a type of plugin.h");
  require(std::isfinite(option.minimum) && std::isfinite(option.maximum) &&
              option.minimum <= option.maximum,
          "finite limits, the minimum first");
  require(
      option.type != SPMMBENCH_CHOICE || (option.choices != nullptr && *option.choices != nullptr),
      "choices");
  require(is_line(option.help), "a help of one line of at most 1000 characters");
  try {
    option_of(option).check(option.default_value);
  } catch (const Error& error) {
    throw Error(fmt::format("the default is not allowed: {}", error.what()));
  }
}

// Checks a variant of a kernel whose options were checked.
template <class Require>
void check_variant(const spmmbench_variant& variant, const spmmbench_kernel& kernel,
                   const Require& require) {
  const std::string name = text(variant.option), value = text(variant.value);
  const auto chooses = [&](const spmmbench_option* option) {
    return option->name == name && option->type == SPMMBENCH_CHOICE;
  };
  const auto* const* const end = kernel.options + kernel.option_count;
  const auto* const* const option = std::find_if(kernel.options, end, chooses);
  require(option != end, "variants of an option that is a choice");
  const Choices choices = std::get<Choices>(allowed_by(**option));
  require(contains(choices.names, value), "variants for one of the choices of their option");
  require(variant.accumulation == 0 || members(variant.accumulation, kAccumulations).size() == 1,
          "variants with one accumulation");
  require(std::min(variant.n_multiple, variant.max_n) >= 0, "multiples and largest sizes from 0");
  require(are_sizes(variant.allowed_n, variant.allowed_n_count), "allowed_n from 1 of variants");
  require(
      kernel.c_row_multiple <= 1 || (variant.layouts & ~SPMMBENCH_SET(SPMMBENCH_ROW_MAJOR)) == 0,
      "SPMMBENCH_ROW_MAJOR as the one layout, for a c_row_multiple");
}

template <class Require>
void check_options(const spmmbench_kernel& kernel, const Require& require) {
  std::set<std::string> names;
  for (std::size_t i = 0; i < kernel.option_count; ++i) {
    const spmmbench_option* const option = kernel.options[i];
    require(option != nullptr && option->size >= sizeof(spmmbench_option),
            "options of the size of this version");
    require(option->name != nullptr && option->default_value != nullptr && option->help != nullptr,
            "options with name, default_value and help");
    require(is_word(option->name),
            "options with a name of letters, digits, '_', '-' and '.', at most 64");
    require(names.insert(option->name).second, "options of different names");
    try {
      check_option(*option);
    } catch (const Error& error) {
      throw Error(fmt::format("kernel {}: option {}: {}", kernel.name, option->name, error.what()));
    }
  }
}

}  // namespace

bool is_word(std::string_view text) {
  const auto is_of_word = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == '.';
  };
  constexpr std::size_t kLongest = 64;
  return !text.empty() && text.size() <= kLongest &&
         std::all_of(text.begin(), text.end(), is_of_word);
}

bool is_line(std::string_view text) {
  constexpr std::size_t kLongest = 1000;
  return text.size() <= kLongest && text.find('\n') == std::string_view::npos;
}

spmmbench_kernel described_by(const spmmbench_library& library, const spmmbench_kernel& kernel) {
  spmmbench_kernel described = {};
  const bool first = library.abi_version == 1;
  std::memcpy(&described, &kernel,
              first ? SPMMBENCH_KERNEL_SIZE_1 : std::min(kernel.size, sizeof described));
  if (first) described.flags &= ~std::uint32_t{SPMMBENCH_PACKED_ROWS | SPMMBENCH_TUNES};
  return described;
}

SizeLimits sizes_of(const spmmbench_kernel& described) {
  const auto multiple = [](std::int64_t given) { return std::max<std::int64_t>(given, 1); };
  SizeLimits sizes;
  sizes.square = (described.flags & SPMMBENCH_SQUARE_ONLY) != 0;
  sizes.allowed_n.assign(described.allowed_n, described.allowed_n + described.allowed_n_count);
  if (sizes.allowed_n.empty()) sizes.n_multiple = multiple(described.n_multiple);
  sizes.m_multiple = multiple(described.m_multiple);
  sizes.k_multiple = multiple(described.k_multiple);
  sizes.max_n = described.max_n;
  sizes.max_mk = described.max_mk;
  sizes.max_kn = described.max_kn;
  return sizes;
}

std::vector<std::string> flags_of(const spmmbench_kernel& described) {
  constexpr std::array kNames = {"binary_a",       "square_only", "adds_to_c",
                                 "ignores_stream", "keeps_a",     "row_ids",
                                 "vendor",         "packed_rows", "tunes"};
  std::vector<std::string> flags;
  for (std::size_t bit = 0; bit < kNames.size(); ++bit)
    if (has(described.flags, static_cast<std::int64_t>(bit))) flags.emplace_back(kNames[bit]);
  if (described.launch_scaled != nullptr) flags.emplace_back(kTakesScalars);
  return flags;
}

Variant variant_of(const spmmbench_variant& variant) {
  Variant out{variant.option, variant.value};
  for (const Accumulation accumulation : members(variant.accumulation, kAccumulations))
    out.accumulation = accumulation;
  out.c_types = members(variant.c_types, kElementTypes);
  out.layouts = members(variant.layouts, kLayouts);
  out.allowed_n.assign(variant.allowed_n, variant.allowed_n + variant.allowed_n_count);
  if (out.allowed_n.empty()) out.n_multiple = variant.n_multiple;
  out.max_n = variant.max_n;
  return out;
}

OptionSpec option_of(const spmmbench_option& option) {
  return {option.name, allowed_by(option), option.default_value, option.help,
          std::string_view(option.default_value) == "auto"};
}

void check_description(const spmmbench_kernel& kernel) {
  const auto require = [&](bool holds, const char* expected) {
    if (!holds) throw Error(fmt::format("kernel {}: expected {}", text(kernel.name), expected));
  };
  require(is_word(text(kernel.name)), "a name of letters, digits, '_', '-' and '.', at most 64");
  require(is_line(text(kernel.summary)) && is_line(text(kernel.source)),
          "a summary and a source of one line each, of at most 1000 characters");
  require(kernel.device == SPMMBENCH_HOST || kernel.device == SPMMBENCH_CUDA,
          "device SPMMBENCH_HOST or SPMMBENCH_CUDA");
  require(kernel.accumulation >= SPMMBENCH_SUMS_FP32 && kernel.accumulation <= SPMMBENCH_SUMS_FP16,
          "accumulation to be one of SPMMBENCH_SUMS_*");
  const auto precisions = members(kernel.precisions, kPrecisions);
  require(!precisions.empty() && std::ranges::none_of(precisions, has_block_scales),
          "precisions, none with scales of blocks among them");
  const auto c_types = members(kernel.c_types, kElementTypes);
  require(!c_types.empty() && std::ranges::all_of(c_types, [](auto t) { return bytes_of(t) > 1; }),
          "c_types, none of 8 bits among them");
  require(!members(kernel.layouts, kLayouts).empty(), "layouts");
  require(!members(kernel.a_memory, kDeviceKinds).empty(), "a_memory");
  require(kernel.device == SPMMBENCH_CUDA || has(kernel.a_memory, SPMMBENCH_HOST),
          "a_memory with SPMMBENCH_HOST for a host kernel");
  constexpr std::uint32_t kIndices = SPMMBENCH_SET(SPMMBENCH_I32) | SPMMBENCH_SET(SPMMBENCH_I64);
  require((kernel.row_ptr_types & kIndices) != 0, "row_ptr_types");
  require((kernel.col_idx_types & kIndices) != 0, "col_idx_types");
  for (const Precision precision : precisions)
    require((has(kernel.a_value_types, SPMMBENCH_F32) && precision != Precision::fp64) ||
                has(kernel.a_value_types, static_cast<int>(storage_type(precision))),
            "a_value_types that hold every precision");
  require(kernel.data_alignment <= 256 && kernel.pitch_alignment <= 16,
          "data_alignment up to 256 and pitch_alignment up to 16");
  require(std::min({kernel.n_multiple, kernel.m_multiple, kernel.k_multiple, kernel.max_n,
                    kernel.max_mk, kernel.max_kn, kernel.c_row_multiple}) >= 0,
          "multiples and largest sizes from 0");
  require(kernel.c_row_multiple <= kMostRowMultiple, "c_row_multiple up to 1024");
  require(kernel.c_row_multiple <= 1 || kernel.layouts == SPMMBENCH_SET(SPMMBENCH_ROW_MAJOR),
          "SPMMBENCH_ROW_MAJOR as the one layout, for a c_row_multiple");
  require(are_sizes(kernel.allowed_n, kernel.allowed_n_count), "allowed_n from 1");
  require(kernel.prepare != nullptr && kernel.bind != nullptr && kernel.launch != nullptr &&
              kernel.destroy_plan != nullptr && kernel.destroy_prepared != nullptr,
          "prepare, bind, launch, destroy_plan and destroy_prepared");
  require(kernel.option_count == 0 || kernel.options != nullptr, "options");
  check_options(kernel, require);
  require(kernel.variant_count == 0 || kernel.variants != nullptr, "variants");
  for (std::size_t i = 0; i < kernel.variant_count; ++i) {
    require(kernel.variants[i] != nullptr && kernel.variants[i]->size >= sizeof(spmmbench_variant),
            "variants of the size of this version");
    check_variant(*kernel.variants[i], kernel, require);
  }
}

}  // namespace spmmbench
