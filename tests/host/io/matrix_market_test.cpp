#include "io/matrix_market.hpp"

#include <fmt/format.h>

#include <cmath>
#include <cstdlib>

#include "io_fixtures.hpp"

namespace spmmbench::test {
namespace {

MatrixMarketMatrix parse(const std::string& text, std::size_t chunk_bytes = 1 << 20,
                         int threads = 2) {
  return parse_matrix_market(text, "a.mtx", {.threads = threads, .chunk_bytes = chunk_bytes});
}

std::string message(const std::string& text, std::size_t chunk_bytes = 1 << 20, int threads = 2) {
  return error_of([&] { parse(text, chunk_bytes, threads); });
}

constexpr const char* kHead = "%%MatrixMarket matrix coordinate real general\n";

// A file as a careless program might write it, and the matrix it means.
struct Sample {
  std::string text;
  CsrMatrix csr;
  bool pattern = false;
};

Sample random_sample(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto pick = [&](std::uint64_t n) { return static_cast<std::int64_t>(random() % n); };
  const char* const fields[] = {"real", "double", "integer", "pattern"};
  const char* const symmetries[] = {"general", "symmetric", "skew-symmetric"};
  const std::string field = fields[pick(4)];
  const std::string symmetry = symmetries[pick(field == "pattern" ? 2 : 3)];
  const std::int64_t rows = 1 + pick(30), cols = symmetry == "general" ? 1 + pick(30) : rows;
  const std::string line_end = pick(2) == 0 ? "\n" : "\r\n";
  const auto blanks = [&](std::int64_t least) {
    std::string out;
    for (std::int64_t i = least + pick(3) / 2; i > 0; --i)
      out += " \t\v\f"[pick(8) == 0 ? pick(4) : 0];
    return out;
  };
  Sample out;
  out.pattern = field == "pattern";
  Entries entries;
  std::string body;
  std::int64_t count = 0;
  for (std::int64_t i = pick(120); i > 0; --i) {
    const std::int64_t row = pick(rows), col = pick(cols);  // either triangle, and duplicates
    if (symmetry == "skew-symmetric" && row == col) continue;
    ++count;
    std::string value;
    if (field == "integer") value = fmt::format("{}", static_cast<std::int32_t>(random()));
    else if (pick(2) == 0) value = fmt::format("{:.12g}", any_float(random) * 1.0000001);
    else value = fmt::format("{}{:e}", pick(4) == 0 ? "+" : "", std::abs(any_float(random)));
    const double read = std::strtod(value.c_str(), nullptr);
    body +=
        fmt::format("{}{}{}{:0{}}{}{}{}{}", blanks(0), row + 1, blanks(1), col + 1, 1 + pick(2) * 5,
                    out.pattern ? "" : blanks(1), out.pattern ? "" : value, blanks(0), line_end);
    while (pick(6) == 0) body += blanks(0) + line_end;
    entries[{row, col}] += read;
    if (symmetry != "general" && row != col)
      entries[{col, row}] += symmetry == "symmetric" ? read : -read;
  }
  if (pick(3) == 0 && body.ends_with(line_end) && pick(2) == 0)
    body.resize(body.size() - line_end.size());
  out.csr = csr_of(rows, cols, entries, out.pattern);
  out.text = fmt::format("%%MatrixMarket matrix coordinate {} {}{}%{}%  comment{}{}{}{} {} {}{}{}",
                         field, symmetry, line_end, line_end, line_end, line_end, blanks(0), rows,
                         cols, count, blanks(0) + line_end, body);
  return out;
}

TEST(MatrixMarket, ReadsWhatAnyWriterMeans) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    const Sample sample = random_sample(seed);
    const MatrixMarketMatrix read = parse(sample.text, 1 + seed % 97, 1 + seed % 3);
    EXPECT_EQ(read.pattern, sample.pattern);
    ASSERT_EQ(read.csr, sample.csr) << sample.text;
  }
}

