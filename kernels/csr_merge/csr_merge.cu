// csr_merge: C = A * B on the CUDA cores from plain CSR, with no preparation: the kernel finds its
// work while it runs. It is the product to begin with when A is new.
//
// HOW WORK IS DIVIDED. Walk A row by row: every nonzero is one step, and the end of every row is
// one more. This merge path (Merrill and Garland, SC 2016; Yang, Buluc and Owens, Euro-Par 2018)
// has rows + nnz places, and each CTA takes equally many of them, whatever the rows look like:
//
//     row 0     row 1 (empty)   row 2
//     x x x E   E               x x x x x x x x E      x: nonzero, E: end of a row
//     |---- CTA 0 ----|--- CTA 1 ---|--- CTA 2 ---     places of one CTA
//
// Two warps find the row in which the CTA begins and the one in which it ends, 32 places of row_ptr
// at a time. The CTA copies its part of A to shared memory, and its groups of 1 to 32 lanes divide
// the places among themselves in the same way. A lane holds 16 bytes of each row of B, 8 in fp8, so
// a group is as wide as a row of B, and rows of more than 512 bytes are cut into slabs
// (blockIdx.y).
//
// Loads do not stop at the ends of rows: a group has kUnroll rows of B in flight also where rows of
// A have one nonzero each.
//
// WHOLE ROWS, where groups are narrow and rows alike: csr_merge/whole_rows.cuh.
//
// ROWS THAT ARE SHARED. What groups have of a row that ends in a later group is passed on by a
// segmented scan, in the warp by shuffles and then through shared memory. A row that goes on in
// another CTA, at most one from each CTA to the next, is summed in global memory, and the CTA that
// arrives last writes C (common/arrive_and_sum.cuh). The order of these sums varies from launch to
// launch: results agree within the error bound, not bit for bit.
//
// LONG ROWS, where B is so narrow that a lane holds a row of it: csr_merge/own_rows.cuh.
//
// BYTES. nnz * N * bytes(B) from the L2 cache, C once, A once for each slab.

#include <cuda_runtime.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "common/by_rows.hpp"
#include "common/dependent_launch.hpp"
#include "common/device_arrays.hpp"
#include "common/grid_limit.hpp"
#include "common/resident_csr.hpp"
#include "common/shared_limit.hpp"
#include "common/sums.cuh"
#include "core/limits.hpp"
#include "csr_merge/device.cuh"
#include "csr_merge/kernel.cuh"
#include "csr_merge/own_rows.cuh"
#include "gpu/clear_memory.hpp"
#include "gpu/cuda_check.hpp"
#include "spmmbench/registry.hpp"

namespace spmmbench::csr_merge {
namespace {

// How the N columns and the places of the merge path are divided.
struct Division {
  int lanes;  // of a group
  int items;  // places of a group
  std::int64_t ctas;
  std::int64_t slabs;
  std::int64_t columns_padded;

