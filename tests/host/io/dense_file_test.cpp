#include <cmath>
#include <limits>

#include "core/available_memory.hpp"
#include "io/dense_file.hpp"
#include "io/input.hpp"
#include "io_fixtures.hpp"
#include "spmmbench/precision.hpp"

namespace spmmbench::test {
namespace {

DenseMatrix random_dense(std::int64_t rows, std::int64_t cols, std::uint64_t seed) {
  return to_dense(random_csr(rows, cols, rows * cols / 2, seed));
}

TEST(DenseFile, ReadsWhatItWrote) {
  const ScratchFolder folder;
  for (const auto& [rows, cols] : {std::pair{1, 1}, {3, 50}, {50, 3}, {0, 4}, {4, 0}, {128, 129}}) {
    const DenseMatrix dense = random_dense(rows, cols, rows);
    write_npy(folder.file("a.npy"), dense);
    EXPECT_EQ(read_npy(folder.file("a.npy")), dense);
    EXPECT_EQ(read_bytes(folder.file("a.npy")).find('\n') % 64, 63U);  // aligned data, as NumPy's
    write_bin(folder.file("a.bin"), dense);
    EXPECT_EQ(read_bin(folder.file("a.bin"), rows, cols), dense);
    EXPECT_EQ(to_dense(to_csr(dense)), dense);
  }
}

TEST(DenseFile, NpyOfEveryKindIsRead) {
  const ScratchFolder folder;
  const DenseMatrix expected{2, 3, {1, -2, 3.5, 0, 65504, 0x1p-24F}};
  const std::vector<float> c = expected.values, f = {1, 0, -2, 65504, 3.5, 0x1p-24F};
  const auto as_half = [](const std::vector<float>& values) {
    std::vector<std::uint16_t> out;
    for (const float value : values) out.push_back(Element<ElementType::f16>::encode(value));
    return out;
  };
  const std::string files[] = {
      npy("<f4", "False", "(2, 3)", c),
      npy("<f4", "True", "(2, 3)", f),
      npy("<f2", "False", "(2, 3)", as_half(c)),
      npy("<f2", "True", "(2,3,)", as_half(f)),
      npy("<f8", "False", "( 2 , 3 )", std::vector<double>(c.begin(), c.end()), 2),
      npy("<f8", "True", "(2, 3)", std::vector<double>(f.begin(), f.end()), 3)};
  for (const std::string& bytes : files)
    EXPECT_EQ(read_npy(folder.write("a.npy", bytes)), expected) << bytes.substr(10, 60);
}

TEST(DenseFile, ValuesInFp64AreKeptWhereTheyAreWantedAndWritten) {
  const ScratchFolder folder;
  const std::vector<double> values = {0.1, -2, 1e-300, 0};
  const std::string path = folder.write("a.npy", npy("<f8", "False", "(2, 2)", values));
  EXPECT_TRUE(read_npy(path).values64.empty());
  const DenseMatrix dense = read_npy(path, true);
  EXPECT_EQ(dense.values64, values);
  EXPECT_EQ(dense.values, (std::vector<float>{0.1F, -2, 0, 0}));
  const CsrMatrix csr = to_csr(dense);
  EXPECT_EQ(csr.values64, (std::vector<double>{0.1, -2, 1e-300}));
  EXPECT_EQ(to_dense(csr), dense);
  write_npy(folder.file("b.npy"), dense);
  EXPECT_EQ(read_npy(folder.file("b.npy"), true), dense);
  write_bin(folder.file("b.bin"), dense);
  EXPECT_EQ(read_bin(folder.file("b.bin"), 2, 2, ElementType::f64, true), dense);
  EXPECT_TRUE(contains(error_of([&] { read_bin(folder.file("b.bin"), 2, 2); }),
                       "as many as 64-bit values take: say --bin-type fp64"));
}

TEST(DenseFile, OtherNpyFilesAreRefusedWithTheReason) {
  const ScratchFolder folder;
  const std::vector<float> six(6);
  const auto message = [&](const std::string& bytes) {
    return error_of([&] { read_npy(folder.write("a.npy", bytes)); });
  };
  EXPECT_TRUE(contains(message(npy("<i8", "False", "(2, 3)", six)), "float16, float32 or float64"));
  EXPECT_TRUE(contains(message(npy(">f4", "False", "(2, 3)", six)), "little-endian"));
  EXPECT_TRUE(contains(message(npy("<f4", "False", "(6,)", six)), "2-D shape"));
  EXPECT_TRUE(contains(message(npy("<f4", "False", "(1, 2, 3)", six)), "2-D shape"));
  EXPECT_TRUE(contains(message(npy("<f4", "False", "()", six)), "2-D shape"));
  EXPECT_TRUE(contains(message(npy("<f4", "False", "(2, 4)", six)), "expected 32 bytes"));
  EXPECT_TRUE(contains(message(npy("<f4", "False", "(2, 2)", six)), "expected 16 bytes"));
  EXPECT_TRUE(contains(message(npy("<f4", "False", "(-2, 3)", six)), "rows and columns"));
  EXPECT_TRUE(contains(message(npy("<f4", "False", "(2147483647, 2147483647)", six)),
                       "expected 18446744056529682432 bytes"));
  EXPECT_TRUE(contains(message("\x93NUMPY\x01"), "truncated: expected a .npy header, got 7 bytes"));
  EXPECT_TRUE(contains(message("<html>"), "an HTML page"));
  EXPECT_TRUE(contains(message(npy("<f4", "False", "(2, 3)", six).substr(0, 30)), "truncated"));
  EXPECT_TRUE(contains(message(std::string("\x93NUMPY\x01\0\x02\0{}\n\n", 14)), "'descr'"));
}

TEST(DenseFile, TheHeaderOfAnNpyIsReadStrictly) {
  const ScratchFolder folder;
  const auto with_header = [&](const std::string& header) {
    std::string bytes = "\x93NUMPY\x01";
    bytes += std::string{'\0', static_cast<char>(header.size()), '\0'} + header;
    return folder.write("a.npy", bytes + std::string(24, '\0'));
  };
  const std::string good = "'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)";
  for (const std::string& header : {"{" + good + "}", "{" + good + ", }  \n",
                                    std::string("{\"shape\":(2,3),\"descr\":\"<f4\","
                                                "\"fortran_order\":False}")})
    EXPECT_EQ(read_npy(with_header(header)).rows, 2) << header;
  const auto refused = [&](const std::string& header, const std::string& expected) {
    const std::string message = error_of([&] { read_npy(with_header(header)); });
    EXPECT_TRUE(contains(message, expected)) << header << ": " << message;
  };
  refused("{'descr': '<f4', 'fortran_order': TrueX, 'shape': (2, 3)}", "True or False, got");
  refused("{'a': \"'shape': (3, 2)\", " + good + "}", "alone in the .npy header");
  refused("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3) x}", "a shape such as (3, 4)");
  for (const std::string& header :
       {good, "{" + good, "{" + good + "} x", "{" + good + ", 'shape': (3, 2)}",
        std::string("{'descr' '<f4'}"), std::string("{'descr': }"), std::string("{'descr': '<f4}"),
        std::string("{descr: 1}"), std::string("{'descr"), std::string("{"), std::string()})
    refused(header, "expected a dictionary in the .npy header");
}

TEST(DenseFile, ABinMustBeExactlyAsLongAsItsDims) {
  const ScratchFolder folder;
  const std::string path = folder.write("a.bin", std::string(24, '\0'));
  EXPECT_EQ(read_bin(path, 2, 3), (DenseMatrix{2, 3, std::vector<float>(6)}));
  EXPECT_EQ(error_of([&] { read_bin(path, 2, 4); }),
            path + ": expected 32 bytes (2 x 4 values of fp32), got 24");
  EXPECT_EQ(error_of([&] { read_bin(path, 5, 1); }),
            path + ": expected 20 bytes (5 x 1 values of fp32), got 24");
  EXPECT_TRUE(contains(error_of([&] { read_bin(path, -2, -3); }), "rows and columns"));
  EXPECT_TRUE(
      contains(error_of([&] { read_bin(path, 1LL << 40, 1LL << 40); }), "rows and columns"));
}

TEST(DenseFile, ABinOf16BitValuesIsReadAsWhatItIsSaidToBe) {
  const ScratchFolder folder;
  const DenseMatrix expected{2, 2, {1, -2, 0.5F, 3}};
  std::vector<std::uint16_t> half, brain;
  for (const float value : expected.values) {
    half.push_back(encode(ElementType::f16, value));
    brain.push_back(encode(ElementType::bf16, value));
  }
  const auto write = [&](const char* name, const std::vector<std::uint16_t>& values) {
    return folder.write(name, {reinterpret_cast<const char*>(values.data()), 8});
  };
  const std::string path = write("half.bin", half);
  EXPECT_EQ(read_bin(path, 2, 2, ElementType::f16), expected);
  EXPECT_EQ(read_bin(write("brain.bin", brain), 2, 2, ElementType::bf16), expected);
  EXPECT_EQ(error_of([&] { read_bin(path, 2, 2); }),
            path +
                ": expected 16 bytes (2 x 2 values of fp32), got 8, as many as 16-bit values "
                "take: say --bin-type fp16 or bf16");
  EXPECT_EQ(error_of([&] { read_bin(path, 2, 1, ElementType::f16); }),
            path +
                ": expected 4 bytes (2 x 1 values of fp16), got 8, as many as 32-bit values "
                "take: say --bin-type fp32");
}

TEST(DenseFile, CsrKeepsNanAndDropsBothZeros) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const CsrMatrix csr = to_csr({2, 3, {0, nan, -0.0F, 1, 0, 2}});
  EXPECT_EQ(csr.row_ptr, (std::vector<std::int64_t>{0, 1, 3}));
  EXPECT_EQ(csr.col_idx, (std::vector<std::int32_t>{1, 0, 2}));
  EXPECT_TRUE(std::isnan(csr.values[0]));
}

TEST(DenseFile, WithoutColumnsIsRefusedWhereItsRowPointersDoNotFit) {
  constexpr std::int64_t kRows = 2147483647;
  if (available_memory_bytes() > 8 * kRows) GTEST_SKIP() << "they fit";
  const ScratchFolder folder;
  const std::string path = folder.write("a.npy", npy<float>("<f4", "False", "(2147483647, 0)", {}));
  EXPECT_TRUE(contains(error_of([&] { load_input(path, {}); }),
                       "expected a matrix that fits in memory, got 2147483647 x 0: needs 17.2 GB"));
}

}  // namespace
}  // namespace spmmbench::test