TEST(MatrixMarket, CutsAtEveryByteGiveTheSameMatrix) {
  const Sample sample = random_sample(3);
  for (std::size_t chunk = 1; chunk <= sample.text.size(); ++chunk)
    ASSERT_EQ(parse(sample.text, chunk, chunk % 16 == 0 ? 2 : 1).csr, sample.csr) << chunk;
}

TEST(MatrixMarket, CutsAtEveryByteGiveTheSameError) {
  const std::string bodies[] = {"1 1 1\n2 2 2\n\n3 x 3\n1 1 1\n4 4 4\n", "1 1 1\n2 2 2\n",
                                "1 1 1\n2 2 2\n3 3 3\n1 2 4\n\n1 3 5\nx\n",
                                "1 1 1\n2 2 2\n3 3 3\n4 4 4"};
  for (const std::string& body : bodies) {
    const std::string text = kHead + ("3 3 4\n" + body);
    const std::string whole = message(text);
    for (std::size_t chunk = 1; chunk <= text.size(); ++chunk)
      for (const int threads : {1, 2}) ASSERT_EQ(message(text, chunk, threads), whole) << text;
  }
}

TEST(MatrixMarket, RoundsValuesAsStrtofDoes) {
  std::mt19937_64 random(1);
  std::vector<std::string> values = {
      "1",
      "-0",
      "+1",
      ".5",
      "5.",
      "1e5",
      "1E+05",
      "1e-05",
      "1e38",
      "1e39",
      "-1e39",
      "1e999",
      "-1e999",
      "1e-999",
      "1e-45",
      "1e-46",
      "1e-40",
      "nan",
      "inf",
      "-Inf",
      "INFINITY",
      "+inf",
      "0.1",
      "16777217",
      "0e999999",
      "1e-99999999999999999999",
      "340282346638528859811704183484516925440",
      "0.00000000000000000000000000000000000000000000000000000000000000000001",
      std::string(400, '9'),
      "0." + std::string(400, '0') + "1"};
  for (int i = 0; i < 2000; ++i) {
    values.push_back(fmt::format("{}", any_float(random)));
    values.push_back(fmt::format("{:.12e}", any_float(random)));
    values.push_back(fmt::format("{:.17g}", any_float(random) * 1.00000003));
  }
  std::string text = kHead + fmt::format("1 {0} {0}\n", values.size());
  for (std::size_t i = 0; i < values.size(); ++i)
    text += fmt::format("1 {} {}\n", i + 1, values[i]);
  const CsrMatrix csr = parse(text).csr;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const float expected = std::strtof(values[i].c_str(), nullptr);
    if (std::isnan(expected)) {
      EXPECT_TRUE(std::isnan(csr.values[i]));
    } else {
      EXPECT_EQ(std::pair(csr.values[i], std::signbit(csr.values[i])),
                std::pair(expected, std::signbit(expected)))
          << values[i];
    }
  }
}

TEST(MatrixMarket, IntegersMayBeUnsignedAsScipyWritesThem) {
  for (const char* const field : {"integer", "unsigned-integer"}) {
    const std::string head = fmt::format("%%MatrixMarket matrix coordinate {} general\n", field);
    EXPECT_EQ(parse(head + "1 3 3\n1 1 7\n1 2 9223372036854775808\n1 3 18446744073709551615\n")
                  .csr.values,
              (std::vector<float>{7, 0x1p63F, 0x1p64F}));
    for (const char* const value : {"18446744073709551616", "-9223372036854775809"})
      EXPECT_EQ(message(head + fmt::format("1 1 1\n1 1 {}\n", value)),
                fmt::format("a.mtx:3: expected a 64-bit integer value, got '{}'", value));
  }
}

