// spmmbench/plugin.h for C++17: a kernel is a function that prepares A and returns one that binds a
// shape, which returns one that multiplies. Exceptions become a status, and what the functions
// capture is freed with the plan or the prepared A.
//
//   using namespace spmmbench::plugin;
//
//   Bind prepare(const spmmbench_problem& problem, Stages& stages) {
//     auto tiles = stages.time("build", [&] { return std::make_shared<Tiles>(*problem.a); });
//     return [tiles](const spmmbench_shape& shape, Stages&) -> Plan {
//       if (shape.n > 512) throw Refused(SPMMBENCH_UNSUPPORTED, "takes up to 512 columns");
//       return {[tiles](const spmmbench_dense& b, const spmmbench_dense& c, void* stream) {
//         tiles->multiply(b, c, stream);
//       }};
//     };
//   }
//   const Kernel mine(describe("mine", "one line", "author"), prepare);
//   SPMMBENCH_PLUGIN("mine", "1.0", mine.c())
#ifndef SPMMBENCH_PLUGIN_HPP
#define SPMMBENCH_PLUGIN_HPP

#include <chrono>
#include <functional>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "spmmbench/plugin_helpers.h"

namespace spmmbench::plugin {

// Throw this to return any status. std::bad_alloc becomes SPMMBENCH_OUT_OF_MEMORY, and every other
// exception SPMMBENCH_FAILED.
class Refused : public std::runtime_error {
 public:
  Refused(spmmbench_status status, const std::string& message)
      : std::runtime_error(message), status_(status) {}
  spmmbench_status status() const noexcept { return status_; }

 private:
  spmmbench_status status_;
};

// Receives the times of parts of a preparation. Does nothing if the caller wants no times.
class Stages {
 public:
  explicit Stages(const spmmbench_stages* c) : c_(c) {}

  void add(const char* stage, double milliseconds) {
    if (c_ != nullptr) c_->add(c_->context, stage, milliseconds);
  }

  // What `function` returns; its time on the host is added to the stage.
  template <class Function>
  auto time(const char* stage, const Function& function) {
    struct Timer {
      Stages& stages;
      const char* stage;
      std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();
      ~Timer() {
        const auto spent = std::chrono::steady_clock::now() - start;
        stages.add(stage, std::chrono::duration<double, std::milli>(spent).count());
      }
    } const timer{*this, stage};
    return function();
  }

