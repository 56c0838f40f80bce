#include "io/smtx.hpp"

#include "io/input.hpp"
#include "io_fixtures.hpp"

namespace spmmbench::test {
namespace {

TEST(Smtx, APatternIsReadAndItsValuesDrawn) {
  const CsrMatrix expected = csr_of(3, 4, {{{0, 0}, 1}, {{0, 3}, 1}, {{2, 1}, 1}}, true);
  EXPECT_EQ(parse_smtx("3, 4, 3\n0 2 2 3\n0 3 1\n", "f"), expected);
  EXPECT_EQ(parse_smtx("3,4,3\r\n0 2 2 3 \r\n0 3 1", "f"), expected);
  EXPECT_EQ(parse_smtx("3, 4, 3\n0 2 2 3\n3 0 1\n", "f"), expected);    // columns in any order
  EXPECT_EQ(parse_smtx("3, 4, 4\n0 3 3 4\n3 0 3 1\n", "f"), expected);  // repeated ones are one
  EXPECT_EQ(parse_smtx("2, 2, 0\n0 0 0\n\n", "f").nnz(), 0);
  EXPECT_EQ(parse_smtx("0, 5, 0\n0\n", "f").cols, 5);
  const ScratchFolder folder;
  const NamedMatrix matrix =
      load_input(folder.write("layer.smtx", "3, 4, 3\n0 2 2 3\n0 3 1\n"), {}).a;
  EXPECT_TRUE(matrix.pattern);
  EXPECT_EQ(matrix.name, "layer");
  EXPECT_EQ(matrix.csr.values.size(), 3U);
}

TEST(Smtx, BrokenFilesAreRefusedWithTheLine) {
  const auto refusal = [](const std::string& text) {
    return error_of([&] { parse_smtx(text, "f"); });
  };
  EXPECT_EQ(refusal(""), "f:1: expected 'rows, cols, nonzeros', got an empty file");
  EXPECT_EQ(refusal("a, 4, 3\n"), "f:1: expected rows from 0 to 2147483647, got 'a'");
  EXPECT_EQ(refusal("3, 4, 3\n0 2 2 3\n0 3\n"),
            "f:4: expected a column from 0 to 3, got the end of the file");
  EXPECT_EQ(refusal("3, 4, 3\n0 2 2 3\n0 4 1\n"), "f:3: expected a column from 0 to 3, got '4'");
  EXPECT_EQ(refusal("3, 4, 3\n0 2 1 3\n0 3 1\n"),
            "f:2: expected a rising offset from 2 to 3, got '1'");
  EXPECT_EQ(refusal("3, 4, 3\n0 2 2 2\n0 3 1\n"),
            "f:2: expected a rising offset from 3 to 3, got '2'");
  EXPECT_EQ(refusal("3, 4, 3\n1 2 2 3\n0 3 1\n"),
            "f:2: expected the first offset from 0 to 0, got '1'");
  EXPECT_EQ(refusal("3, 4, 3\n0 2 2 3\n0 3 1 2\n"),
            "f:3: expected the end of the file after the last column, got '2'");
  EXPECT_EQ(refusal("3, 4, 3\n0 2 2 3\n0 3 1.5\n"),
            "f:3: expected a column from 0 to 3, got '1.5'");
  EXPECT_EQ(refusal("3, 4, 9223372036854775807\n0 2 2 3\n"),
            "f:1: expected 4 offsets and 9223372036854775807 columns, got a file of 34 bytes");
  EXPECT_EQ(refusal("2000000000, 4, 0\n0"),
            "f:1: expected 2000000001 offsets and 0 columns, got a file of 18 bytes");
  EXPECT_EQ(
      refusal("<html>"),
      "f:1: expected 'rows, cols, nonzeros', got an HTML page (the download failed or needs a "
      "login)");
}

}  // namespace
}  // namespace spmmbench::test