  int places() const { return csr_merge::kThreads / lanes * items; }
  // Of the sums that CTAs share, and of their counters.
  std::size_t sums_bytes(Precision precision) const {
    return static_cast<std::size_t>(ctas * columns_padded) * bytes_of(sum_type(precision));
  }
  std::size_t arrivals_bytes() const {
    return static_cast<std::size_t>(ctas * slabs) * sizeof(unsigned);
  }
};

// Of a CTA, so that its part of A fits in 32 KiB of shared memory.
int most_places(Precision precision, std::int64_t n) {
  return precision == Precision::fp64 && n > 1 ? 2047 : 4095;
}

// Small matrices are cut finely, so that every group of the device has work; large ones coarsely,
// since each CTA begins with a search. CTAs of rows of B are no more than the device holds at once,
// or than whole times that: one more takes as long as all of them. Of those of a vector it holds
// more. Odd numbers spread the groups' places over the banks of shared memory.
const auto kItems = auto_integer_option("items", 1, 127, "places of the merge path for each group");
int items_of_group(std::int64_t places, std::int64_t slabs, int lanes, int most_of_cta,
                   int sm_count, bool is_vector) {
  const std::int64_t groups =
      std::int64_t{sm_count} * csr_merge::kCtasPerSm * (csr_merge::kThreads / lanes);
  constexpr int kLeast = 7;
  const int worth = lanes >= 32 ? 127 : lanes == 16 ? 63 : lanes >= 4 ? 31 : 15;
  const int most = std::min(worth, most_of_cta / (csr_merge::kThreads / lanes));
  const std::int64_t work = places * slabs;
  if (is_vector)
    return std::max(kLeast, static_cast<int>(std::min<std::int64_t>(most, work / groups)) | 1);
  const auto shares_of = [work](std::int64_t whole) { return (work + whole - 1) / whole; };
  const std::int64_t waves = std::max<std::int64_t>(1, shares_of(groups * most));
  return std::max(kLeast, static_cast<int>(shares_of(groups * waves)) | 1);
}

constexpr std::size_t piece_bytes(Precision precision) { return is_scaled(precision) ? 8 : 16; }

Division divide(const SparseOperand& a, std::int64_t n, const Options& options, int sm_count) {
  const auto per_lane =
      static_cast<std::int64_t>(piece_bytes(a.precision) / bytes_of(storage_type(a.precision)));
  int lanes = 1;
  while (lanes < 32 && lanes * per_lane < n) lanes *= 2;
  const std::int64_t slabs = (n + lanes * per_lane - 1) / (lanes * per_lane);
  const std::int64_t all = a.m() + a.nnz();
  Division out{lanes,
               kItems(options).value_or(items_of_group(
                   all, slabs, lanes, most_places(a.precision, n), sm_count, n == 1)),
               0, slabs, n == 1 ? 4 : slabs * lanes * per_lane};
  out.ctas = (all + out.places() - 1) / out.places();
  return out;
}

// Whether lanes walk rows of their own: by default where rows are long, about as long as each
// other, so many that they fill the device, and have so many nonzeros that a CTA's share cache
// lines of B.
const auto kOwnRows = auto_integer_option(
    "own_rows", 0, 1, "1: each lane walks a row of its own, where N fills one lane");
bool may_own_rows(const SparseOperand& a, const Division& division, std::int64_t n) {
  return division.lanes == 1 && n > 1 && a.precision != Precision::fp64 && a.m() > 0;
}
bool prefers_own_rows(const SparseOperand& a, const DeviceCsr& csr, Device& device) {
  constexpr std::int64_t kLongRow = 1024;     // nonzeros
  constexpr std::int64_t kLeastShare = 1024;  // a nonzero in this many columns
  constexpr std::int64_t kLeastB = 1 << 18;   // rows, more than the L1 cache holds
  const std::int64_t mean = a.nnz() / a.m();
  const std::int64_t least_rows =
      std::int64_t{device.info().sm_count} * csr_merge::kOwnCtasPerSm * csr_merge::kThreads;
  if (a.m() < least_rows) return false;
  if (mean < kLongRow || a.k() < kLeastB || mean * kLeastShare < a.k()) return false;
  const Buffer longest = device.allocate(sizeof(unsigned long long));
  device.fill_bytes(longest.data(), 0, longest.bytes());
  constexpr int kCtas = 1024;
  csr_merge::longest_row<<<kCtas, csr_merge::kThreads, 0, stream_of(device)>>>(
      csr, longest.as<unsigned long long>());
  SPMMBENCH_CUDA_LAUNCHED();
  return static_cast<std::int64_t>(downloaded<unsigned long long>(longest, device)[0]) <= 2 * mean;
}

// Places of B are counted in 32 bits, in pieces; half, since rows are padded.
constexpr double kMostPiecesOfB = 4294967296.0 / 2;

const auto kWholeRows = auto_integer_option(
    "whole_rows", 0, 1, "1: groups of up to 4 lanes take whole rows, 0: places of the merge path");
csr_merge::WholeRows whole_rows(const Options& options) {
  const auto asked = kWholeRows(options);
  if (!asked) return csr_merge::WholeRows::where_faster;
  return *asked == 1 ? csr_merge::WholeRows::always : csr_merge::WholeRows::never;
}

class CsrMergePlan final : public Plan {
 public:
  CsrMergePlan(const ResidentCsr& a, const SparseOperand& operand, std::int64_t n,
               const Options& options, Device& device, StageTimer& stages)
      : a_(a),
        device_(device),
        n_(n),
        division_(divide(operand, n, options, device.info().sm_count)),
        whole_rows_(whole_rows(options)),
        overlap_(kernels_wait()),
        sums_bytes_(division_.sums_bytes(operand.precision)) {
    const auto timed = stages.scope("build");
    if (may_own_rows(operand, division_, n))
      owns_rows_ = kOwnRows(options).has_value() ? *kOwnRows(options) == 1
                                                 : prefers_own_rows(operand, a.view(), device);
    auto [memory, is_clear] =
        allocate_maybe_clear(device, sums_bytes_ + division_.arrivals_bytes());
    workspace_ = std::move(memory);
    is_clear_ = is_clear;
  }
  CsrMergePlan(const CsrMergePlan&) = delete;
  CsrMergePlan& operator=(const CsrMergePlan&) = delete;
  ~CsrMergePlan() override {
    if (is_clear_ && on_default_stream_) keep_clear(device_, std::move(workspace_));
  }

