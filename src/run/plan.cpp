#include "run/plan.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "core/contains.hpp"
#include "core/parse_number.hpp"
#include "core/reads_transposed.hpp"
#include "multi/partition.hpp"
#include "plugin/plugin.hpp"
#include "run/command.hpp"
#include "spmmbench/error.hpp"
#include "spmmbench/registry.hpp"
#include "spmmbench/suggest.hpp"

namespace spmmbench {
namespace {

bool excluded(const std::string& name, const std::vector<std::string>& globs) {
  return std::any_of(globs.begin(), globs.end(),
                     [&](const std::string& glob) { return glob_match(glob, name); });
}

// The kernels of a library; if it cannot be loaded, a single kernel whose rows give the reason. A
// library that is not there is mistyped.
std::vector<const Kernel*> plugin_kernels(const PluginPattern& pattern, const Protocol& protocol) {
  if (!std::filesystem::exists(pattern.path))
    throw Error(fmt::format("{}: no such file", pattern.path));
  try {
    return protocol.plugins_here ? load_plugin(pattern.path)
                                 : describe_plugin(pattern.path, protocol.timeout_s);
  } catch (const Error& error) {
    return unloadable(pattern, error.what());
  }
}

// Without a purpose of its own, or with that of multiplying by A^T, which is asked for.
bool runs_unnamed(const KernelInfo& info, const Cases& cases) {
  return info.purpose.empty() || (cases.load.transpose && reads_transposed(info));
}

std::vector<KernelChoice> choose(const Cases& cases, const Protocol& protocol, DeviceKind device) {
  const std::vector<const Kernel*> all = Registry<Kernel>::instance().sorted();
  std::vector<KernelChoice> chosen;
  const auto add = [&](const Kernel* kernel, const Options& given) {
    if (excluded(kernel->info().name, cases.exclude)) return;
    KernelChoice choice{kernel, given};
    if (std::none_of(chosen.begin(), chosen.end(),
                     [&](const KernelChoice& c) { return c.label() == choice.label(); }))
      chosen.push_back(std::move(choice));
  };
  if (cases.kernels.empty()) {
    // With a GPU, the kernels for GPUs. Without one, all kernels: those for GPUs then appear as
    // skipped, with the reason. In both cases without those with a purpose of their own.
    for (const Kernel* kernel : all)
      if (runs_unnamed(kernel->info(), cases) &&
          (device != DeviceKind::cuda || kernel->info().device == DeviceKind::cuda))
        add(kernel, {});
  }
  std::map<std::string, std::string> paths;  // of plug-ins, by file name without ending
  for (const std::string& pattern : cases.kernels) {
    const Spec spec = Spec::parse(pattern);
    std::vector<const Kernel*> among = all;
    std::string glob = spec.name;
    if (names_plugin(spec.name)) {
      const PluginPattern plugin = parse_plugin_pattern(spec.name);
      const std::string stem = plugin_stem(plugin.path);
      const std::string& path = paths.try_emplace(stem, plugin.path).first->second;
      if (path != plugin.path)
        throw Error(fmt::format("{} and {}: kernels of both would be called {}: rename one file",
                                path, plugin.path, stem));
      among = plugin_kernels(plugin, protocol);
      glob = stem + ":" + plugin.kernels;
    }
    bool matched = false;
    for (const Kernel* kernel : among) {
      if (!glob_match(glob, kernel->info().name)) continue;
      matched = true;
      if (!why_unloadable(*kernel).empty()) {
        add(kernel, {});
        continue;
      }
      check_options(*kernel, spec.options);
      add(kernel, spec.options);
    }
    if (!matched) {
      std::vector<std::string> names;
      names.reserve(among.size());
      for (const Kernel* kernel : among) names.push_back(kernel->info().name);
      throw Error(fmt::format("no kernel matches '{}'{}; there are: {}", spec.name,
                              did_you_mean(spec.name, names), fmt::join(names, ", ")));
    }
  }
  if (chosen.empty()) throw Error("every kernel is excluded");
  return chosen;
}

bool offers(const Kernel& kernel, Precision precision, ElementType c_type) {
  const KernelInfo& info = kernel.info();
  return contains(info.precisions, precision) && writes(info, precision, c_type);
}

}  // namespace

std::vector<PrecisionGroup> plan_groups(const Cases& cases, const Protocol& protocol,
                                        DeviceKind device) {
  const std::vector<KernelChoice> chosen = choose(cases, protocol, device);
  std::vector<PrecisionGroup> groups;
  for (const Precision precision : cases.precisions)
    groups.push_back({precision, type_of_c(precision, cases.c_type), false, chosen});
  if (!cases.baselines) return groups;

  const auto in_group = [&](const Kernel* kernel, Precision precision, ElementType c_type) {
    return std::any_of(groups.begin(), groups.end(), [&](const PrecisionGroup& group) {
      return group.precision == precision && group.c_type == c_type &&
             std::any_of(group.kernels.begin(), group.kernels.end(), [&](const KernelChoice& c) {
               return c.kernel == kernel && c.options.values().empty();
             });
    });
  };
  std::vector<PrecisionGroup> implied;
  const auto imply = [&](Precision precision, ElementType c_type, std::string_view glob) {
    PrecisionGroup group{precision, c_type, true, {}};
    for (const Kernel* kernel : Registry<Kernel>::instance().sorted())
      if (kernel->info().baseline && kernel->info().device == device &&
          runs_unnamed(kernel->info(), cases) && glob_match(glob, kernel->info().name) &&
          !excluded(kernel->info().name, cases.exclude) && offers(*kernel, precision, c_type) &&
          !in_group(kernel, precision, c_type))
        group.kernels.push_back({kernel, {}});
    if (!group.kernels.empty()) implied.push_back(std::move(group));
  };
  for (const Precision precision : cases.precisions)
    imply(precision, type_of_c(precision, cases.c_type), "*");
  const bool has_fp32 =
      cases.c_type == ElementType::f32 && contains(cases.precisions, Precision::fp32);
  // Who asks for tf32 has fp32 values, so every fp32 algorithm is a baseline too.
  const bool has_tf32 = contains(cases.precisions, Precision::tf32);
  if (!has_fp32 && device == DeviceKind::host)
    imply(Precision::fp32, ElementType::f32, "eigen_csr");
  else if (!has_fp32)
    imply(Precision::fp32, ElementType::f32, has_tf32 ? "cusparse_csr_*" : "cusparse_csr_default");
  groups.insert(groups.begin(), implied.begin(), implied.end());
  return groups;
}

std::vector<PlannedCase> plan_cases(const Cases& cases, const std::vector<PrecisionGroup>& groups,
                                    const std::vector<std::int64_t>& ns) {
  static const Spec kNone{"none", {}};
  std::vector<const Spec*> orders = {&kNone};
  for (const Spec& reorder : cases.reorderings)
    if (reorder.name != "none") orders.push_back(&reorder);
  const bool unordered_asked = orders.size() <= cases.reorderings.size();
  std::vector<PlannedCase> planned;
  for (const Spec* reorder : orders)
    for (const PrecisionGroup& group : groups)
      for (const KernelChoice& choice : group.kernels)
        for (const std::int64_t n : ns) {
          const bool reorderable = !group.implied && choice.kernel->info().writes_row_ids;
          if (reorder == &kNone ? unordered_asked || !reorderable : reorderable)
            planned.push_back({reorder, &group, n, &choice});
        }
  return planned;
}

ResultRow planned_row(const Cases& cases, const MatrixSummary& matrix, const PlannedCase& planned) {
  ResultRow row;
  row.matrix = matrix;
  row.n = planned.n;
  row.kernel = planned.choice->label();
  row.baseline = planned.choice->kernel->info().baseline;
  row.binary = planned.choice->kernel->info().binary;
  row.precision = to_string(planned.group->precision);
  row.c_type = to_string(planned.group->c_type);
  row.layout = cases.layout == Layout::row_major ? "row" : "col";
  row.reorder = planned.reorder->to_string();
  row.alpha = cases.scalars.alpha;
  row.beta = cases.scalars.beta;
  row.batch = cases.batch;
  if (cases.gpus > 1) {
    row.split.emplace();
    row.split->name = cases.split;
    row.split->gpus = cases.gpus;
    row.split->way = to_string(Way::none);  // until it is known
  }
  row.command = case_command(cases, row);
  return row;
}

std::vector<ResultRow> planned_rows(const Cases& cases, const std::vector<PrecisionGroup>& groups,
                                    const MatrixSummary& matrix) {
  std::vector<ResultRow> rows;
  for (const PlannedCase& planned : plan_cases(cases, groups, cases.ns))
    rows.push_back(planned_row(cases, matrix, planned));
  return rows;
}

Shard parse_shard(std::string_view text) {
  constexpr std::size_t kMostShards = std::size_t{1} << 31;  // so that no index overflows
  const std::size_t slash = text.find('/');
  if (slash != std::string_view::npos) {
    const auto index = parse_number<std::size_t>(text.substr(0, slash));
    const auto count = parse_number<std::size_t>(text.substr(slash + 1));
    if (index && count && *index >= 1 && *index <= *count && *count <= kMostShards)
      return {*index, *count};
  }
  throw Error(fmt::format("--shard {}: expected I/N with 1 <= I <= N, such as 2/8", text));
}

std::vector<std::string> shard_of(const std::vector<std::string>& inputs, Shard shard) {
  std::vector<std::string> mine;
  for (std::size_t i = shard.index - 1; i < inputs.size(); i += shard.count)
    mine.push_back(inputs[i]);
  return mine;
}

std::string missing_shards(const std::vector<std::string>& there) {
  constexpr std::size_t kMostNamed = 4;
  std::map<std::size_t, std::set<std::size_t>> indices;  // by count
  for (const std::string& text : there) {
    const Shard shard = parse_shard(text);
    indices[shard.count].insert(shard.index);
  }
  std::vector<std::string> named;
  std::size_t missing = 0;
  for (const auto& [count, present] : indices) {
    missing += count - present.size();
    for (std::size_t i = 1; i <= count && named.size() < std::min(missing, kMostNamed); ++i)
      if (!present.contains(i)) named.push_back(fmt::format("{}/{}", i, count));
  }
  const std::string more =
      missing > named.size() ? fmt::format(" and {} more", missing - named.size()) : "";
  return fmt::format("{}{}", fmt::join(named, ", "), more);
}

}  // namespace spmmbench
