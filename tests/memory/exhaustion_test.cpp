// Where memory runs out, orderings, formats and the verification throw std::bad_alloc, also from
// inside their threads.

#include <gtest/gtest.h>
#include <omp.h>

#include <memory>
#include <new>
#include <string>

#include "async_bcsr/format.hpp"
#include "bitmap_dense/format.hpp"
#include "gpu/backend.hpp"
#include "heap.hpp"
#include "io/input.hpp"
#include "rsh/format.hpp"
#include "rsh/image.hpp"
#include "spmmbench/registry.hpp"
#include "verify/reference.hpp"
#include "window/column_reuse.hpp"

namespace spmmbench {
namespace {

class Exhaustion : public ::testing::Test {
 protected:
  void SetUp() override { omp_set_num_threads(4); }
  void TearDown() override { omp_set_num_threads(threads_); }

  // The program would end where a thread let the exception out.
  template <class Body>
  void expect_bad_alloc_or_a_result(const std::string& what, const Body& body) {
    constexpr std::int64_t kLimits = 6;
    const std::int64_t peak = testing::peak_bytes_of([&] {
      body();
      return 0;
    });
    std::int64_t failed = 0;
    for (std::int64_t i = 0; i < kLimits; ++i) {
      const testing::HeapLimit limit(peak * i / kLimits);
      try {
        body();
      } catch (const std::bad_alloc&) {
        ++failed;
      }
    }
    constexpr std::int64_t kLeastPeak = 4096;  // of formats that are only counted
    EXPECT_TRUE(failed > 0 || peak <= kLeastPeak) << what;
  }

  // Two parts of `pack`, several chunks of `rs_tile`, and more columns than rows.
  const CsrMatrix matrix_ =
      load_input("gen:uniform?rows=300000&cols=450000&nnz_per_row=2", {}).a.csr;

 private:
  int threads_ = omp_get_max_threads();
};

TEST_F(Exhaustion, OfOrderings) {
  for (const Reordering* reordering : Registry<Reordering>::instance().sorted())
    expect_bad_alloc_or_a_result(reordering->name(),
                                 [&] { (void)reordering->compute(matrix_, {}); });
}

TEST_F(Exhaustion, OfFormats) {
  for (const Format* format : Registry<Format>::instance().sorted())
    expect_bad_alloc_or_a_result(format->name(), [&] { (void)format->analyze(matrix_, {}); });
}

TEST_F(Exhaustion, OfWhatKernelsMakeOfFormats) {
  const rsh::RsTile tile = rsh::RsTile::build(matrix_, Spec::parse("rs_tile?window=8").options);
  expect_bad_alloc_or_a_result("image", [&] { (void)rsh::RsImage::build(tile, ElementType::f32); });
  const BcsrPattern pattern = BcsrPattern::build(matrix_, 64, 64);
  expect_bad_alloc_or_a_result("groups", [&] {
    (void)async_bcsr::BcsrGroups::build(pattern, 64, async_bcsr::BcsrGrouping::consecutive);
  });
  const CsrMatrix dense = load_input("gen:uniform?rows=1024&cols=2048&density=0.3", {}).a.csr;
  const auto ranges = bitmap_dense::BitmapPanels::whole_panels(dense.rows, dense.cols);
  expect_bad_alloc_or_a_result(
      "queues", [&] { (void)bitmap_dense::PairQueues::build(dense, ElementType::f16, ranges); });
  const Permutation natural;
  expect_bad_alloc_or_a_result("reuse",
                               [&] { (void)new_column_shares(matrix_, {&natural}, matrix_.cols); });
}

TEST_F(Exhaustion, OfTheVerificationOfAWideProduct) {
  constexpr std::int64_t kRows = 17, kWide = std::int64_t{1} << 20;  // more than is kept
  const CsrMatrix column = load_input("gen:uniform?rows=17&cols=1&nnz_per_row=1", {}).a.csr;
  const std::unique_ptr<Device> host = open_host_device();
  DenseView b = make_dense_view(1, kWide, Layout::row_major, ElementType::f32);
  DenseView c = make_dense_view(kRows, kWide, Layout::row_major, ElementType::f32);
  const Buffer b_memory = host->allocate(b.bytes()), c_memory = host->allocate(c.bytes());
  b.data = b_memory.data();
  c.data = c_memory.data();
  host->fill_bytes(b.data, 0, b.bytes());
  host->fill_bytes(c.data, 0, c.bytes());
  const auto check = [&] { return make_reference(column, {}, b, *host)->check(c, {}).ok; };
  expect_bad_alloc_or_a_result("verification", check);
  EXPECT_LT(testing::peak_bytes_of(check), kWide);
}

}  // namespace
}  // namespace spmmbench
