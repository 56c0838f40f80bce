#include "library/entry.hpp"

#include <cstdint>
#include <string>
#include <variant>

#include "core/contains.hpp"
#include "core/limits.hpp"

namespace spmmbench {
namespace {

template <class List>
std::uint32_t set_of(const List& values) {
  std::uint32_t set = 0;
  for (const auto value : values) set |= SPMMBENCH_SET(static_cast<std::uint32_t>(value));
  return set;
}

// `entry` keeps the names of its choices.
spmmbench_option option_of_c(const OptionSpec& option, Entry& entry) {
  spmmbench_option c = {};
  c.size = sizeof c;
  c.name = option.name.c_str();
  c.default_value = option.default_value.c_str();
  c.help = option.help.c_str();
  c.type = SPMMBENCH_TEXT;
  if (const auto* integers = std::get_if<IntegerRange>(&option.allowed)) {
    c.type = SPMMBENCH_INTEGER;
    c.minimum = static_cast<double>(integers->least);
    c.maximum = static_cast<double>(integers->most);
  } else if (const auto* reals = std::get_if<RealRange>(&option.allowed)) {
    c.type = SPMMBENCH_REAL;
    c.minimum = reals->least;
    c.maximum = reals->most;
  } else if (const auto* names = std::get_if<Choices>(&option.allowed)) {
    c.type = SPMMBENCH_CHOICE;
    std::vector<const char*>& choices = entry.choices.emplace_back();
    for (const std::string& name : names->names) choices.push_back(name.c_str());
    choices.push_back(nullptr);
    c.choices = choices.data();
  } else if (std::holds_alternative<Flag>(option.allowed)) {
    static const char* const kSwitch[] = {"0", "1", nullptr};
    c.type = SPMMBENCH_CHOICE;
    c.choices = kSwitch;
  }
  return c;
}

}  // namespace

void describe(const Kernel& kernel, bool has_cuda, Entry& entry) {
  const KernelInfo& info = kernel.info();
  entry.kernel = &kernel;
  for (const OptionSpec& option : info.options) entry.options.push_back(option_of_c(option, entry));
  for (const spmmbench_option& option : entry.options) entry.option_pointers.push_back(&option);
  const bool on_gpu = info.device == DeviceKind::cuda;
  spmmbench_kernel& c = entry.c;
  c.size = sizeof(spmmbench_kernel);
  c.name = info.name.c_str();
  c.summary = info.summary.c_str();
  c.source = info.source.c_str();
  c.device = static_cast<std::int32_t>(info.device);
  c.min_compute_capability = on_gpu ? info.min_compute_capability : 0;
  c.exact_architecture = info.exact_architecture ? 1 : 0;
  c.accumulation = static_cast<std::int32_t>(info.accumulation);
  if (info.binary) c.flags |= SPMMBENCH_BINARY_A;
  if (info.writes_row_ids) c.flags |= SPMMBENCH_ROW_IDS;
  if (info.baseline) c.flags |= SPMMBENCH_VENDOR;
  for (const Precision precision : kPrecisions)
    if (contains(info.precisions, precision) && !has_block_scales(precision))
      c.precisions |= SPMMBENCH_SET(static_cast<std::uint32_t>(precision));
  c.c_types = set_of(written_types(info));
  c.layouts = set_of(info.layouts);
  c.a_memory = SPMMBENCH_SET(SPMMBENCH_HOST) | (has_cuda ? SPMMBENCH_SET(SPMMBENCH_CUDA) : 0U);
  c.row_ptr_types = c.col_idx_types = SPMMBENCH_SET(SPMMBENCH_I32) | SPMMBENCH_SET(SPMMBENCH_I64);
  c.a_value_types = set_of(kElementTypes);
  c.data_alignment = c.pitch_alignment = on_gpu ? kVectorBytes : 1;
  c.n_multiple = 1;
  c.options = entry.option_pointers.data();
  c.option_count = entry.option_pointers.size();
  c.user = &entry;
}

}  // namespace spmmbench