  void launch(const DenseView& b, const DenseView& c, Stream stream) override {
    if (owns_rows_) return launch_own_rows(b, c, stream);
    on_default_stream_ &= stream.handle == nullptr;
    if (!is_clear_) clear(stream);
    visit_every_element_type(b.type, [&](auto* tag) {
      using TB = std::remove_pointer_t<decltype(tag)>;
      constexpr int kColumns = csr_merge::kPerPiece<TB>;
      if (n_ == 1) return launch_as<TB, 1, 1>(b, c, stream);
      switch (division_.lanes) {
        case 1: return launch_as<TB, 1, kColumns>(b, c, stream);
        case 2: return launch_as<TB, 2, kColumns>(b, c, stream);
        case 4: return launch_as<TB, 4, kColumns>(b, c, stream);
        case 8: return launch_as<TB, 8, kColumns>(b, c, stream);
        case 16: return launch_as<TB, 16, kColumns>(b, c, stream);
        default: return launch_as<TB, 32, kColumns>(b, c, stream);
      }
    });
  }

  PlanReport report() const override {
    PlanReport report;
    report.device_bytes = a_.copied_bytes() + workspace_.bytes();
    report.params["lanes"] = fmt::format("{}", division_.lanes);
    report.params["items"] = fmt::format("{}", division_.items);
    report.params["own_rows"] = owns_rows_ ? "1" : "0";
    return report;
  }

 private:
  // In the order of the first launch, so that nobody waits. Each launch leaves zeros behind.
  void clear(Stream stream) {
    SPMMBENCH_CUDA(cudaMemsetAsync(workspace_.data(), 0, workspace_.bytes(),
                                   static_cast<cudaStream_t>(stream.handle)));
    is_clear_ = !device_.is_capturing(stream);  // what is captured may never run
  }

  void launch_own_rows(const DenseView& b, const DenseView& c, Stream stream) {
    const auto ctas = (a_.view().rows + csr_merge::kThreads - 1) / csr_merge::kThreads;
    visit_every_element_type(b.type, [&](auto* tag) {
      using TB = std::remove_pointer_t<decltype(tag)>;
      if constexpr (!std::is_same_v<TB, double>) {
        constexpr std::size_t kBytes = csr_merge::own_bytes<float>();
        allow_shared_bytes(csr_merge::own_rows_kernel<TB>, kBytes);
        launch_dependent(
            csr_merge::own_rows_kernel<TB>, dim3(static_cast<unsigned>(ctas)),
            dim3(csr_merge::kThreads), kBytes, stream, overlap_, a_.view(),
            static_cast<const TB*>(b.data),
            static_cast<std::uint32_t>(b.row_stride() * sizeof(TB) / sizeof(csr_merge::Piece<TB>)),
            b.scale, csr_merge::Rows{c.data, c.row_stride(), c.type}, n_);
      }
    });
  }

