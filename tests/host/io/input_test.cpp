#include "io/input.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <limits>

#include "io/csr_cache.hpp"
#include "io/dense_file.hpp"
#include "io/matrix_market.hpp"
#include "io/prune.hpp"
#include "io/sha256.hpp"
#include "io_fixtures.hpp"
#include "spmmbench/random.hpp"
#include "spmmbench/registry.hpp"

namespace spmmbench::test {
namespace {

TEST(ExpandInputs, FoldersListsAndSpecsBecomePathsInOrder) {
  const ScratchFolder folder;
  for (const char* const name : {"m/b.mtx", "m/a.csr", "m/deep/c.mtx.gz", "m/notes.txt", "z.npy"})
    folder.write(name, "x");
  const std::string list = folder.write("list", "\xef\xbb\xbf# chosen\n" + folder.file("z.npy") +
                                                    "\r\n \t\n  gen:uniform?rows=4 \t\n");
  EXPECT_EQ(expand_inputs({"gen:banded", fmt::format("@{}", list), folder.file("m"),
                           folder.file("m/notes.txt")}),
            (std::vector<std::string>{"gen:banded", folder.file("z.npy"), "gen:uniform?rows=4",
                                      folder.file("m/a.csr"), folder.file("m/b.mtx"),
                                      folder.file("m/deep/c.mtx.gz"), folder.file("m/notes.txt")}));
}

TEST(ExpandInputs, WhatIsNamedTwiceIsThereOnce) {
  const ScratchFolder folder;
  const std::string a = folder.write("m/a.mtx", "x"), b = folder.write("m/b.mtx", "x");
  EXPECT_EQ(expand_inputs({b, "gen:uniform", folder.file("m"), "gen:uniform", b}),
            (std::vector<std::string>{b, "gen:uniform", a}));
  std::filesystem::create_directory_symlink(folder.file("m"), folder.file("link"));
  EXPECT_EQ(expand_inputs({b, folder.file("./m/../m//b.mtx"), folder.file("link/b.mtx"),
                           "gen:uniform?rows=4&cols=5", "gen:uniform?cols=5&rows=4"}),
            (std::vector<std::string>{b, "gen:uniform?rows=4&cols=5"}))
      << "however it is written";
}

TEST(NameOfInput, IsThatOfTheMatrixWhateverTheFolderAndTheEnding) {
  for (const char* input : {"m.mtx", "./m.mtx.gz", "/data/a/m.csr", "../m.npz"})
    EXPECT_EQ(name_of_input(input), "m");
  EXPECT_EQ(name_of_input("gen:uniform?rows=4&cols=5"), "uniform?cols=5&rows=4");
}

TEST(ExpandInputs, LinksOfAFolderAreFilesAndLoadingSaysWhatIsWrongWithThem) {
  const ScratchFolder folder;
  folder.write("elsewhere/a.mtx", "x");
  std::filesystem::create_directories(folder.file("m"));
  std::filesystem::create_symlink("../elsewhere/a.mtx", folder.file("m/good.mtx"));
  std::filesystem::create_symlink("nowhere", folder.file("m/lost.mtx"));
  std::filesystem::create_symlink("loop.mtx", folder.file("m/loop.mtx"));
  std::filesystem::create_symlink("nowhere", folder.file("m/notes.txt"));
  std::filesystem::create_symlink("../elsewhere", folder.file("m/folder"));
  std::filesystem::create_symlink("../elsewhere", folder.file("m/folder.mtx"));
  EXPECT_EQ(expand_inputs({folder.file("m")}),
            (std::vector{folder.file("m/good.mtx"), folder.file("m/loop.mtx"),
                         folder.file("m/lost.mtx")}));
  EXPECT_EQ(error_of([&] { load_input(folder.file("m/lost.mtx"), {}); }),
            folder.file("m/lost.mtx") + ": cannot open: No such file or directory");
}

TEST(ExpandInputs, AListWithoutAPathIsAnErrorAndAWrongLineIsNamed) {
  const ScratchFolder folder;
  const std::string none = folder.write("none", "# nothing\n\n");
  EXPECT_EQ(error_of([&] { expand_inputs({"@" + none}); }), none + ": no PATH in this list");
  const std::string outer = folder.write("outer", "gen:uniform\n@" + none + "\n");
  EXPECT_EQ(error_of([&] { expand_inputs({"@" + outer}); }), none + ": no PATH in this list");
  folder.write("a.mtx", "x");
  const std::string list = folder.write("list", folder.file("a.mtx") + "\n\nb.mtx\n");
  EXPECT_EQ(error_of([&] { expand_inputs({"@" + list}); }), list + ":3: b.mtx: no such file");
  const std::string nul = folder.write("nul", folder.file("a.mtx") + std::string(1, '\0') + "b\n");
  EXPECT_EQ(error_of([&] { expand_inputs({"@" + nul}); }),
            nul + ":1: " + folder.file("a.mtx") + "\\x00b: no such file");
  const std::string lacks = folder.write("lacks", "\n@" + folder.file("inner") + "\n");
  EXPECT_EQ(error_of([&] { expand_inputs({"@" + lacks}); }),
            lacks + ":2: " + folder.file("inner") + ": no such file");
  const std::string nameless = folder.write("nameless", "@\n");
  EXPECT_EQ(error_of([&] { expand_inputs({"@" + nameless}); }),
            nameless + ":1: @: expected the name of a list behind it");
}

TEST(ExpandInputs, WhatIsNotThereIsAnError) {
  const ScratchFolder folder;
  EXPECT_EQ(error_of([&] { expand_inputs({folder.file("a.mtx")}); }),
            folder.file("a.mtx") + ": no such file");
  EXPECT_EQ(error_of([&] { expand_inputs({fmt::format("@{}", folder.file("list"))}); }),
            folder.file("list") + ": cannot be opened: No such file or directory");
  EXPECT_EQ(error_of([&] { expand_inputs({folder.path().string()}); }),
            folder.path().string() + ": no matrix files in this folder");
  const std::string itself = folder.write("itself", fmt::format("@{}\n", folder.file("itself")));
  EXPECT_EQ(error_of([&] { expand_inputs({fmt::format("@{}", itself)}); }),
            itself + ": lists within lists go too deep");
}

TEST(LoadInput, ValuesOfAPatternAreDrawnByPositionAndSeed) {
  const ScratchFolder folder;
  CsrMatrix pattern = random_csr(50, 70, 400, 2);
  pattern.values.clear();
  write_matrix_market(folder.file("p.mtx"), pattern, true);
  write_csr_cache(folder.file("q.csr"), pattern, true);
  const NamedMatrix text = load_input(folder.file("p.mtx"), {.seed = 9}).a;
  const NamedMatrix cache = load_input(folder.file("q.csr"), {.seed = 9}).a;
  validate(text.csr);
  EXPECT_EQ(text.csr, cache.csr);
  EXPECT_EQ(text.sha256, cache.sha256);
  EXPECT_EQ(text.sha256, matrix_sha256(pattern, true));
  EXPECT_TRUE(text.pattern && cache.pattern);
  for (std::int64_t row = 0; row < text.csr.rows; ++row)
    for (std::int64_t e = text.csr.row_ptr[row]; e < text.csr.row_ptr[row + 1]; ++e)
      ASSERT_EQ(text.csr.values[e], uniform_at(stream_seed(9, kStreamA), row, text.csr.col_idx[e]));
  const NamedMatrix other = load_input(folder.file("p.mtx"), {.seed = 10}).a;
  EXPECT_NE(other.csr.values, text.csr.values);
  EXPECT_EQ(other.sha256, text.sha256);
}

TEST(LoadInput, TheSameMatrixFromEveryFormatIsTheSame) {
  const ScratchFolder folder;
  const CsrMatrix csr = to_csr(to_dense(random_csr(30, 20, 200, 4)));
  write_matrix_market(folder.file("one.mtx"), csr, false);
  write_matrix_market(folder.file("one.mtx.gz"), csr, false);
  write_csr_cache(folder.file("one.csr"), csr, false);
  write_npy(folder.file("one.npy"), to_dense(csr));
  write_bin(folder.file("one.bin"), to_dense(csr));
  for (const char* const extension : {".mtx", ".mtx.gz", ".csr", ".npy", ".bin"}) {
    const std::string path = folder.file(std::string("one") + extension);
    const LoadedInput input = load_input(path, {.dims = std::pair(30, 20)});
    EXPECT_EQ(input.a.csr, csr) << extension;
    EXPECT_EQ(input.a.name, "one");
    EXPECT_EQ(input.a.source, path);
    EXPECT_EQ(input.a.sha256, matrix_sha256(csr, false));
    EXPECT_FALSE(input.a.pattern);
    EXPECT_GT(input.a.load_ms, 0);
    EXPECT_FALSE(input.b);
  }
}

TEST(LoadInput, GeneratorsAreFoundByNameAndTheirOptionsChecked) {
  for (const Generator* generator : Registry<Generator>::instance().sorted()) {
    EXPECT_NE(error_of([&] {
                load_input("gen:" + generator->name() + "?no_such_option=1", {});
              }).find("has no option"),
              std::string::npos);
  }
  const NamedMatrix matrix = load_input("gen:uniform?seed=3", {}).a;
  EXPECT_EQ(matrix.name, "uniform?seed=3");
  EXPECT_EQ(matrix.source, "gen:uniform?seed=3");
  validate(matrix.csr);
  EXPECT_NE(error_of([] { load_input("gen:nothing", {}); }).find("unknown generator 'nothing'"),
            std::string::npos);
}

TEST(LoadInput, MisuseIsOneLine) {
  const ScratchFolder folder;
  const std::string text = folder.write("a.mtx", "x"), bin = folder.write("a.bin", "abcd");
  EXPECT_NE(error_of([&] { load_input(bin, {}); }).find("expected --dims ROWS COLS"),
            std::string::npos);
  EXPECT_NE(
      error_of([&] { load_input(text, {.prune = "block:2x2:0.5"}); }).find("only dense inputs"),
      std::string::npos);
  EXPECT_NE(error_of([&] {
              load_input(folder.write("a.txt", "x"), {});
            }).find("expected a name that ends in"),
            std::string::npos);
  EXPECT_NE(error_of([&] { load_input(folder.file("none.csr"), {}); }).find("cannot open"),
            std::string::npos);
}

TEST(Prune, TheSmallestBlocksGo) {
  // Norms of the 2 x 2 blocks (edges smaller): 1, 9, 4 / 16, 0.25, NaN
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const DenseMatrix dense{3, 5, {1, 0, 0, 3, 0, 0, 0, 0, 0, 2, 0, 4, 0.5, 0, nan}};
  const auto left = [&](double fraction) {
    DenseMatrix pruned = dense;
    prune(pruned, fmt::format("block:2x2:{}", fraction), 1);
    std::string out;
    for (const float value : pruned.values)
      if (!(value == 0)) out += fmt::format("{} ", value);
    return out;
  };
  EXPECT_EQ(left(0), "1 3 2 4 0.5 nan ");
  EXPECT_EQ(left(1.0 / 6), "1 3 2 4 nan ");
  EXPECT_EQ(left(0.5), "3 4 nan ");
  EXPECT_EQ(left(5.0 / 6), "nan ");
  EXPECT_EQ(left(1), "");
}

TEST(Prune, RandomBlocksAreWholeCountedAndRepeatable) {
  const DenseMatrix dense{64, 96, std::vector<float>(64 * 96, 1.0F)};
  const auto pruned = [&](std::uint64_t seed) {
    DenseMatrix out = dense;
    prune(out, "random-block:16x32:0.75", seed);
    return out;
  };
  EXPECT_EQ(pruned(1), pruned(1));
  EXPECT_NE(pruned(1), pruned(2));
  EXPECT_EQ(to_csr(pruned(1)).nnz(), 3 * 16 * 32);  // a quarter of 12 blocks
}

std::string left_after(const DenseMatrix& dense, const std::string& spec, std::uint64_t seed = 1) {
  DenseMatrix pruned = dense;
  prune(pruned, spec, seed);
  return fmt::format("{}", fmt::join(pruned.values, " "));
}

TEST(Prune, TheSmallestMagnitudesGoAndOfEqualOnesTheFirst) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const DenseMatrix dense{2, 4, {3, -1, 2, 2, -2, nan, 0.5F, -4}};
  EXPECT_EQ(left_after(dense, "magnitude:0"), "3 -1 2 2 -2 nan 0.5 -4");
  EXPECT_EQ(left_after(dense, "magnitude:0.25"), "3 0 2 2 -2 nan 0 -4");
  EXPECT_EQ(left_after(dense, "magnitude:0.5"), "3 0 0 0 -2 nan 0 -4");
  EXPECT_EQ(left_after(dense, "magnitude:0.875"), "0 0 0 0 0 nan 0 0");
  EXPECT_EQ(left_after(dense, "magnitude:1"), "0 0 0 0 0 0 0 0");
}

TEST(Prune, RandomValuesAreCountedAndRepeatable) {
  const DenseMatrix dense{100, 37, std::vector<float>(3700, 1.0F)};
  EXPECT_EQ(left_after(dense, "random:0.6"), left_after(dense, "random:0.6"));
  EXPECT_NE(left_after(dense, "random:0.6"), left_after(dense, "random:0.6", 2));
  DenseMatrix pruned = dense;
  prune(pruned, "random:0.6", 1);
  EXPECT_EQ(to_csr(pruned).nnz(), 1480);
}

TEST(Prune, TwoOfFourNeighboursStay) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const DenseMatrix dense{2, 7, {1, -4, 3, 2, 5, 6, 4, 1, 1, 1, nan, 2, 0, 0}};
  EXPECT_EQ(left_after(dense, "2:4"), "0 -4 3 0 5 6 0 0 0 1 nan 2 0 0");
  const DenseMatrix narrow{1, 2, {1, 2}};
  EXPECT_EQ(left_after(narrow, "2:4"), "1 2");
}

