// C = A * B on the CPU: straight CSR with OpenMP, the work cut into even parts.
//
// Nonzeros and row ends are merged into one sequence (row 0's nonzeros, end of row 0, row 1's
// nonzeros, ...) that is cut at equal distances, so neither one row that holds everything nor a
// million empty rows unbalances the threads (Merrill and Garland, Merge-based parallel sparse
// matrix-vector multiplication, SC 2016, section 4). A row that a cut goes through is summed in
// pieces, one per part, which are added when all parts are done:
//
//     part 0                      | part 1             | part 2
//     row 0, row 1, start of row 2 | more of row 2      | rest of row 2, row 3
//                 into tails[0]    |   into tails[1]    |  into heads[2]
//
// The hot loop knows one case only, row-major fp32, or fp64 at that precision: a B of another type
// or layout is copied into that form first, in every launch.

#include <fmt/format.h>
#include <omp.h>

#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "spmmbench/registry.hpp"

// The hot loop is compiled for several instruction sets, one of which is chosen when the program
// starts. (The sanitizers' own start-up does not survive such a choice.)
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__)
#define SPMMBENCH_SIMD_CLONES \
  __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define SPMMBENCH_SIMD_CLONES
#endif

namespace spmmbench::cpu_csr {
namespace {

constexpr std::int64_t kSlab = 64;  // columns of C summed at a time: they fit the registers
constexpr int kPartsPerThread = 4;

// `Value`: fp32 or fp64, in which A and B are multiplied.
template <class Value>
const std::vector<Value>& values_of(const CsrMatrix& a) {
  if constexpr (std::is_same_v<Value, double>) return a.values64;
  else return a.values;
}

// Inlined into each clone.
template <class Value>
[[gnu::always_inline]] inline void add_each(const std::int32_t* col_idx, const Value* values,
                                            std::int64_t begin, std::int64_t end, const Value* b,
                                            std::int64_t ld, std::int64_t width, Value* sums) {
  if (width == kSlab) {  // the trip count known at compile time keeps the sums in registers
    for (std::int64_t e = begin; e < end; ++e) {
      const Value* row = b + col_idx[e] * ld;
#pragma omp simd
      for (std::int64_t j = 0; j < kSlab; ++j) sums[j] += values[e] * row[j];
    }
    return;
  }
  for (std::int64_t e = begin; e < end; ++e) {
    const Value* row = b + col_idx[e] * ld;
#pragma omp simd
    for (std::int64_t j = 0; j < width; ++j) sums[j] += values[e] * row[j];
  }
}

// Adds the products of nonzeros [begin, end) with `width` columns of their rows of B.
SPMMBENCH_SIMD_CLONES
void add_products(const std::int32_t* col_idx, const float* values, std::int64_t begin,
                  std::int64_t end, const float* b, std::int64_t ld, std::int64_t width,
                  float* sums) {
  add_each(col_idx, values, begin, end, b, ld, width, sums);
}
SPMMBENCH_SIMD_CLONES
void add_products(const std::int32_t* col_idx, const double* values, std::int64_t begin,
                  std::int64_t end, const double* b, std::int64_t ld, std::int64_t width,
                  double* sums) {
  add_each(col_idx, values, begin, end, b, ld, width, sums);
}

// out[0, count) = `scale` times the elements of `view`'s memory from `at` on, `out_step` apart.
SPMMBENCH_SIMD_CLONES
void widen(const DenseView& view, float scale, std::int64_t at, std::int64_t count, float* out,
           std::int64_t out_step) {
  visit_element(view.type, [=](auto element) {
    const auto* in = static_cast<const typename decltype(element)::Bits*>(view.data) + at;
    for (std::int64_t i = 0; i < count; ++i)
      out[i * out_step] = scale * static_cast<float>(element.decode(in[i]));
  });
}
void widen(const DenseView& view, float /*scale*/, std::int64_t at, std::int64_t count, double* out,
           std::int64_t out_step) {
  const double* const in = static_cast<const double*>(view.data) + at;
  for (std::int64_t i = 0; i < count; ++i) out[i * out_step] = in[i];
}

template <class Value>
void store_row(const DenseView& c, std::int64_t row, std::int64_t first, std::int64_t width,
               const Value* sums) {
  const bool row_major = c.layout == Layout::row_major;
  const std::int64_t at = row_major ? row * c.ld + first : first * c.ld + row;
  const std::int64_t step = row_major ? 1 : c.ld;
  visit_element(c.type, [=](auto element) {
    using Stored = decltype(element);
    auto* out = static_cast<typename Stored::Bits*>(c.data) + at;
    for (std::int64_t j = 0; j < width; ++j)
      out[j * step] = element.encode(static_cast<typename Stored::Value>(sums[j]));
  });
}

// A cut: `row` row ends and `entry` nonzeros lie before it.
struct Cut {
  std::int64_t row;
  std::int64_t entry;
};

std::vector<Cut> cut_evenly(const CsrMatrix& a, std::int64_t parts) {
  const std::int64_t length = a.rows + a.nnz();
  std::vector<Cut> cuts;
  for (std::int64_t part = 0; part <= parts; ++part) {
    const std::int64_t position = length / parts * part + length % parts * part / parts;
    // Rows whose end lies before `position`: row r's end is element row_ptr[r + 1] + r of the
    // sequence.
    std::int64_t low = 0;
    std::int64_t high = a.rows;
    while (low < high) {
      const std::int64_t middle = (low + high) / 2;
      if (a.row_ptr[middle + 1] + middle < position) low = middle + 1;
      else high = middle;
    }
    cuts.push_back({low, position - low});
  }
  return cuts;
}

// A row that ends in part `last` and began in part `first`, before it.
struct SplitRow {
  std::int64_t row;
  std::int64_t first;
  std::int64_t last;
};

// The cuts of A, the same for every N.
struct Parts {
  Parts(const SparseOperand& operand, Device& where, StageTimer& stages)
      : a(operand), device(where) {
    const auto timed = stages.scope("build");
    const CsrMatrix& csr = *operand.a;
    const std::int64_t length = std::max<std::int64_t>(csr.rows + csr.nnz(), 1);
    count = std::min<std::int64_t>(std::int64_t{kPartsPerThread} * omp_get_max_threads(), length);
    cuts = cut_evenly(csr, count);
    for (std::int64_t part = 0, first = 0; part < count; ++part) {
      const Cut& begin = cuts[part];
      if (begin.entry == csr.row_ptr[begin.row]) first = part;
      else if (cuts[part + 1].row > begin.row) split_rows.push_back({begin.row, first, part});
      if (cuts[part + 1].row > begin.row) first = part;
    }
  }