TEST(MatrixMarket, ArraysKeepEveryEntryInColumnOrder) {
  const std::string head = "%%MatrixMarket matrix array real ";
  for (const std::size_t chunk : {1, 3, 1000}) {
    EXPECT_EQ(parse(head + "general\n2 3\n1\n2\n0\n4\n5\n6\n", chunk).csr,
              (CsrMatrix{2, 3, {0, 3, 6}, {0, 1, 2, 0, 1, 2}, {1, 0, 5, 2, 4, 6}}));
    EXPECT_EQ(parse(head + "symmetric\n2 2\n1\n2\n3\n", chunk).csr,
              (CsrMatrix{2, 2, {0, 2, 4}, {0, 1, 0, 1}, {1, 2, 2, 3}}));
    EXPECT_EQ(parse(head + "skew-symmetric\n3 3\n1\n2\n3", chunk).csr,
              (CsrMatrix{3, 3, {0, 2, 4, 6}, {1, 2, 0, 2, 0, 1}, {-1, -2, 1, -3, 2, 3}}));
  }
  EXPECT_EQ(parse(head + "general\n0 3\n").csr, (CsrMatrix{0, 3, {0}, {}, {}}));
  EXPECT_EQ(parse(head + "skew-symmetric\n1 1\n").csr, (CsrMatrix{1, 1, {0, 0}, {}, {}}));
  EXPECT_EQ(parse(head + "symmetric\n0 0\n").csr, (CsrMatrix{0, 0, {0}, {}, {}}));
}

TEST(MatrixMarket, EmptyMatricesAreMatrices) {
  EXPECT_EQ(parse(kHead + std::string("0 0 0")).csr, (CsrMatrix{}));
  EXPECT_EQ(parse(kHead + std::string("2 3 0\n\n \n")).csr, (CsrMatrix{2, 3, {0, 0, 0}, {}, {}}));
}

TEST(MatrixMarket, IndicesMayHaveAnyNumberOfZerosInFront) {
  const std::string zeros(40, '0');
  EXPECT_EQ(parse(kHead + ("2 " + zeros + "3 1\n+" + zeros + "2 " + zeros + "3 7\n")).csr,
            (CsrMatrix{2, 3, {0, 0, 1}, {2}, {7}}));
  for (const char* const index : {"18446744073709551618", "36893488147419103234",
                                  "10000000000000000000000000000000000000002"})
    EXPECT_EQ(message(kHead + fmt::format("2 3 1\n{} 1 1\n", index)),
              fmt::format("a.mtx:3: expected a row from 1 to 2, got '{:.40}{}'", index,
                          std::string_view(index).size() > 40 ? "..." : ""));
}

TEST(MatrixMarket, ValuesInFp64AreWhatTheTextRoundsToWhereTheyAreWanted) {
  const auto fp64 = [](const std::string& text) {
    return parse_matrix_market(text, "a.mtx", {.chunk_bytes = 8, .fp64 = true}).csr;
  };
  const std::string tie = "1.000000059604644775390625000001";  // just above a tie of fp32
  const CsrMatrix csr =
      fp64(std::string(kHead) + "2 2 4\n2 2 0.1\n1 2 1e300\n1 1 " + tie + "\n1 1 1e-12\n");
  EXPECT_EQ(csr.values64, (std::vector<double>{1 + 0x1p-24 + 1e-12, 1e300, 0.1}));
  EXPECT_EQ(csr.values[2], 0.1F);
  EXPECT_TRUE(std::isinf(csr.values[1]));
  EXPECT_TRUE(parse(std::string(kHead) + "1 1 1\n1 1 0.1\n").csr.values64.empty());
  const CsrMatrix mirrored =
      fp64("%%MatrixMarket matrix coordinate real skew-symmetric\n2 2 1\n2 1 0.1\n");
  EXPECT_EQ(mirrored.values64, (std::vector<double>{-0.1, 0.1}));
  const CsrMatrix array = fp64("%%MatrixMarket matrix array real general\n1 2\n0.1\n1e-60\n");
  EXPECT_EQ(array.values64, (std::vector<double>{0.1, 1e-60}));
  EXPECT_EQ(array.values, (std::vector<float>{0.1F, 0}));
}

