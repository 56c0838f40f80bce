#include "io/matrix_output.hpp"
#include "io/archive.hpp"
#include "io/csr_cache.hpp"
#include "io/dense_file.hpp"
#include "io/matrix_market.hpp"
#include "io_fixtures.hpp"

namespace spmmbench::test {
namespace {

TEST(MatrixOutput, TheExtensionTellsTheFormatAndEveryFormatReadsBack) {
  const ScratchFolder folder;
  const CsrMatrix csr = random_csr(40, 60, 500, 5);
  CsrMatrix nonzeros = to_csr(to_dense(csr));
  write_matrix(folder.file("a.mtx"), csr, false);
  EXPECT_EQ(read_matrix_market(folder.file("a.mtx")).csr, csr);
  write_matrix(folder.file("a.mtx.gz"), csr, false);
  EXPECT_EQ(unpack_matrix_text(folder.file("a.mtx.gz")).text.view(),
            read_bytes(folder.file("a.mtx")));
  write_matrix(folder.file("a.csr"), csr, false);
  EXPECT_EQ(read_csr_cache(folder.file("a.csr")).csr, csr);
  write_matrix(folder.file("a.npy"), csr, false);
  EXPECT_EQ(to_csr(read_npy(folder.file("a.npy"))), nonzeros);
  write_matrix(folder.file("a.bin"), csr, false);
  EXPECT_EQ(to_csr(read_bin(folder.file("a.bin"), 40, 60)), nonzeros);
  EXPECT_TRUE(contains(error_of([&] { write_matrix(folder.file("a.txt"), csr, false); }),
                       "ends in .mtx, .mtx.gz, .csr, .npy or .bin"));
}

TEST(MatrixOutput, AHugeSparseMatrixIsNotMadeDense) {
  const ScratchFolder folder;
  const CsrMatrix huge{100000, 100000, std::vector<std::int64_t>(100001), {}, {}};
  EXPECT_EQ(error_of([&] { write_matrix(folder.file("a.npy"), huge, false); }),
            folder.file("a.npy") +
                ": expected a dense matrix of at most 4.0 GB, got 100000 x 100000: 40.0 GB");
}

TEST(MatrixOutput, AFullDiskIsOneLine) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "no /dev/full";
  const ScratchFolder folder;
  std::filesystem::create_symlink("/dev/full", folder.file("a.csr"));
  EXPECT_EQ(
      error_of([&] { write_csr_cache(folder.file("a.csr"), random_csr(99, 99, 9999, 1), false); }),
      folder.file("a.csr") + ": cannot be written: No space left on device");
}

}  // namespace
}  // namespace spmmbench::test