  SparseOperand a;
  Device& device;
  std::int64_t count = 0;
  std::vector<Cut> cuts;
  std::vector<SplitRow> split_rows;
};

// What the hot loop multiplies and adds in.
ElementType loop_type(Precision precision) {
  return precision == Precision::fp64 ? ElementType::f64 : ElementType::f32;
}

bool widens(Precision precision, Layout layout) {
  return layout != Layout::row_major || storage_type(precision) != loop_type(precision);
}

template <class Value>
class CpuCsrPlan final : public Plan {
 public:
  CpuCsrPlan(const Parts& parts, const Shape& shape, StageTimer& stages)
      : parts_(parts), a_(*parts.a.a), n_(shape.n) {
    const auto timed = stages.scope("build");
    heads_.resize(parts.count * n_);
    tails_.resize(parts.count * n_);
    if (!widens(parts.a.precision, shape.layout)) return;
    // The device compares it with the memory that is left, and filled it counts as taken.
    widened_b_ = parts.device.allocate(parts.a.k() * n_ * sizeof(Value));
    parts.device.fill_bytes(widened_b_.data(), 0, widened_b_.bytes());
  }

  void launch(const DenseView& b, const DenseView& c, Stream) override {
    const Value* rows_of_b = static_cast<const Value*>(b.data);
    std::int64_t ld = b.ld;
    if (widened_b_.bytes() > 0) {
      widen_all(b);
      rows_of_b = widened_b_.as<Value>();
      ld = n_;
    }
#pragma omp parallel for schedule(dynamic, 1)
    for (std::int64_t part = 0; part < parts_.count; ++part) multiply(part, rows_of_b, ld, c);
    for (const SplitRow& split : parts_.split_rows) finish(split, c);
  }

  PlanReport report() const override {
    PlanReport report;
    report.device_bytes = (heads_.size() + tails_.size()) * sizeof(Value) + widened_b_.bytes() +
                          a_.row_ptr.size() * sizeof(std::int64_t) +
                          a_.col_idx.size() * (sizeof(std::int32_t) + sizeof(Value));
    report.params["threads"] = fmt::format("{}", omp_get_max_threads());
    return report;
  }

 private:
  void widen_all(const DenseView& b) {
    // Rows of B per task: a column-major B is transposed in the cache.
    constexpr std::int64_t kRows = 64;
    const float scale = a_.scale * b.scale;  // of the product
#pragma omp parallel for schedule(static)
    for (std::int64_t row = 0; row < b.rows; row += kRows) {
      const std::int64_t count = std::min(kRows, b.rows - row);
      Value* out = widened_b_.as<Value>() + row * n_;
      if (b.layout == Layout::row_major)
        for (std::int64_t i = 0; i < count; ++i)
          widen(b, scale, (row + i) * b.ld, n_, out + i * n_, 1);
      else
        for (std::int64_t j = 0; j < n_; ++j) widen(b, scale, j * b.ld + row, count, out + j, n_);
    }
  }

