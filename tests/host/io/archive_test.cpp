#include "io/archive.hpp"
#include "io_fixtures.hpp"

namespace spmmbench::test {
namespace {

std::string tar_member(const std::string& name, const std::string& content, char type = '0') {
  std::string header(512, '\0');
  header.replace(0, name.size(), name);
  const std::string size = fmt::format("{:011o}", content.size());
  header.replace(124, size.size(), size);
  header[156] = type;
  header.replace(257, 5, "ustar");
  return header + content + std::string((512 - content.size() % 512) % 512, '\0');
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
        unpack_matrix_text(folder.write("cant.tar.gz", gzip_bytes(folder, archive)));
    EXPECT_EQ(unpacked.text.view(), text);
    EXPECT_EQ(unpacked.name, folder.file("cant.tar.gz") + "(cant/cant.mtx)");
  }
}

TEST(Archive, WithoutThatMemberOrItsEndItIsRefused) {
  const ScratchFolder folder;
  const auto message = [&](const std::string& tar) {
    return error_of([&] { unpack_matrix_text(folder.write("a.tar.gz", gzip_bytes(folder, tar))); });
  };
  EXPECT_TRUE(contains(message(tar_member("a/a_b.mtx", "x") + tar_member("a/readme", "y")),
                       "expected a member NAME/NAME.mtx, got 'a/a_b.mtx', 'a/readme'"));
  EXPECT_TRUE(contains(message(tar_member("a/a.mtx", some_text(5000)).substr(0, 3000)),
                       "truncated: a/a.mtx lacks 2512 bytes"));
  EXPECT_TRUE(contains(message(tar_member("a/", "", '5')), "got none"));
  for (const std::size_t zeros : {0, 3}) {  // bytes of the size before those that are 0xff
    std::string endless = tar_member("a/b", "");
    std::string size = "\x80";
    size.append(zeros, '\0').append(11 - zeros, '\xff');
    endless.replace(124, size.size(), size);
    EXPECT_TRUE(contains(message(endless + std::string(4096, 'x')),
                         "corrupt: the member 'a/b' has 18446744073709551615 bytes"));
  }
}

}  // namespace
}  // namespace spmmbench::test
