#include "io/gzip.hpp"
#include "io/archive.hpp"
#include "io/file.hpp"
#include "io_fixtures.hpp"

#include <fmt/format.h>

namespace spmmbench::test {
namespace {

std::string inflate_all(const std::string& path) {
  const MappedFile file(path);
  GzipInput packed(file.bytes(), path);
  std::string out;
  for (std::string_view piece = packed.next(); !piece.empty(); piece = packed.next()) out += piece;
  return out;
}

TEST(Gzip, UnpacksWhatItPackedAndWhatIsConcatenated) {
  const ScratchFolder folder;
  for (const std::size_t bytes : {0, 1, 511, 512, 513, 262143, 262144, 262145, 3000000}) {
    const std::string text = some_text(bytes), packed = gzip_bytes(folder, text);
    EXPECT_EQ(inflate_all(folder.write("a.gz", packed)), text);
    EXPECT_EQ(inflate_all(folder.write("a.gz", packed + packed)), text + text);
    EXPECT_EQ(inflate_all(folder.write("a.gz", packed + std::string(100, '\0'))), text);
    EXPECT_EQ(unpack_matrix_text(folder.write("a.gz", packed)).text.view(), text);
  }
}

TEST(Gzip, WhatFollowsAndIsNoMemberIsAnError) {
  const ScratchFolder folder;
  for (const std::size_t bytes : {0, 300, 262144}) {
    const std::string packed = gzip_bytes(folder, some_text(bytes));
    for (const std::string& behind :
         {std::string("x"), std::string("\x1f"), std::string("1 1 1\n"),
          std::string(100, '\0') + "x", std::string(1, '\0') + packed}) {
      const std::string path = folder.write("a.gz", packed + behind);
      const std::string message = error_of([&] { unpack_matrix_text(path); });
      EXPECT_TRUE(contains(message, "expected the end of the file behind the gzip data, got '"))
          << message;
      EXPECT_TRUE(message.ends_with(fmt::format(" at byte {}", packed.size()))) << message;
      EXPECT_FALSE(contains(message, "\n"));
    }
  }
}

TEST(Gzip, EveryTruncationAndCorruptionIsAnError) {
  const ScratchFolder folder;
  const std::string text = some_text(300), packed = gzip_bytes(folder, text);
  for (std::size_t size = 0; size < packed.size(); ++size) {
    const std::string path = folder.write("a.gz", packed.substr(0, size));
    const std::string message = error_of([&] { unpack_matrix_text(path); });
    EXPECT_TRUE(contains(message, size < 2 ? "expected gzip, xz or zstd data" : "truncated"))
        << message;
  }
  for (std::size_t at = 10; at < packed.size(); ++at) {
    std::string bad = packed;
    bad[at] = static_cast<char>(bad[at] ^ 4);
    try {  // a few bits of a deflate stream mean nothing
      EXPECT_EQ(inflate_all(folder.write("a.gz", bad)), text) << at;
    } catch (const Error& error) {
      EXPECT_TRUE(contains(error.what(), "a.gz: ")) << error.what();
    }
  }
}

}  // namespace
}  // namespace spmmbench::test
