// The product of a part beside the gather of its B, on ranks that are threads, on the host.

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "gpu/backend.hpp"
#include "matrices.hpp"
#include "measure/rows_of_b.hpp"
#include "multi/host_transport.hpp"
#include "multi/part_product.hpp"
#include "process/temporary_folder.hpp"
#include "ranks.hpp"
#include "spmmbench/error.hpp"

namespace spmmbench {
namespace {

// Multiplies by fp32 sums. As others do, it begins a row with row 0 of B times 0. It refuses more
// than `most_rows` rows of A.
class PlainKernel final : public Kernel {
 public:
  explicit PlainKernel(std::int64_t most_rows = 1000) : most_rows_(most_rows) {
    info_.name = "plain";
    info_.device = DeviceKind::host;
    info_.precisions = {Precision::fp32};
  }
  const KernelInfo& info() const override { return info_; }
  Support supports(const Problem& problem, const DeviceInfo&) const override {
    return problem.a->rows > most_rows_ ? Support::no("too many rows") : Support::yes(0);
  }
  std::unique_ptr<Prepared> prepare(const SparseOperand& a, const Options&, Device&,
                                    StageTimer&) const override {
    return std::make_unique<PlainPrepared>(*a.a);
  }

 private:
  class PlainPlan final : public Plan {
   public:
    explicit PlainPlan(const CsrMatrix& a) : a_(a) {}
    void launch(const DenseView& b, const DenseView& c, Stream) override {
      for (std::int64_t row = 0; row < a_.rows; ++row)
        for (std::int64_t column = 0; column < b.cols; ++column) {
          float sum = 0 * static_cast<const float*>(b.data)[column];
          for (std::int64_t e = a_.row_ptr[row]; e < a_.row_ptr[row + 1]; ++e)
            sum += a_.values[e] * static_cast<const float*>(b.data)[a_.col_idx[e] * b.ld + column];
          static_cast<float*>(c.data)[row * c.ld + column] = sum;
        }
    }
    PlanReport report() const override {
      PlanReport report;
      report.device_bytes = 10;
      return report;
    }

   private:
    const CsrMatrix& a_;
  };
  class PlainPrepared final : public Prepared {
   public:
    explicit PlainPrepared(const CsrMatrix& a) : a_(a) {}
    std::unique_ptr<Plan> bind(const Shape&, StageTimer&) override {
      return std::make_unique<PlainPlan>(a_);
    }

   private:
    const CsrMatrix& a_;
  };

  KernelInfo info_;
  std::int64_t most_rows_;
};

// What runs beside the product comes after it here, as late as it may.
class LateTransport final : public Transport {
 public:
  explicit LateTransport(Transport& transport) : transport_(transport) {}

  void all_gather(void* all, std::size_t part_bytes) override {
    enqueue([=, this] { transport_.all_gather(all, part_bytes); });
  }
  void all_to_all(const std::vector<Block>& send, const std::vector<Block>& receive) override {
    enqueue([=, this] { transport_.all_to_all(send, receive); });
  }
  void pack(const void* from, const std::int32_t* lines, std::int64_t count, std::size_t line_bytes,
            void* packed) override {
    enqueue([=, this] { transport_.pack(from, lines, count, line_bytes, packed); });
  }
  void pull(const void* from, const std::int32_t* lines, std::int64_t count, std::size_t line_bytes,
            void* pulled) override {
    pack(from, lines, count, line_bytes, pulled);
  }
  Stream stream() const override { return {}; }
  void fork() override { is_beside_ = true; }
  void join() override {
    is_beside_ = false;
    for (const auto& work : beside_) work();
    beside_.clear();
  }
  void align() override {}

 private:
  void enqueue(const std::function<void()>& work) {
    if (is_beside_) beside_.push_back(work);
    else work();
  }

  Transport& transport_;
  std::vector<std::function<void()>> beside_;
  bool is_beside_ = false;
};

constexpr std::int64_t kWidth = 5;
constexpr Shape kShape = {.n = kWidth};

// Says in a line what a rank has that is not its C.
std::string multiply_on(int rank, int ranks, const CsrMatrix& a, const std::string& meeting) {
  Group group({rank, ranks, rank, meeting}, 60);
  const auto at_once = open_host_transport(group);
  LateTransport transport(*at_once);
  const auto device = open_host_device();
  const RowParts parts = split_rows(a, balanced_rows(a, ranks));
  const Gather gather = make_gather(parts, Way::needed_rows, rank);
  const CsrMatrix part = part_of_a(a, parts, gather, rank);

  DenseView b = make_b_view(gather.rows, kWidth, Layout::row_major, ElementType::f32);
  DenseView c = make_dense_view(part.rows, kWidth, Layout::row_major, ElementType::f32);
  const Buffer b_memory = device->allocate(b.bytes()), c_memory = device->allocate(c.bytes());
  b.data = b_memory.data();
  c.data = c_memory.data();
  const ValuesOfB values = {.seed = 7, .precision = Precision::fp32};
  fill_rows(b, gather.original.data(), values, *device);
  Exchange exchange(gather, Grid{ranks, 1}.same_columns(rank), ranks, b, *device, transport);
  exchange.poison_received();

  const PlainKernel kernel;
  StageTimer stages;
  PartProduct product(part, parts.inner[rank], gather.own, Precision::fp32, {&kernel, {}}, kShape,
                      *device, stages);
  product.launch(exchange, b, c);
  for (std::int64_t row = 0; row < part.rows; ++row)
    for (std::int64_t column = 0; column < kWidth; ++column) {
      float sum = 0;
      const std::int64_t of_a = parts.a[rank].begin + row;
      for (std::int64_t e = a.row_ptr[of_a]; e < a.row_ptr[of_a + 1]; ++e)
        sum += a.values[e] * static_cast<float>(values(a.col_idx[e], column));
      if (c_memory.as<float>()[row * c.ld + column] != sum)
        return "row " + std::to_string(row) + " is another";
    }
  const bool in_two = parts.inner[rank] > 0 && parts.inner[rank] < part.rows;
  return product.device_bytes() == (in_two ? 20 : 10) ? "" : "is not in two";
}

TEST(PartProduct, InnerRowsAndTheRestAreTheProduct) {
  constexpr int kRanks = 3;
  const CsrMatrix mixed = testing::random_matrix(60, 60, 2, 1, 3);
  const RowParts parts = split_rows(mixed, balanced_rows(mixed, kRanks));
  for (const CsrMatrix& a : {permute_both(mixed, inner_rows_first(mixed, parts)), mixed}) {
    const TemporaryFolder folder;
    const auto faults = testing::faults_of_ranks(
        kRanks, [&](int rank) { return multiply_on(rank, kRanks, a, folder.file("meeting")); });
    EXPECT_EQ(faults, std::vector<std::string>(kRanks));
  }
}

TEST(PartProduct, ARefusalOfSomeRowsIsOneOfTheProduct) {
  const auto device = open_host_device();
  const PlainKernel kernel(3);
  StageTimer stages;
  const CsrMatrix a = testing::random_matrix(6, 6, 2, 1, 3);
  const Range all = {0, a.cols};
  EXPECT_THROW(PartProduct(a, 2, all, Precision::fp32, {&kernel, {}}, kShape, *device, stages),
               Unsupported);
  EXPECT_NO_THROW(PartProduct(a, 3, all, Precision::fp32, {&kernel, {}}, kShape, *device, stages));
}

}  // namespace
}  // namespace spmmbench