TEST(LoadInput, ABinMayTellItsSizeInItsName) {
  const ScratchFolder folder;
  const CsrMatrix csr = to_csr(to_dense(random_csr(30, 20, 200, 4)));
  write_bin(folder.file("q.30x20.bin"), to_dense(csr));
  write_bin(folder.file("30x20.bin"), to_dense(csr));
  EXPECT_EQ(load_input(folder.file("q.30x20.bin"), {}).a.csr, csr);
  EXPECT_EQ(load_input(folder.file("30x20.bin"), {}).a.csr, csr);
  for (const char* const name : {"q.30x.bin", "q.30x20x.bin", "q30x20.bin", "q.x20.bin"}) {
    write_bin(folder.file(name), to_dense(csr));
    EXPECT_NE(error_of([&] { load_input(folder.file(name), {}); }).find("expected --dims"),
              std::string::npos)
        << name;
  }
}

TEST(Prune, MalformedSpecsAreRefused) {
  DenseMatrix dense{2, 2, {1, 2, 3, 4}};
  for (const char* const spec :
       {"", "block", "block:64:0.9", "block:0x4:0.5", "block:2x2:1.5", "block:2x2:-0.1",
        "block:2x2:nan", "block:2x2:0.5x", "rows:2x2:0.5", "block:2x2:", "block:-1x2:0.5",
        "magnitude", "magnitude:", "magnitude:1.1", "random:-1", "random:0.5:2", "2:4:1", "1:4"})
    EXPECT_NE(error_of([&] { prune(dense, spec, 1); }).find("expected magnitude:S, random:S, 2:4"),
              std::string::npos)
        << spec;
}

}  // namespace
}  // namespace spmmbench::test
