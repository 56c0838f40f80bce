#include "io/file.hpp"
#include "io_fixtures.hpp"

namespace spmmbench::test {
namespace {

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

}  // namespace
}  // namespace spmmbench::test