TEST(MatrixMarket, ValuesInFp64AreWrittenSoThatTheyReadBack) {
  const ScratchFolder folder;
  CsrMatrix csr{1, 3, {0, 3}, {0, 1, 2}, {0, 0, 0}, {-0x1.fffffffffffffp-1022, 0.1, 5e-324}};
  for (std::size_t i = 0; i < 3; ++i) csr.values[i] = static_cast<float>(csr.values64[i]);
  write_matrix_market(folder.file("a.mtx"), csr, false);
  EXPECT_EQ(read_matrix_market(folder.file("a.mtx"), {.fp64 = true}).csr, csr);
}

TEST(MatrixMarket, DuplicatesAddUpInFp64) {
  EXPECT_EQ(parse(kHead + std::string("1 1 3\n1 1 1e8\n1 1 1\n1 1 -1e8\n")).csr.values,
            std::vector<float>{1});
}

TEST(MatrixMarket, DuplicatesAreRoundedToFp32WhenTheyAreAdded) {
  EXPECT_EQ(parse(kHead + std::string("1 2 3\n1 1 16777217\n1 1 -16777216\n1 2 5\n")).csr,
            csr_of(1, 2, {{{0, 0}, 1}, {{0, 1}, 5}}));
  EXPECT_EQ(parse("%%MatrixMarket matrix coordinate integer symmetric\n3 3 6\n2 1 16777217\n"
                  "3 3 7\n1 1 16777217\n2 1 -16777216\n1 1 -16777216\n3 3 16777217\n")
                .csr,
            csr_of(3, 3, {{{0, 0}, 1}, {{0, 1}, 1}, {{1, 0}, 1}, {{2, 2}, 16777224}}));
  // Many rows, over several chunks and threads.
  constexpr int kRows = 3000;
  std::string text = kHead + fmt::format("{0} {0} {1}\n", kRows, 3 * kRows);
  for (const char* const value : {"16777217", "0.5", "-16777216"})
    for (int row = kRows; row >= 1; --row) text += fmt::format("{0} {0} {1}\n", row, value);
  const CsrMatrix csr = parse(text, 1000).csr;
  ASSERT_EQ(csr.nnz(), kRows);
  for (const float value : csr.values) ASSERT_EQ(value, 1.5F);
}

TEST(MatrixMarket, AValueIsRoundedOnce) {
  // Just above the middle between 1 and the next number of fp32: in fp64 it is the middle itself.
  const std::string entry = "1 1 1\n1 1 1.0000000596046447753906251\n";
  EXPECT_EQ(parse(kHead + entry).csr.values, std::vector<float>{1.00000012F});
  EXPECT_EQ(parse(kHead + std::string("1 1 1\n1 1 1e50\n")).csr.values,
            std::vector<float>{std::numeric_limits<float>::infinity()});
}

TEST(MatrixMarket, OneRowThatHoldsEverythingBackwardsIsSorted) {
  std::string text = kHead + std::string("3 5000 5000\n");
  for (int col = 5000; col >= 1; --col) text += fmt::format("2 {} {}\n", col, col);
  const CsrMatrix csr = parse(text, 100).csr;
  EXPECT_EQ(csr.row_ptr, (std::vector<std::int64_t>{0, 0, 5000, 5000}));
  for (int col = 0; col < 5000; ++col) {
    ASSERT_EQ(csr.col_idx[col], col);
    ASSERT_EQ(csr.values[col], static_cast<float>(col + 1));
  }
}

