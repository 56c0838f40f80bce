// Which NCCL serves. Stand-ins of the library are in tests/fakes.

#ifdef SPMMBENCH_FAKE_NCCL

#include "gpu/nccl.hpp"

#include <gtest/gtest.h>

namespace spmmbench {
namespace {

std::string why_not(const char* file) { return why_no_nccl(SharedLibrary(file)); }

TEST(Nccl, IsNotUsedWhereItIsMissingOrOlderThanNeeded) {
  const std::string missing = why_not("/no/such/libnccl.so.2");
  EXPECT_TRUE(missing.starts_with("NCCL: /no/such/libnccl.so.2: cannot open")) << missing;
  EXPECT_EQ(why_not(SPMMBENCH_FAKE_NCCL_TOO_OLD), "needs NCCL 2.7, found 2604");
  EXPECT_EQ(why_not(SPMMBENCH_FAKE_NCCL_UNKNOWN), "NCCL: it tells no version");
  EXPECT_EQ(why_not(SPMMBENCH_FAKE_NCCL), "");
}

}  // namespace
}  // namespace spmmbench

#endif
