#include "gpu/download_csr.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "fake_device.hpp"

namespace spmmbench {
namespace {

// Slow enough that all threads ask for the copy while it is made.
class SlowDevice final : public FakeDevice {
 public:
  void download(void* dst, const void* src, std::size_t bytes) override {
    ++downloads;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    FakeDevice::download(dst, src, bytes);
  }
  std::atomic<int> downloads = 0;
};

TEST(DownloadedCsr, IsCopiedOnceForAllThreads) {
  constexpr int kArrays = 3;  // of a CSR
  SlowDevice device;
  const CsrMatrix a{3, 4, {0, 2, 3, 3}, {0, 3, 1}, {0.5F, -0.25F, 2.0F}};
  const DeviceCsr there{.rows = a.rows,
                        .cols = a.cols,
                        .nnz = a.nnz(),
                        .row_ptr = a.row_ptr.data(),
                        .col_idx = a.col_idx.data(),
                        .values = a.values.data()};
  DownloadedCsr copy(there, device);
#pragma omp parallel num_threads(8)
  (void)copy.get();
  EXPECT_EQ(device.downloads, kArrays);
  EXPECT_EQ(copy.get(), a);
}

}  // namespace
}  // namespace spmmbench
