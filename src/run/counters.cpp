#include "run/counters.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string_view>

#include "core/parse_number.hpp"
#include "io/output.hpp"
#include "measure/case.hpp"
#include "process/child.hpp"
#include "process/interrupt.hpp"
#include "process/temporary_folder.hpp"
#include "run/work.hpp"
#include "spmmbench/error.hpp"

namespace spmmbench {
namespace {

struct Counter {
  const char* name;
  const char* unit;
};
constexpr Counter kDuration = {"gpu__time_duration.sum", "ns"};
constexpr Counter kSmThroughput = {"sm__throughput.avg.pct_of_peak_sustained_elapsed", "%"};
constexpr Counter kTensorPipe = {"sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed",
                                 "%"};
constexpr Counter kDramBytes = {"dram__bytes.sum", "byte"};
constexpr Counter kL2Bytes = {"lts__t_bytes.sum", "byte"};
constexpr Counter kL2Sectors = {"lts__t_sectors.sum", "sector"};
constexpr Counter kL2Hits = {"lts__t_sectors_lookup_hit.sum", "sector"};
constexpr std::array kCounters = {kDuration, kSmThroughput, kTensorPipe, kDramBytes,
                                  kL2Bytes,  kL2Sectors,    kL2Hits};

// Fields of one CSV line; quoted ones may hold commas and doubled quotes.
std::vector<std::string> split_csv(std::string_view line) {
  std::vector<std::string> fields(1);
  bool quoted = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (c == '"' && quoted && i + 1 < line.size() && line[i + 1] == '"') fields.back() += line[i++];
    else if (c == '"') quoted = !quoted;
    else if (c == ',' && !quoted) fields.emplace_back();
    else fields.back() += c;
  }
  return fields;
}

double value_of(std::string text, const std::string& name) {
  std::erase(text, ',');  // between thousands
  const auto value = parse_number<double>(text);
  if (!value) throw Error(fmt::format("ncu: {}: expected a number, got '{}'", name, text));
  return *value;
}

}  // namespace

std::vector<std::string> ncu_arguments(bool cold) {
  std::vector<std::string_view> names;
  names.reserve(kCounters.size());
  for (const Counter& counter : kCounters) names.push_back(counter.name);
  return {"--profile-from-start",
          "off",
          "--nvtx",
          "--nvtx-include",
          std::string(kProfileRange) + '/',
          "--clock-control",
          "none",
          "--cache-control",
          cold ? "all" : "none",
          "--metrics",
          fmt::format("{}", fmt::join(names, ","))};
}

std::vector<KernelCounters> parse_ncu_csv(const std::string& text) {
  std::vector<std::vector<std::string>> lines;
  std::string complaint;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    if (line.ends_with('\r')) line.pop_back();
    if (line.starts_with("==ERROR==")) complaint = line;
    if (!line.empty() && !line.starts_with("==")) lines.push_back(split_csv(line));
  }
  constexpr std::size_t kHeaderLines = 2;  // names, units
  if (lines.size() <= kHeaderLines || lines[0][0] != "ID")
    throw Error(complaint.empty() ? "ncu counted no kernel" : "ncu: " + complaint);
  const std::vector<std::string>& names = lines[0];
  const auto column = [&](std::string_view name) {
    const auto at = std::find(names.begin(), names.end(), name);
    if (at == names.end()) throw Error(fmt::format("ncu gave no {}", name));
    return static_cast<std::size_t>(at - names.begin());
  };
  const std::size_t kernel = column("Kernel Name");
  std::vector<KernelCounters> kernels;
  for (std::size_t i = kHeaderLines; i < lines.size(); ++i) {
    if (lines[i].size() != names.size() || lines[1].size() != names.size())
      throw Error(fmt::format("ncu: expected {} fields, got {}", names.size(), lines[i].size()));
    KernelCounters found{lines[i][kernel], {}};
    for (const Counter& counter : kCounters) {
      const std::size_t at = column(counter.name);
      if (lines[1][at] != counter.unit)
        throw Error(fmt::format("ncu: {} in '{}', expected '{}'", counter.name, lines[1][at],
                                counter.unit));
      found.values[counter.name] = value_of(lines[i][at], counter.name);
    }
    kernels.push_back(std::move(found));
  }
  return kernels;
}

std::map<std::string, double> combine_counters(const std::vector<KernelCounters>& kernels) {
  const auto sum = [&](const Counter& counter) {
    double total = 0;
    for (const KernelCounters& kernel : kernels) total += kernel.values.at(counter.name);
    return total;
  };
  const double duration_ns = sum(kDuration), sectors = sum(kL2Sectors);
  const auto over_time = [&](const Counter& counter) {
    double total = 0;
    for (const KernelCounters& kernel : kernels)
      total += kernel.values.at(counter.name) * kernel.values.at(kDuration.name);
    return duration_ns > 0 ? total / duration_ns : 0;
  };
  return {{"profile_kernels", static_cast<double>(kernels.size())},
          {"profile_duration_us", duration_ns / 1e3},
          {"profile_sm_throughput_pct", over_time(kSmThroughput)},
          {"profile_tensor_pipe_pct", over_time(kTensorPipe)},
          {"profile_dram_bytes", sum(kDramBytes)},
          {"profile_l2_bytes", sum(kL2Bytes)},
          {"profile_l2_hit_pct", sectors > 0 ? 100 * sum(kL2Hits) / sectors : 0}};
}

std::map<std::string, double> count_launch(const Work& work, bool cold) {
  const TemporaryFolder folder;
  const std::string log = folder.file("ncu.csv");
  const std::string description = folder.file("work.json");
  write_file(description, describe_work(work));
  std::vector<std::string> arguments = ncu_arguments(cold);
  // ncu starts the program itself, so a link to it would lead to ncu.
  arguments.insert(arguments.end(),
                   {"--csv", "--page", "raw", "--print-units", "base", "--log-file", log,
                    std::filesystem::read_symlink(kThisProgram).string(), "worker", description});
  Child ncu("ncu", arguments);
  while (ncu.pump([](const std::string&) {})) {
    poll_interrupt();
    pause_briefly();
  }
  std::ifstream file(log);
  std::ostringstream text;
  text << file.rdbuf();
  if (text.str().empty()) throw Error(fmt::format("ncu: {}", ncu.ending()));
  return combine_counters(parse_ncu_csv(text.str()));
}

}  // namespace spmmbench
