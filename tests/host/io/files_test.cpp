// The CSR cache, dense files, gzip and archives, SHA-256: what is written is what is read, and
// every other file is refused in one line.

#include <fmt/format.h>
#include <zlib.h>

#include <array>
#include <cmath>
#include <limits>

#include "io/archive.hpp"
#include "io/csr_cache.hpp"
#include "io/dense_file.hpp"
#include "io/file.hpp"
#include "io/gzip.hpp"
#include "io/input.hpp"
#include "io/matrix_market.hpp"
#include "io/matrix_output.hpp"
#include "io/sha256.hpp"
#include "io_fixtures.hpp"
#include "spmmbench/precision.hpp"

namespace spmmbench::test {
namespace {

std::string sha256(const std::string& text, std::size_t piece, bool allow_instructions) {
  Sha256 hash(allow_instructions);
  for (std::size_t at = 0; at < text.size(); at += piece)
    hash.update(text.data() + at, std::min(piece, text.size() - at));
  return hash.hex();
}

TEST(Sha256, GivesTheDigestsOfFips180) {
  const std::pair<std::string, const char*> vectors[] = {
      {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
      {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
      {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
       "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
      {"abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmnopqrlmn"
       "opqrsmnopqrstnopqrstu",
       "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1"},
      {std::string(1000000, 'a'),
       "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"}};
  for (const auto& [text, digest] : vectors)
    for (const std::size_t piece : {1, 3, 55, 56, 63, 64, 65, 1000000})
      for (const bool allow_instructions : {false, true})
        EXPECT_EQ(sha256(text, piece, allow_instructions), digest);
}

TEST(Sha256, OfAMatrixCoversShapeColumnsAndValues) {
  const CsrMatrix csr = random_csr(20, 30, 100, 1);
  CsrMatrix wider = csr, other_value = csr;
  ++wider.cols;
  other_value.values[7] *= -2;
  EXPECT_NE(matrix_sha256(csr, false), matrix_sha256(wider, false));
  EXPECT_NE(matrix_sha256(csr, false), matrix_sha256(other_value, false));
  EXPECT_EQ(matrix_sha256(csr, true), matrix_sha256(other_value, true));
  // python3: hashlib.sha256(numpy.array([0, 0, 0], "<i8").tobytes()).hexdigest()
  EXPECT_EQ(matrix_sha256(CsrMatrix{}, false),
            "9d908ecfb6b256def8b49a7c504e6c889c4b0e41fe6ce3e01863dd7b61a20aa0");
}

TEST(MappedFile, AFileThatIsCutWithinItsLastPageIsCountedAsOneThatLacksPages) {
  const ScratchFolder folder;
  const std::string path = folder.write("a.bin", "12345678");
  const std::size_t before = missing_pages();
  { const MappedFile whole(path); }
  EXPECT_EQ(missing_pages(), before);
  {
    const MappedFile cut(path);
    std::filesystem::resize_file(path, 7);
  }
  EXPECT_EQ(missing_pages(), before + 1);
}

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
      "expected a CSR cache written by 'spmmbench convert', got 'CSR1 of '"));
  EXPECT_TRUE(contains(error_of([&] {
                         read_csr_cache(
                             folder.write("a.csr", "version https://git-lfs.github.com/spec/v1"));
                       }),
                       "a Git LFS pointer"));
}

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
  EXPECT_TRUE(contains(message("\x93NUMPY\x01"), "expected a NumPy .npy file"));
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

std::string inflate_all(const std::string& path) {
  std::string out;
  inflate_file(path, [&](std::string_view bytes) { out += bytes; });
  return out;
}

std::string gzip(const ScratchFolder& folder, const std::string& text) {
  GzipOutput file(folder.file("scratch.gz"));
  file.write(text);
  file.commit();
  return read_bytes(folder.file("scratch.gz"));
}

std::string some_text(std::size_t bytes) {
  std::mt19937_64 random(bytes);
  std::string out;
  while (out.size() < bytes) out += fmt::format("{} {}\n", random() % 1000, random() % 1000);
  out.resize(bytes);
  return out;
}

TEST(Gzip, UnpacksWhatItPackedAndWhatIsConcatenated) {
  const ScratchFolder folder;
  for (const std::size_t bytes : {0, 1, 511, 512, 513, 262143, 262144, 262145, 3000000}) {
    const std::string text = some_text(bytes), packed = gzip(folder, text);
    EXPECT_EQ(inflate_all(folder.write("a.gz", packed)), text);
    EXPECT_EQ(inflate_all(folder.write("a.gz", packed + packed)), text + text);
    EXPECT_EQ(inflate_all(folder.write("a.gz", packed + std::string(100, '\0'))), text);
    EXPECT_EQ(unpack_matrix_text(folder.write("a.gz", packed)).text.view(), text);
  }
}

TEST(Gzip, EveryTruncationAndCorruptionIsAnError) {
  const ScratchFolder folder;
  const std::string text = some_text(300), packed = gzip(folder, text);
  for (std::size_t size = 0; size < packed.size(); ++size) {
    const std::string path = folder.write("a.gz", packed.substr(0, size));
    const std::string message = error_of([&] { inflate_all(path); });
    EXPECT_TRUE(contains(message, size < 2 ? "expected gzip data" : "truncated")) << message;
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

std::string tar_member(const std::string& name, const std::string& content, char type = '0') {
  std::string header(512, '\0');
  header.replace(0, name.size(), name);
  const std::string size = fmt::format("{:011o}", content.size());
  header.replace(124, size.size(), size);
  header[156] = type;
  header.replace(257, 5, "ustar");
  return header + content + std::string((512 - content.size() % 512) % 512, '\0');
}

TEST(DenseFile, WithoutColumnsIsRefusedWhereItsRowPointersDoNotFit) {
  constexpr std::int64_t kRows = 2147483647;
  if (available_memory_bytes() > 8 * kRows) GTEST_SKIP() << "they fit";
  const ScratchFolder folder;
  const std::string path = folder.write("a.npy", npy<float>("<f4", "False", "(2147483647, 0)", {}));
  EXPECT_TRUE(contains(error_of([&] { load_input(path, {}); }),
                       "expected a matrix that fits in memory, got 2147483647 x 0: needs 17.2 GB"));
}

TEST(Archive, TheMatrixOfASuitesparseArchiveIsTheMemberCalledAsItsFolder) {
  const ScratchFolder folder;
  const std::string end(1024, '\0');
  for (const std::size_t bytes : {0, 511, 512, 700000}) {
    const std::string text = some_text(bytes);
    const std::string archive =
        tar_member("cant/", "", '5') + tar_member("cant/cant_b.mtx", some_text(9999)) +
        tar_member("cant/cant.mtx", text) + tar_member("cant/cant_coord.mtx", "x") + end;
    const UnpackedText unpacked =
        unpack_matrix_text(folder.write("cant.tar.gz", gzip(folder, archive)));
    EXPECT_EQ(unpacked.text.view(), text);
    EXPECT_EQ(unpacked.name, folder.file("cant.tar.gz") + "(cant/cant.mtx)");
  }
}

TEST(Archive, WithoutThatMemberOrItsEndItIsRefused) {
  const ScratchFolder folder;
  const auto message = [&](const std::string& tar) {
    return error_of([&] { unpack_matrix_text(folder.write("a.tar.gz", gzip(folder, tar))); });
  };
  EXPECT_TRUE(contains(message(tar_member("a/a_b.mtx", "x") + tar_member("a/readme", "y")),
                       "expected a member NAME/NAME.mtx, got 'a/a_b.mtx', 'a/readme'"));
  EXPECT_TRUE(contains(message(tar_member("a/a.mtx", some_text(5000)).substr(0, 3000)),
                       "truncated: a/a.mtx lacks 2512 bytes"));
  EXPECT_TRUE(contains(message(tar_member("a/", "", '5')), "got none"));
  for (const std::size_t zeros : {0, 3}) {  // bytes of the size before those that are 0xff
    std::string endless = tar_member("a/b", "");
    endless.replace(124, 12, "\x80" + std::string(zeros, '\0') + std::string(11 - zeros, '\xff'));
    EXPECT_TRUE(contains(message(endless + std::string(4096, 'x')),
                         "corrupt: the member 'a/b' has 18446744073709551615 bytes"));
  }
}

TEST(Output, TheExtensionTellsTheFormatAndEveryFormatReadsBack) {
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

TEST(Output, AHugeSparseMatrixIsNotMadeDense) {
  const ScratchFolder folder;
  const CsrMatrix huge{100000, 100000, std::vector<std::int64_t>(100001), {}, {}};
  EXPECT_EQ(error_of([&] { write_matrix(folder.file("a.npy"), huge, false); }),
            folder.file("a.npy") +
                ": expected a dense matrix of at most 4.0 GB, got 100000 x 100000: 40.0 GB");
}

TEST(Output, AFullDiskIsOneLine) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "no /dev/full";
  const ScratchFolder folder;
  std::filesystem::create_symlink("/dev/full", folder.file("a.csr"));
  EXPECT_EQ(
      error_of([&] { write_csr_cache(folder.file("a.csr"), random_csr(99, 99, 9999, 1), false); }),
      folder.file("a.csr") + ": cannot be written: No space left on device");
}

}  // namespace
}  // namespace spmmbench::test
