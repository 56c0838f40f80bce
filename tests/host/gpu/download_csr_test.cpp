#include "gpu/download_csr.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <set>

#include "gpu/backend.hpp"

namespace spmmbench {
namespace {

TEST(DownloadedCsr, IsCopiedOnceForAllThreads) {
  const std::unique_ptr<Device> device = open_host_device();
  const CsrMatrix a{3, 4, {0, 2, 3, 3}, {0, 3, 1}, {0.5F, -0.25F, 2.0F}};
  const DeviceCsr there{.rows = a.rows,
                        .cols = a.cols,
                        .nnz = a.nnz(),
                        .row_ptr = a.row_ptr.data(),
                        .col_idx = a.col_idx.data(),
                        .values = a.values.data()};
  DownloadedCsr copy(there, *device);
  std::set<const CsrMatrix*> seen;
#pragma omp parallel for schedule(static, 1) num_threads(8)
  for (int i = 0; i < 64; ++i) {
    const CsrMatrix* const got = &copy.get();
#pragma omp critical
    seen.insert(got);
  }
  EXPECT_EQ(seen.size(), 1U);
  EXPECT_EQ(copy.get(), a);
}

}  // namespace
}  // namespace spmmbench
