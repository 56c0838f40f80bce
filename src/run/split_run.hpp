#pragma once
// Runs the cases of one matrix at a time on several GPUs, as one of their ranks.

#include <memory>
#include <optional>
#include <string>

#include "multi/split_case.hpp"
#include "multi/team.hpp"
#include "run/machine.hpp"
#include "run/operand_a.hpp"
#include "run/plan.hpp"

namespace spmmbench {

class SplitRun {
 public:
  // All arguments outlive this object.
  SplitRun(const Cases& cases, const Protocol& protocol, Group& group, Machine& machine);

  void take(LoadedInput& loaded);  // the matrix of the cases that follow; takes its arrays
  // Fills the row, on all ranks. Throws RankLost and Interrupted.
  void run(const PlannedCase& planned, ResultRow& row);

 private:
  void set_deadline_of_rank() const;
  void require_same_case(const ResultRow& row);
  void select(const PlannedCase& planned);

  const Cases& cases_;
  const Protocol& protocol_;
  Group& group_;
  Machine& machine_;
  std::unique_ptr<Team> team_;
  std::string no_team_;  // why there is none
  bool has_own_b_ = false;
  std::optional<CsrMatrix> loaded_;
  std::optional<OperandA> operand_;  // in the order of the current case, rounded to its precision
  StageTimer order_stages_;
  std::optional<SplitA> a_;  // the same, divided
  std::string a_key_;        // of the order and precision of both
  std::string order_;
};

}  // namespace spmmbench
