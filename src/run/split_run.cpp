#include "run/split_run.hpp"

#include <fmt/format.h>

#include <utility>

#include "measure/preparation.hpp"
#include "process/deadline.hpp"
#include "report/identity.hpp"

namespace spmmbench {

SplitRun::SplitRun(const Cases& cases, const Protocol& protocol, Group& group, Machine& machine)
    : cases_(cases), protocol_(protocol), group_(group), machine_(machine) {
  set_deadline_of_rank();
  try {
    team_ = std::make_unique<Team>(group, machine.main(), parse_split(cases.split));
  } catch (const CaseEnded& ended) {
    no_team_ = ended.what();
  }
  cancel_deadline();
}

// Whoever started this process learns that it waits for a GPU that does not answer. After RankLost
// the deadline stays: what a rank frees then may wait for the others.
void SplitRun::set_deadline_of_rank() const {
  constexpr double kLaterThanTheProgram_s = 5;
  set_deadline(protocol_.timeout_s + kLaterThanTheProgram_s,
               fmt::format("{}: did not end within {:g} s", group_.name_of(group_.rank()),
                           protocol_.timeout_s + kLaterThanTheProgram_s));
}

void SplitRun::take(LoadedInput& loaded) {
  a_.reset();
  operand_.reset();
  a_key_.clear();
  order_.clear();
  order_stages_ = {};
  has_own_b_ = loaded.b.has_value();
  loaded_ = std::move(loaded.a.csr);
}

// Ranks that read other matrices, or were given other cases, have nothing to multiply together.
void SplitRun::require_same_case(const ResultRow& row) {
  const std::vector<std::string> keys = group_.exchange(case_key(row));
  for (int rank = 1; rank < group_.ranks(); ++rank)
    if (keys[rank] != keys[0])
      throw CaseEnded(Status::failed,
                      fmt::format("{}: reads another matrix than rank 0, or was started with other "
                                  "options",
                                  group_.name_of(rank)));
}

// A's rows, and where it is square its columns, in the order of the case: so B and C rest in that
// order too.
void SplitRun::select(const PlannedCase& planned) {
  const bool binary = planned.choice->kernel->info().binary;
  const std::string order = planned.reorder->to_string();
  const std::string key =
      fmt::format("{} {} {}", order, to_string(planned.group->precision), binary ? "binary" : "");
  if (a_ && key == a_key_) return;
  a_.reset();
  if (!operand_ || order != order_) {
    operand_.reset();
    order_stages_ = {};
    team_->alone([&] {
      const Permutation permutation =
          order == "none" ? Permutation()
                          : compute_order(*loaded_, *planned.reorder, order_stages_);
      const auto timed = order_stages_.scope(kReorderStage);
      operand_.emplace(permutation.empty() ? *loaded_ : permute_both(*loaded_, permutation));
    });
    order_ = order;
  }
  team_->alone([&] { operand_->select({"none", {}}, planned.group->precision, binary); });
  a_.emplace(operand_->csr(), planned.group->precision, parse_split(cases_.split), *team_);
  a_key_ = key;
}

void SplitRun::run(const PlannedCase& planned, ResultRow& row) {
  group_.restart_clock();
  set_deadline_of_rank();
  try {
    require_same_case(row);
    if (!team_) throw CaseEnded(Status::skipped, no_team_);
    if (has_own_b_) throw CaseEnded(Status::skipped, "a B that is given is not split");
    const DeviceInfo& device = machine_.main().info();
    if (planned.choice->kernel->info().device != device.kind)
      throw CaseEnded(Status::skipped, "runs on another kind of device");
    if (device.kind == DeviceKind::cuda) row.device_index = device.index;
    select(planned);
    if (planned.reorder->name != "none") add_stages(order_stages_, row);
    a_->measure(
        {.choice = planned.choice,
         .shape = {.n = planned.n, .c_type = planned.group->c_type, .layout = cases_.layout},
         .seed = cases_.load.seed,
         .limits = protocol_.limits},
        row);
  } catch (const CaseEnded& ended) {
    row.status = ended.status();
    row.reason = ended.what();
    row.hot = row.cold = std::nullopt;
  }
  cancel_deadline();
}

}  // namespace spmmbench