  void multiply(std::int64_t part, const Value* b, std::int64_t ld, const DenseView& c) {
    const Cut begin = parts_.cuts[part];
    const Cut end = parts_.cuts[part + 1];
    const bool cut_before = begin.row < a_.rows && begin.entry > a_.row_ptr[begin.row];
    for (std::int64_t first = 0; first < n_; first += kSlab) {
      const std::int64_t width = std::min(kSlab, n_ - first);
      std::int64_t entry = begin.entry;
      for (std::int64_t row = begin.row; row < end.row; ++row) {
        Value sums[kSlab] = {};
        add_products(a_.col_idx.data(), values_of<Value>(a_).data(), entry, a_.row_ptr[row + 1],
                     b + first, ld, width, sums);
        entry = a_.row_ptr[row + 1];
        if (row == begin.row && cut_before)
          std::copy_n(sums, width, heads_.begin() + part * n_ + first);
        else store_row(c, target(row), first, width, sums);
      }
      Value sums[kSlab] = {};
      add_products(a_.col_idx.data(), values_of<Value>(a_).data(), entry, end.entry, b + first, ld,
                   width, sums);
      std::copy_n(sums, width, tails_.begin() + part * n_ + first);
    }
  }

  void finish(const SplitRow& split, const DenseView& c) {
    Value* sums = heads_.data() + split.last * n_;
    for (std::int64_t part = split.first; part < split.last; ++part)
      for (std::int64_t j = 0; j < n_; ++j) sums[j] += tails_[part * n_ + j];
    store_row(c, target(split.row), 0, n_, sums);
  }

  std::int64_t target(std::int64_t row) const {
    return parts_.a.row_ids.empty() ? row : parts_.a.row_ids[row];
  }

  const Parts& parts_;
  const CsrMatrix& a_;
  std::int64_t n_;
  std::vector<Value> heads_, tails_;  // one row of N sums per part
  Buffer widened_b_;                  // K x N; empty when B is used as it lies
};

class CpuCsrPrepared final : public Prepared {
 public:
  CpuCsrPrepared(const SparseOperand& a, Device& device, StageTimer& stages)
      : parts_(a, device, stages) {}

  std::unique_ptr<Plan> bind(const Shape& shape, StageTimer& stages) override {
    if (parts_.a.precision == Precision::fp64)
      return std::make_unique<CpuCsrPlan<double>>(parts_, shape, stages);
    return std::make_unique<CpuCsrPlan<float>>(parts_, shape, stages);
  }

 private:
  Parts parts_;
};

class CpuCsr final : public Kernel {
 public:
  const KernelInfo& info() const override { return info_; }

  Support supports(const Problem& problem, const DeviceInfo& device) const override {
    const std::int64_t partial_rows = std::int64_t{2} * kPartsPerThread * device.sm_count;
    const std::int64_t widened_rows = widens(problem.precision, problem.layout) ? problem.k() : 0;
    std::size_t bytes = 0;
    if (__builtin_mul_overflow(partial_rows + widened_rows, problem.n, &bytes) ||
        __builtin_mul_overflow(bytes, bytes_of(loop_type(problem.precision)), &bytes))
      bytes = SIZE_MAX;  // more than there is
    return Support::yes(bytes);
  }

  std::unique_ptr<Prepared> prepare(const SparseOperand& a, const Options&, Device& device,
                                    StageTimer& stages) const override {
    return std::make_unique<CpuCsrPrepared>(a, device, stages);
  }

 private:
  KernelInfo info_ = {
      .name = "cpu_csr",
      .summary = "CSR on the CPU: OpenMP over even parts, vectorised over columns",
      .source = "spmmbench; even parts after Merrill and Garland, SC 2016",
      .device = DeviceKind::host,
      .precisions = {Precision::fp32, Precision::tf32, Precision::fp16, Precision::bf16,
                     Precision::fp64, Precision::fp8_e4m3, Precision::fp8_e5m2},
      .c_types = {ElementType::f32, ElementType::f16, ElementType::bf16},
      .layouts = {Layout::row_major, Layout::col_major},
      .accumulation = Accumulation::fp32_fma,
      .writes_row_ids = true,
      .takes_values = true,  // it reads those of the operand
  };
};

SPMMBENCH_REGISTER_KERNEL(CpuCsr);

}  // namespace
}  // namespace spmmbench::cpu_csr
