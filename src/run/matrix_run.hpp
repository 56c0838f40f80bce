#pragma once
// Runs the cases of one matrix in this process. Consecutive cases share the row order, the rounded
// A, A as a kernel prepared it, and B, C and the reference of each N. Each is made for the first
// case that needs it, and freed before the first that does not.

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>

#include "gpu/csr_on_device.hpp"
#include "measure/case.hpp"
#include "run/machine.hpp"
#include "run/operand_a.hpp"
#include "run/plan.hpp"

namespace spmmbench {

class MatrixRun {
 public:
  // `loaded`, `cases` and `protocol` must outlive this object. It takes A's arrays out of `loaded`.
  MatrixRun(LoadedInput& loaded, const Cases& cases, const Protocol& protocol, Machine& machine);

  // Fills `row`. Throws only Interrupted.
  void run(const PlannedCase& planned, ResultRow& row);

  // Frees the device memory of A, B and C, so that a child can use the device.
  void release_memory();

 private:
  void select(const PlannedCase& planned);
  // What was done to the values of A.
  void note_a(const PlannedCase& planned, ResultRow& row) const;
  // All of the case but its operands. `input` stays where it is.
  void describe(const PlannedCase& planned, Device& device, CaseInput& input);
  void add_operands(const PlannedCase& planned, CaseInput& input, ResultRow& row);

  // What lies on one device, for the current A and one N.
  struct OnDevice {
    Operands operands;
    std::unique_ptr<ReferenceChecker> reference;
  };
  OnDevice& on_device(const PlannedCase& planned, const CaseInput& input);
  void free_memory(const OnDevice& needed);
  double transpose_ms(Device& device);

  const Cases& cases_;
  const Protocol& protocol_;
  Machine& machine_;
  const DenseMatrix* host_b_;
  OperandA a_;
  std::optional<Diagonal> diagonal_;                 // the current A to the checks of a batch
  std::optional<CsrOnDevice> resident_;              // the current A in the memory of the GPU
  DeviceCsr resident_view_;                          // of it, as kernels are given it
  std::shared_ptr<void> copy_;                       // the same, for references
  bool transposed_;                                  // A is the transpose of the input
  std::map<DeviceKind, double> transpose_ms_;        // what making it takes
  std::optional<ExactOperands> exact_;               // of the current A
  std::map<DeviceKind, std::uint64_t> a_checksums_;  // of the current A, before any kernel
  std::shared_ptr<FoundInA> found_;                  // in the current A
  std::string a_error_;                              // why A could not be put in the current order
  std::optional<PlannedCase> current_;
  PreparedA prepared_;                         // by the current kernel
  std::map<std::int64_t, double> compulsory_;  // bytes, by N
  std::optional<std::int64_t> referenced_;     // columns of A, in whatever order its rows are
  std::map<std::tuple<DeviceKind, std::int64_t, Layout, OperandForm>, OnDevice> operands_;  // by N
};

}  // namespace spmmbench