TEST(MatrixMarket, SizesBeyond32BitsAreRefusedBeforeAnythingIsAllocated) {
  const std::string pattern = "%%MatrixMarket matrix coordinate pattern general\n";
  EXPECT_EQ(message(pattern + "1000000000000 3 1\n1 1\n"),
            "a.mtx:2: expected at most 2147483647 rows and columns (32-bit indices), got "
            "1000000000000 x 3");
  EXPECT_EQ(message(pattern + "3 3 4611686018427387904\n1 1\n"),
            "a.mtx:2: expected 4611686018427387904 entries, as this line says, got only 4 bytes "
            "after it, room for 1 at most: truncated?");
  EXPECT_EQ(message(pattern + "99999999999999999999 3 1\n1 1\n"),
            "a.mtx:2: expected a size in 64 bits, got '99999999999999999999'");
  EXPECT_EQ(message("%%MatrixMarket matrix array real general\n2147483647 2147483647\n1\n"),
            "a.mtx:2: expected 4611686014132420609 entries, as this line says, got only 2 bytes "
            "after it, room for 1 at most: truncated?");
  EXPECT_EQ(error_of([&] {
              parse_matrix_market(pattern + "2000000000 3 1\n1 1\n", "a.mtx",
                                  {.memory_bytes = 1'000'000'000});
            }),
            "a.mtx:2: expected a matrix that fits in memory, got 2000000000 x 3 with 1 entry: "
            "needs 16.0 GB, 1.0 GB available");
}

TEST(MatrixMarket, ALineWithoutItsValueIsNamed) {
  std::string text = "%%MatrixMarket matrix coordinate integer symmetric\n3 3 4\n";
  EXPECT_EQ(message(text + "1 1\n2 1\n3 1\n3 3\n"),
            "a.mtx:3: expected a 64-bit integer value, got the end of the line");
}

struct BadFile {
  std::string text, message;
};

TEST(MatrixMarket, BadFilesGetOneLineThatSaysWhereAndWhat) {
  const std::string banner =
      "a.mtx:1: expected '%%MatrixMarket matrix coordinate|array real|double|integer|pattern "
      "general|symmetric|skew-symmetric', got ";
  const std::string head = "%%MatrixMarket matrix ";
  const BadFile bad[] = {
      {"", banner + "an empty file"},
      {"hello\n", banner + "'hello'"},
      {std::string("\0\1\n", 3), banner + "'\\x00\\x01'"},
      {"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n",
       banner + "a Git LFS pointer (fetch the file itself with 'git lfs pull')"},
      {"<!DOCTYPE html>\n<html>", banner + "an HTML page (the download failed or needs a login)"},
      {"  <HTML>\n", banner + "an HTML page (the download failed or needs a login)"},
      {"\x1f\x8b\b", banner + "gzip data (name it .gz, or unpack it)"},
      {" %%MatrixMarket matrix coordinate real general\n1 1 0\n",
       banner + "' %%MatrixMarket matrix coordinate real general'"},
      {head + "coordinate real\n", banner + "'%%MatrixMarket matrix coordinate real'"},
      {head + "coordinate real general 0-base\n",
       banner + "'%%MatrixMarket matrix coordinate real general 0-base'"},
      {"%%MatrixMarket vector coordinate real general\n1 0\n",
       "a.mtx:1: expected the object 'matrix', got 'vector'"},
      {head + "csr real general\n", "a.mtx:1: expected coordinate or array, got 'csr'"},
      {head + "coordinate complex general\n1 1 1\n1 1 1 0\n",
       "a.mtx:1: expected real, double, integer or pattern, got 'complex': products are real here"},
      {head + "coordinate quaternion general\n",
       "a.mtx:1: expected real, double, integer or pattern, got 'quaternion'"},
      {head + "coordinate real triangular\n",
       "a.mtx:1: expected general, symmetric or skew-symmetric, got 'triangular'"},
      {head + "coordinate real hermitian\n1 1 1\n1 1 1\n",
       "a.mtx:1: expected general, symmetric or skew-symmetric, got 'hermitian', which is for "
       "complex matrices"},
      {head + "array pattern general\n2 2\n",
       "a.mtx:1: expected coordinate with the field pattern, got 'array'"},
      {head + "coordinate pattern skew-symmetric\n2 2 0\n",
       "a.mtx:1: expected general or symmetric with the field pattern, got 'skew-symmetric'"},
      {kHead, "a.mtx:1: expected a size line, got the end of the file"},
      {kHead + std::string("% a\n\n% b"), "a.mtx:4: expected a size line, got the end of the file"},
      {kHead + std::string("3 3\n1\n"),
       "a.mtx:2: expected a size line 'rows columns entries', got '3 3'"},
      {kHead + std::string("3 3 1 9\n"),
       "a.mtx:2: expected a size line 'rows columns entries', got '3 3 1 9'"},
      {kHead + std::string("3 3 x\n"),
       "a.mtx:2: expected a size line 'rows columns entries', got '3 3 x'"},
      {kHead + std::string("%\n-3 3 1\n1 1 1\n"), "a.mtx:3: expected sizes from 0 up, got '-3'"},
      {head + "coordinate real symmetric\n3 4 1\n1 1 1\n",
       "a.mtx:2: expected a square matrix with this symmetry, got 3 x 4"},
      {kHead + std::string("3 3 1\n0 1 1\n"), "a.mtx:3: expected a row from 1 to 3, got '0'"},
      {kHead + std::string("3 3 1\n4 1 1\n"), "a.mtx:3: expected a row from 1 to 3, got '4'"},
      {kHead + std::string("3 3 1\n-1 1 1\n"), "a.mtx:3: expected a row from 1 to 3, got '-1'"},
      {kHead + std::string("3 3 1\n1.5 1 1\n"), "a.mtx:3: expected a row from 1 to 3, got '1.5'"},
      {kHead + std::string("3 3 1\n+ 1 1\n"), "a.mtx:3: expected a row from 1 to 3, got '+'"},
      {kHead + std::string("3 3 1\n1 4294967297 1\n"),
       "a.mtx:3: expected a column from 1 to 3, got '4294967297'"},
      {kHead + std::string("3 3 1\n18446744073709551617 1 1\n"),
       "a.mtx:3: expected a row from 1 to 3, got '18446744073709551617'"},
      {kHead + std::string("3 3 1\n1    \n"),
       "a.mtx:3: expected a column from 1 to 3, got the end of the line"},
      {kHead + std::string("3 3 1\n\n\n1 1   \n"),
       "a.mtx:5: expected a real value, got the end of the line"},
      {kHead + std::string("3 3 1\n1 1 1.2.3\n"), "a.mtx:3: expected a real value, got '1.2.3'"},
      {kHead + std::string("3 3 1\n1 1 1.5D+03\n"),
       "a.mtx:3: expected a real value, got '1.5D+03'"},
      {kHead + std::string("3 3 1\n1 1 0x1p4\n"), "a.mtx:3: expected a real value, got '0x1p4'"},
      {kHead + std::string("3 3 1\n1 1 +-1\n"), "a.mtx:3: expected a real value, got '+-1'"},
      {kHead + std::string("3 3 1\n1 1 ++1\n"), "a.mtx:3: expected a real value, got '++1'"},
      {kHead + std::string("3 3 1\n1 1 1 % note\n"),
       "a.mtx:3: expected the end of the line, got '%'"},
      {kHead + std::string("3 3 1\n1 1 1 2 2 2\n"),
       "a.mtx:3: expected the end of the line, got '2'"},
      {kHead + std::string("3 3 2\n1 1 1\n% note\n2 2 2\n"),
       "a.mtx:4: expected a row from 1 to 3, got '%'"},
      {kHead + std::string("3 3 1\n1 1 1\n2 2 2\n"),
       "a.mtx:4: expected the end of the file after 1 entry, got '2'"},
      {kHead + std::string("3 3 2\n1 1 1.000000000\n"),
       "a.mtx:3: expected 2 entries, got the end of the file after 1"},
      {head + "coordinate integer general\n3 3 1\n1 1 1.5\n",
       "a.mtx:3: expected a 64-bit integer value, got '1.5'"},
      {head + "coordinate integer general\n3 3 1\n1 1 19223372036854775808\n",
       "a.mtx:3: expected a 64-bit integer value, got '19223372036854775808'"},
      {head + "coordinate pattern general\n3 3 1\n1 1 1\n",
       "a.mtx:3: expected the end of the line, got '1'"},
      {head + "coordinate real skew-symmetric\n3 3 1\n2 2 0\n",
       "a.mtx:3: expected no entry on the diagonal of a skew-symmetric matrix, got row 2 column 2"},
      {head + "array real general\n2 2\n1 2\n3 4\n",
       "a.mtx:3: expected the end of the line, got '2'"},
      {head + "array real general\n2 2\n1\n2\n3\n4\n5\n",
       "a.mtx:7: expected the end of the file after 4 entries, got '5'"},
  };
  for (const BadFile& file : bad)
    EXPECT_EQ(message(file.text).substr(0, file.message.size()), file.message) << file.text;
}

TEST(MatrixMarket, FilesAreReadAsTextIs) {
  const ScratchFolder folder;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const Sample sample = random_sample(seed);
    const std::string path = folder.write("a.mtx", sample.text);
    ASSERT_EQ(read_matrix_market(path, {.chunk_bytes = 16}).csr, sample.csr);
  }
  EXPECT_NE(error_of([&] {
              read_matrix_market(folder.file("none.mtx"));
            }).find("none.mtx: cannot open: No such file"),
            std::string::npos);
  EXPECT_NE(
      error_of([&] { read_matrix_market(folder.path().string()); }).find("expected a plain file"),
      std::string::npos);
}

TEST(MatrixMarket, LargeFilesDoNotDependOnTheThreads) {
  std::mt19937_64 random(11);
  std::string text = kHead + std::string("20000 15000 200000\n");
  for (int i = 0; i < 200000; ++i)
    text += fmt::format("{} {} {:.12g}\n", 1 + random() % 20000, 1 + random() % 15000,
                        any_float(random));
  const CsrMatrix one = parse(text, 1 << 20, 1).csr;
  validate(one);
  for (const int threads : {2, 3, 8}) EXPECT_EQ(parse(text, 1 << 12, threads).csr, one);
}

TEST(MatrixMarket, ReadsBackWhatItWrites) {
  const ScratchFolder folder;
  const std::pair<std::int64_t, std::int64_t> shapes[] = {{0, 0},   {0, 5},   {5, 0},    {1, 1},
                                                          {300, 7}, {7, 300}, {1, 40000}};
  for (const auto& [rows, cols] : shapes)
    for (const std::int64_t entries : {0, 1, 50, 200000})
      for (const bool pattern : {false, true}) {
        CsrMatrix csr = random_csr(rows, cols, entries, 7 * rows + cols);
        if (pattern) csr.values.clear();
        write_matrix_market(folder.file("a.mtx"), csr, pattern);
        const MatrixMarketMatrix read = read_matrix_market(folder.file("a.mtx"));
        ASSERT_EQ(read.csr, csr) << rows << " x " << cols;
        EXPECT_EQ(read.pattern, pattern);
      }
}

TEST(MatrixMarket, AnUnwritablePathIsOneLineAndLeavesNothing) {
  const ScratchFolder folder;
  folder.write("file", "");
  EXPECT_EQ(error_of([&] { write_matrix_market(folder.file("file/a.mtx"), CsrMatrix{}, false); }),
            folder.file("file/a.mtx") + ": cannot be written: Not a directory");
  std::filesystem::create_directory(folder.file("a.mtx"));
  EXPECT_EQ(error_of([&] { write_matrix_market(folder.file("a.mtx"), CsrMatrix{}, false); }),
            folder.file("a.mtx") + ": is a directory, expected a file to write");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 2);
}

}  // namespace
}  // namespace spmmbench::test
