// Kernels on the GPU that use again what an earlier launch, or a look at B, has left: products and
// lines of the cache.

#include <cuda_runtime.h>

#include <algorithm>
#include <cuda/annotated_ptr>
#include <memory>

#include "cheats.hpp"
#include "gpu/cuda_check.hpp"
#include "planted_device.cuh"

namespace spmmbench::reuse {
namespace {

enum class Cheat {
  shifts_its_last_c,  // where all rows of A are alike: C is that of the last launch, from another
                      // row on
  holds_lines,        // asks the L2 cache to evict A last, without a share of it
  while_inspecting,   // multiplies when it looks at B, and launches copy
};

constexpr int kThreads = 128;

// The columns of C's rows [first, end). C is kept densely too.
struct Rows {
  std::int64_t first, end;
};

template <class Values>
__global__ void product_kernel(Csr a, Values values, DenseView b, DenseView c, Rows rows,
                               float* kept) {
  const std::int64_t at = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  const std::int64_t row = rows.first + at / c.cols, j = at % c.cols;
  if (row >= rows.end) return;
  kept[row * c.cols + j] = static_cast<float*>(c.data)[index_of(c, row, j)] =
      element_of_product(a, values, b, row, j);
}

// Rows [0, known) of C from those of the last one that lie `further` behind them.
__global__ void shift_kernel(const float* last, std::int64_t further, std::int64_t known,
                             DenseView c, float* kept) {
  const std::int64_t at = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (at >= known * c.cols) return;
  kept[at] = static_cast<float*>(c.data)[index_of(c, at / c.cols, at % c.cols)] =
      last[at + further * c.cols];
}

class Prepared final : public PlantedGpuA {
 public:
  Prepared(const CsrMatrix& a, Cheat cheat, Device& device)
      : PlantedGpuA(a, device), repeats_(repeats_its_rows(a)), cheat_(cheat) {}
  std::unique_ptr<spmmbench::Plan> bind(const Shape& shape, StageTimer&) override {
    return std::make_unique<Plan>(*this, shape);
  }

 private:
  class Plan final : public spmmbench::Plan {
   public:
    Plan(const Prepared& a, const Shape& shape) : a_(a), shape_(shape) {
      for (Buffer& kept : kept_) kept = a.device_.allocate(a.rows_ * shape.n * sizeof(float));
    }

    void inspect_b(const DenseView& b, StageTimer&) override {
      if (a_.cheat_ != Cheat::while_inspecting) return;
      DenseView c = make_dense_view(a_.rows_, shape_.n, b.layout, ElementType::f32);
      const Buffer memory = a_.device_.allocate(c.bytes());
      c.data = memory.data();
      const auto queue = static_cast<cudaStream_t>(a_.device_.stream().handle);
      multiply(b, c, {0, a_.rows_}, queue);
      a_.device_.synchronize();
    }

    void launch(const DenseView& b, const DenseView& c, Stream stream) override {
      const auto queue = static_cast<cudaStream_t>(stream.handle);
      if (a_.cheat_ == Cheat::while_inspecting) {
        shift_kernel<<<blocks_of(a_.rows_ * c.cols, kThreads), kThreads, 0, queue>>>(
            latest(), 0, a_.rows_, c, kept_[1 - at_].as<float>());
        SPMMBENCH_CUDA_LAUNCHED();
        return;
      }
      const bool shifts = a_.cheat_ == Cheat::shifts_its_last_c && a_.repeats_;
      const std::int64_t further = shifts ? rows_further_on(b, b_) : 0;
      const std::int64_t known = further == 0 ? 0 : std::max<std::int64_t>(a_.rows_ - further, 0);
      const float* const last = latest();
      at_ = 1 - at_;
      if (known > 0) {
        shift_kernel<<<blocks_of(known * c.cols, kThreads), kThreads, 0, queue>>>(
            last, further, known, c, kept_[at_].as<float>());
        SPMMBENCH_CUDA_LAUNCHED();
      }
      multiply(b, c, {known, a_.rows_}, queue);
      b_ = b.data;
    }
    PlanReport report() const override { return {}; }

   private:
    float* latest() const { return kept_[at_].as<float>(); }
    void multiply(const DenseView& b, const DenseView& c, Rows rows, cudaStream_t queue) {
      const Csr csr = a_.csr();
      const unsigned blocks = blocks_of((rows.end - rows.first) * c.cols, kThreads);
      if (a_.cheat_ == Cheat::holds_lines) {
        using Persisting = cuda::annotated_ptr<const float, cuda::access_property::persisting>;
        product_kernel<<<blocks, kThreads, 0, queue>>>(csr, Persisting(csr.values), b, c, rows,
                                                       latest());
      } else {
        product_kernel<<<blocks, kThreads, 0, queue>>>(csr, csr.values, b, c, rows, latest());
      }
      SPMMBENCH_CUDA_LAUNCHED();
    }

    const Prepared& a_;
    Shape shape_;
    Buffer kept_[2];  // C of the latest launch, and of the one before
    int at_ = 0;      // the latest
    const void* b_ = nullptr;
  };

  bool repeats_;
  Cheat cheat_;
};

class CheatKernel final : public PlantedGpuKernel<Prepared, Cheat> {
 public:
  CheatKernel(const char* name, Cheat cheat) : PlantedGpuKernel(name, cheat) {
    info_.inspects_b = cheat == Cheat::while_inspecting;
  }
};

SPMMBENCH_REGISTER_KERNEL(CheatKernel, "shifts_its_last_c", Cheat::shifts_its_last_c);
SPMMBENCH_REGISTER_KERNEL(CheatKernel, "holds_lines", Cheat::holds_lines);
SPMMBENCH_REGISTER_KERNEL(CheatKernel, "while_inspecting", Cheat::while_inspecting);

}  // namespace
}  // namespace spmmbench::reuse
