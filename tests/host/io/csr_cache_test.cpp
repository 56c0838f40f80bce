#include <array>

#include "io/csr_cache.hpp"
#include "io/sha256.hpp"
#include "io_fixtures.hpp"

namespace spmmbench::test {
namespace {

TEST(CsrCache, ReadsWhatItWrote) {
  const ScratchFolder folder;
  const std::string path = folder.file("a.csr");
  for (const auto& [rows, cols, entries] :
       {std::array{0, 0, 0}, {0, 9, 0}, {9, 0, 0}, {1, 1, 1}, {1000, 5, 900}, {3, 100000, 200000}})
    for (const bool pattern : {false, true}) {
      CsrMatrix csr = random_csr(rows, cols, entries, rows + entries);
      if (pattern) csr.values.clear();
      write_csr_cache(path, csr, pattern);
      const CachedMatrix read = read_csr_cache(path);
      EXPECT_EQ(read.csr, csr);
      EXPECT_EQ(read.pattern, pattern);
      EXPECT_EQ(read.sha256, matrix_sha256(csr, pattern));
    }
}

TEST(CsrCache, EveryFlippedByteAndEveryTruncationIsRefused) {
  const ScratchFolder folder;
  write_csr_cache(folder.file("a.csr"), random_csr(4, 6, 12, 3), false);
  const std::string good = read_bytes(folder.file("a.csr"));
  for (std::size_t at = 0; at < good.size(); ++at) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 0x10);
    const std::string path = folder.write("bad.csr", bad);
    EXPECT_TRUE(contains(error_of([&] { read_csr_cache(path); }), "bad.csr: ")) << at;
  }
  for (std::size_t size = 0; size < good.size(); ++size) {
    const std::string path = folder.write("bad.csr", good.substr(0, size));
    EXPECT_TRUE(contains(error_of([&] { read_csr_cache(path); }), "bad.csr: ")) << size;
  }
  const std::string cut = folder.write("cut.csr", good.substr(0, 100));
  EXPECT_EQ(error_of([&] { read_csr_cache(cut); }),
            cut + ": truncated: expected a header of 136 bytes, got 100");
  const std::string path = folder.write("bad.csr", good + "x");
  EXPECT_EQ(error_of([&] { read_csr_cache(path); }),
            fmt::format("{}: expected {} bytes, got {}: truncated or appended to", path,
                        good.size(), good.size() + 1));
}

TEST(CsrCache, AnIdentityThatIsNoSha256IsRefused) {
  const ScratchFolder folder;
  write_csr_cache(folder.file("a.csr"), random_csr(4, 6, 12, 3), false);
  constexpr std::size_t kAt = 64;
  for (const char digit : {'/', 'A', 'g', '\n', '\0'}) {
    std::string bytes = read_bytes(folder.file("a.csr"));
    bytes[kAt] = digit;
    const std::string path = folder.write("bad.csr", bytes);
    EXPECT_TRUE(contains(error_of([&] { read_csr_cache(path); }),
                         "bad.csr: corrupt: expected a SHA-256 of 64 lowercase hex digits, got '"));
  }
}

TEST(CsrCache, ArraysThatAreNoCsrAreRefusedBehindValidChecksums) {
  const ScratchFolder folder;
  const std::string path = folder.file("a.csr");
  const CsrMatrix broken[] = {
      {2, 2, {0, 1, 2}, {0, 2}, {1, 1}},    {2, 2, {0, 1, 2}, {-1, 0}, {1, 1}},
      {1, 2, {0, 2}, {1, 0}, {1, 1}},       {1, 2, {0, 2}, {1, 1}, {1, 1}},
      {3, 2, {0, 2, 1, 2}, {0, 1}, {1, 1}}, {2, 2, {1, 1, 2}, {0, 1}, {1, 1}},
      {2, 2, {0, -1, 2}, {0, 1}, {1, 1}}};
  for (const CsrMatrix& csr : broken) {
    write_csr_cache(path, csr, false);
    EXPECT_TRUE(contains(error_of([&] { read_csr_cache(path); }), "corrupt: expected ascending"));
  }
}

TEST(CsrCache, OtherFilesAreNamed) {
  const ScratchFolder folder;
  EXPECT_TRUE(contains(
      error_of([&] { read_csr_cache(folder.write("a.csr", "CSR1 of somebody else's kind")); }),
      "expected a CSR cache written by 'spmmbench convert', got 'CSR1 of somebody'"));
  EXPECT_TRUE(contains(error_of([&] {
                         read_csr_cache(
                             folder.write("a.csr", "version https://git-lfs.github.com/spec/v1"));
                       }),
                       "a Git LFS pointer"));
}

}  // namespace
}  // namespace spmmbench::test
