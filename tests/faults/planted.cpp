// Kernels on the host that break in every way a sweep has to survive.

#include "planted.hpp"

#include <unistd.h>

#include <cstring>
#include <ctime>
#include <stdexcept>
#include <vector>

#include "spmmbench/registry.hpp"

namespace spmmbench {
namespace {

using Fault = void (*)(const DenseView& c);

// The compiler must not see that these addresses and sizes are nonsense.
template <class T>
T opaque(T value) {
  volatile T copy = value;
  return copy;
}

void writes_zeros(const DenseView& c) { std::memset(c.data, 0, c.bytes()); }

void writes_to_nowhere(const DenseView&) { *opaque(reinterpret_cast<int*>(8)) = 1; }

void never_returns(const DenseView&) {
  while (true) {
    const timespec pause = {0, 1'000'000};
    nanosleep(&pause, nullptr);
  }
}

void allocates_too_much(const DenseView&) {
  const std::vector<char> memory(opaque(std::size_t{1} << 50));
}

void ends_the_process(const DenseView&) { _exit(0); }

void throws(const DenseView&) { throw std::runtime_error("planted exception"); }

class PlantedKernel final : public Kernel {
 public:
  PlantedKernel(const char* name, Fault fault)
      : info_(planted_info(name, DeviceKind::host)), fault_(fault) {}
  const KernelInfo& info() const override { return info_; }
  Support supports(const Problem&, const DeviceInfo&) const override { return Support::yes(0); }
  std::unique_ptr<Prepared> prepare(const SparseOperand&, const Options&, Device&,
                                    StageTimer&) const override {
    return std::make_unique<PlantedPrepared>(fault_);
  }

 private:
  class PlantedPlan final : public Plan {
   public:
    explicit PlantedPlan(Fault fault) : fault_(fault) {}
    void launch(const DenseView&, const DenseView& c, Stream) override { fault_(c); }
    PlanReport report() const override { return {}; }

   private:
    Fault fault_;
  };

  class PlantedPrepared final : public Prepared {
   public:
    explicit PlantedPrepared(Fault fault) : fault_(fault) {}
    std::unique_ptr<Plan> bind(const Shape&, StageTimer&) override {
      return std::make_unique<PlantedPlan>(fault_);
    }

   private:
    Fault fault_;
  };

  KernelInfo info_;
  Fault fault_;
};

SPMMBENCH_REGISTER_KERNEL(PlantedKernel, "planted_wrong", writes_zeros);
SPMMBENCH_REGISTER_KERNEL(PlantedKernel, "planted_segfault", writes_to_nowhere);
SPMMBENCH_REGISTER_KERNEL(PlantedKernel, "planted_hang", never_returns);
SPMMBENCH_REGISTER_KERNEL(PlantedKernel, "planted_memory", allocates_too_much);
SPMMBENCH_REGISTER_KERNEL(PlantedKernel, "planted_exit", ends_the_process);
SPMMBENCH_REGISTER_KERNEL(PlantedKernel, "planted_throw", throws);

}  // namespace
}  // namespace spmmbench