  template <class TB, int kLanes, int kCount>
  void launch_as(const DenseView& b, const DenseView& c, Stream stream) {
    const dim3 grid(static_cast<unsigned>(division_.ctas), static_cast<unsigned>(division_.slabs));
    using Sum = SumOf<TB>;
    const csr_merge::Sums<Sum> sums{
        workspace_.as<Sum>(), reinterpret_cast<unsigned*>(workspace_.as<char>() + sums_bytes_),
        division_.columns_padded};
    const int places = division_.places();
    launch_dependent(csr_merge::csr_merge_kernel<TB, kLanes, kCount>, grid,
                     dim3(csr_merge::kThreads), csr_merge::staged_bytes<Sum, kCount>(places),
                     stream, overlap_, a_.view(), static_cast<const TB*>(b.data),
                     static_cast<std::uint32_t>(kCount == 1 ? b.row_stride()
                                                            : b.row_stride() * sizeof(TB) /
                                                                  sizeof(csr_merge::Piece<TB>)),
                     b.scale, csr_merge::Rows{c.data, c.row_stride(), c.type}, n_, division_.items,
                     whole_rows_, sums);
  }

  const ResidentCsr& a_;
  Device& device_;
  std::int64_t n_;
  Division division_;
  csr_merge::WholeRows whole_rows_;
  bool overlap_;
  bool owns_rows_ = false;
  std::size_t sums_bytes_;
  Buffer workspace_;
  bool is_clear_ = false;
  bool on_default_stream_ = true;  // all launches, one after the other
};

class CsrMergePrepared final : public Prepared {
 public:
  CsrMergePrepared(const SparseOperand& a, const Options& options, Device& device,
                   StageTimer& stages)
      : operand_(a), options_(options), a_(a, device, stages), device_(device) {}

  std::unique_ptr<Plan> bind(const Shape& shape, StageTimer& stages) override {
    return bind_by_rows(operand_, shape, device_, stages, [&](const Shape& by_rows) {
      return std::make_unique<CsrMergePlan>(a_, operand_, by_rows.n, options_, device_, stages);
    });
  }

 private:
  SparseOperand operand_;
  Options options_;
  ResidentCsr a_;
  Device& device_;
};

class CsrMerge final : public Kernel {
 public:
  const KernelInfo& info() const override { return info_; }

  Support supports(const Problem& problem, const DeviceInfo& device) const override {
    const Division division = divide(problem, problem.n, problem.options, device.sm_count);
    if (division.slabs > kMaxGridY)
      return Support::no(
          fmt::format("N above {}", kMaxGridY * (division.columns_padded / division.slabs)));
    const int most = most_places(problem.precision, problem.n);
    if (division.places() > most)
      return Support::no(fmt::format("items above {} with {} lanes",
                                     most * division.lanes / csr_merge::kThreads, division.lanes));
    if (static_cast<double>(problem.k()) * static_cast<double>(problem.n) *
            static_cast<double>(bytes_of(storage_type(problem.precision))) >=
        kMostPiecesOfB * static_cast<double>(piece_bytes(problem.precision)))
      return Support::no(fmt::format("B of {} GB and more", 2 * piece_bytes(problem.precision)));
    return Support::yes(resident_bytes(problem) + division.sums_bytes(problem.precision) +
                        division.arrivals_bytes() + bytes_by_rows(problem));
  }

  std::unique_ptr<Prepared> prepare(const SparseOperand& a, const Options& options, Device& device,
                                    StageTimer& stages) const override {
    return std::make_unique<CsrMergePrepared>(a, options, device, stages);
  }

 private:
  KernelInfo info_ = {
      .name = "csr_merge",
      .summary = "plain CSR on CUDA cores along the merge path: nothing is prepared",
      .source = "merge path: Merrill and Garland, SC 2016",
      .precisions = {Precision::fp32, Precision::tf32, Precision::fp16, Precision::bf16,
                     Precision::fp64, Precision::fp8_e4m3, Precision::fp8_e5m2},
      .c_types = {ElementType::f32, ElementType::f16, ElementType::bf16},
      .layouts = {Layout::row_major, Layout::col_major},
      .accumulation = Accumulation::fp32_fma,
      .reads_plain_csr = true,
      .takes_values = true,  // it reads those of the operand
      .options = {kItems, kWholeRows, kOwnRows},
  };
};

SPMMBENCH_REGISTER_KERNEL(CsrMerge);

}  // namespace
}  // namespace spmmbench::csr_merge
