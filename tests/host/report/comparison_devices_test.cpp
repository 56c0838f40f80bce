// Which device each case ran on, and what that lets a comparison say.

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "compared_rows.hpp"

namespace spmmbench {
namespace {

std::vector<InputDocument> runs_on_cpu(double us, std::size_t count) {
  std::vector<InputDocument> runs = five_runs({row_of("k", us), row_of("l", us)});
  runs.resize(count);
  for (InputDocument& run : runs) run.document.context.device.kind = DeviceKind::host;
  return runs;
}

TEST(ComparedDevices, OneRunPerSideSaysNothingOnACpu) {
  const Comparison single = compare_documents(runs_on_cpu(10, 1), runs_on_cpu(50, 1), {});
  EXPECT_EQ(single.cases.at(0).verdict, CaseVerdict::not_able_to_tell);
  EXPECT_EQ(single.groups.at(0).decision.change, Change::not_able_to_tell);
  EXPECT_EQ(single.exit_code(), ExitCode::not_able_to_tell);
  const Comparison several = compare_documents(runs_on_cpu(10, 5), runs_on_cpu(12, 5), {});
  EXPECT_EQ(several.cases.at(0).verdict, CaseVerdict::slower);
}

TEST(ComparedDevices, TwoOrThreeRunsPerSideCallNoCaseSlowerOnACpu) {
  for (const std::size_t count : {2, 3})
    EXPECT_EQ(compare_documents(runs_on_cpu(10, count), runs_on_cpu(50, count), {})
                  .count(CaseVerdict::not_able_to_tell),
              2)
        << count;
}

CaseVerdict verdict_on(const Comparison& comparison, const std::string& kernel) {
  for (const ComparedCase& one : comparison.cases)
    if (one.row.kernel == kernel) return one.verdict;
  throw std::runtime_error("no case " + kernel);
}

// Cases of a run on a machine with a GPU, two kernels on each device.
std::vector<ResultRow> rows_of_two_devices(double us) {
  std::vector<ResultRow> rows;
  for (const char* kernel : {"rsh", "auto", "cpu_csr", "eigen_csr"})
    for (const int n : {16, 32}) {
      rows.push_back(row_of(kernel, us));
      rows.back().n = n;
      if (rows.size() <= 4) rows.back().device_index = 0;
    }
  return rows;
}

TEST(ComparedDevices, CasesOnTheCpuOfAMachineWithAGpuAreJudgedAsSuch) {
  const Comparison comparison =
      compare_single_runs(rows_of_two_devices(10), rows_of_two_devices(50));
  for (const char* kernel : {"rsh", "auto"})
    EXPECT_EQ(verdict_on(comparison, kernel), CaseVerdict::slower) << kernel;
  for (const char* kernel : {"cpu_csr", "eigen_csr"})
    EXPECT_EQ(verdict_on(comparison, kernel), CaseVerdict::not_able_to_tell) << kernel;
  std::map<std::string, Change> changes;
  for (const ComparedGroup& group : comparison.groups) {
    EXPECT_EQ(group.cases, group.kind == "all" ? 4 : 2) << group.name;
    changes[group.name] = group.decision.change;
  }
  EXPECT_EQ(changes, (std::map<std::string, Change>{
                         {"all cases on the GPU", Change::slower},
                         {"all cases on the CPU", Change::not_able_to_tell},
                         {"fp16 rsh", Change::slower},
                         {"fp16 auto", Change::slower},
                         {"fp16 cpu_csr", Change::not_able_to_tell},
                         {"fp16 eigen_csr", Change::not_able_to_tell},
                     }));
  EXPECT_EQ(comparison.notes,
            (std::vector<std::string>{
                "4 cases on the CPU have one run of each side, which says nothing: give several, "
                "or a --calibration that has them",
                "4 cases on the GPU have one run of each side, which shows only large changes: "
                "give several, or a --calibration that has them"}));
}

TEST(ComparedDevices,
     DocumentsThatNameNoGpuAreOfTheDeviceOfTheirContextUnlessTheyCountPreemptions) {
  const auto verdict = [](const ResultRow& base, ResultRow fresh) {
    fresh.hot = row_of("x", 50).hot;
    return compare_single_runs({base}, {fresh}).cases.at(0).verdict;
  };
  ResultRow row = row_of("k", 10);
  EXPECT_EQ(verdict(row, row), CaseVerdict::slower) << "older than the field";
  ResultRow counted = row;
  counted.metrics["preemptions_per_s"] = 0;
  EXPECT_EQ(verdict(counted, counted), CaseVerdict::not_able_to_tell);
  EXPECT_EQ(verdict(row, counted), CaseVerdict::not_able_to_tell) << "on one side is enough";
  EXPECT_EQ(verdict(counted, row), CaseVerdict::not_able_to_tell);
}

}  // namespace
}  // namespace spmmbench