 private:
  const spmmbench_stages* c_;
};

using Launch =
    std::function<void(const spmmbench_dense& b, const spmmbench_dense& c, void* stream)>;

// C = alpha * A * B + beta * C, as plugin.h has launch_scaled.
using LaunchScaled = std::function<void(const spmmbench_dense& b, const spmmbench_dense& c,
                                        double alpha, double beta, void* stream)>;

struct Plan {
  Launch launch;
  // Fills what it knows of a report; may be left out. Strings live as long as the plan.
  std::function<void(spmmbench_report& report)> report = {};
  // Every plan of a kernel with Scalars::taken has one, and no other plan.
  LaunchScaled launch_scaled = {};
};

using Bind = std::function<Plan(const spmmbench_shape& shape, Stages& stages)>;
using Prepare = std::function<Bind(const spmmbench_problem& problem, Stages& stages)>;

// Describes a kernel on the host for fp32, with B and C row-major and A in fp32 with 32-bit
// indices. Change the members that differ.
inline spmmbench_kernel describe(const char* name, const char* summary, const char* source) {
  spmmbench_kernel kernel = {};
  kernel.name = name;
  kernel.summary = summary;
  kernel.source = source;
  kernel.device = SPMMBENCH_HOST;
  kernel.precisions = SPMMBENCH_SET(SPMMBENCH_FP32_IN);
  kernel.c_types = SPMMBENCH_SET(SPMMBENCH_F32);
  kernel.layouts = SPMMBENCH_SET(SPMMBENCH_ROW_MAJOR);
  kernel.a_memory = SPMMBENCH_SET(SPMMBENCH_HOST);
  kernel.row_ptr_types = kernel.col_idx_types = SPMMBENCH_SET(SPMMBENCH_I32);
  kernel.a_value_types = SPMMBENCH_SET(SPMMBENCH_F32);
  return kernel;
}

// Calls `function`; the status of what it throws, SPMMBENCH_OK otherwise.
template <class Function>
spmmbench_status guarded(const Function& function) noexcept {
  try {
    function();
    return SPMMBENCH_OK;
  } catch (const Refused& refusal) {
    return spmmbench_fail(refusal.status(), refusal.what());
  } catch (const std::bad_alloc&) {
    return spmmbench_fail(SPMMBENCH_OUT_OF_MEMORY, "out of host memory");
  } catch (const std::exception& error) {
    return spmmbench_fail(SPMMBENCH_FAILED, error.what());
  } catch (...) {
    return spmmbench_fail(SPMMBENCH_FAILED, "an exception of unknown type");
  }
}

// Whether a kernel multiplies by alpha and beta itself; of others spmmbench adds in a launch of its
// own.
enum class Scalars { not_taken, taken };

// One kernel of the table; lives until the program ends.
class Kernel {
 public:
  Kernel(spmmbench_kernel description, Prepare prepare, Scalars scalars = Scalars::not_taken)
      : c_(description), prepare_(std::move(prepare)) {
    c_.size = sizeof c_;
    c_.user = this;
    c_.prepare = [](const spmmbench_kernel* kernel, const spmmbench_problem* problem,
                    const spmmbench_stages* stages, spmmbench_prepared** out) {
      return guarded([&] {
        Stages told(stages);
        const auto& self = *static_cast<const Kernel*>(kernel->user);
        *out = reinterpret_cast<spmmbench_prepared*>(new Bind(self.prepare_(*problem, told)));
      });
    };
    c_.bind = [](spmmbench_prepared* prepared, const spmmbench_shape* shape,
                 const spmmbench_stages* stages, spmmbench_plan** out) {
      return guarded([&] {
        Stages told(stages);
        const auto& bind = *reinterpret_cast<Bind*>(prepared);
        *out = reinterpret_cast<spmmbench_plan*>(new Plan(bind(*shape, told)));
      });
    };
    c_.launch = [](spmmbench_plan* plan, const spmmbench_dense* b, const spmmbench_dense* c,
                   void* stream) {
      return guarded([&] { reinterpret_cast<Plan*>(plan)->launch(*b, *c, stream); });
    };
    if (scalars == Scalars::taken)
      c_.launch_scaled = [](spmmbench_plan* plan, const spmmbench_dense* b,
                            const spmmbench_dense* c, double alpha, double beta, void* stream) {
        return guarded(
            [&] { reinterpret_cast<Plan*>(plan)->launch_scaled(*b, *c, alpha, beta, stream); });
      };
    c_.report = [](spmmbench_plan* plan, spmmbench_report* report) {
      return guarded([&] {
        const Plan& of = *reinterpret_cast<Plan*>(plan);
        if (of.report) of.report(*report);
      });
    };
    c_.destroy_plan = [](spmmbench_plan* plan) { delete reinterpret_cast<Plan*>(plan); };
    c_.destroy_prepared = [](spmmbench_prepared* prepared) {
      delete reinterpret_cast<Bind*>(prepared);
    };
  }
  Kernel(const Kernel&) = delete;
  Kernel& operator=(const Kernel&) = delete;

  const spmmbench_kernel* c() const { return &c_; }

 private:
  spmmbench_kernel c_;
  Prepare prepare_;
};

#ifdef __CUDACC__
// Throws what a call of the CUDA runtime returned.
inline void check(cudaError_t error) {
  if (error == cudaSuccess) return;
  const spmmbench_status status = spmmbench_cuda_status(error);
  throw Refused(status, cudaGetErrorString(error));
}

// Values in device memory.
template <class T>
class DeviceArray {
 public:
  explicit DeviceArray(std::size_t count) : count_(count) {
    if (count > 0) check(cudaMalloc(&data_, bytes()));
  }
  explicit DeviceArray(const std::vector<T>& host) : DeviceArray(host.size()) {
    check(cudaMemcpy(data_, host.data(), bytes(), cudaMemcpyHostToDevice));
  }
  DeviceArray(DeviceArray&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), count_(std::exchange(other.count_, 0)) {}
  DeviceArray& operator=(DeviceArray&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(count_, other.count_);
    return *this;
  }
  ~DeviceArray() { cudaFree(data_); }

  T* data() const { return static_cast<T*>(data_); }
  std::size_t size() const { return count_; }
  std::size_t bytes() const { return count_ * sizeof(T); }

 private:
  void* data_ = nullptr;
  std::size_t count_;
};
#endif

}  // namespace spmmbench::plugin

#endif
