#include "io/archive.hpp"

#include <fmt/format.h>
#include <lzma.h>
#include <zstd.h>

#include <numeric>

#include "io_fixtures.hpp"

namespace spmmbench::test {
namespace {

const std::string kPosixMagic("ustar\00000", 8);

// Sets the magic of a member and, since it changes it, the checksum.
void set_magic(std::string& member, const std::string& magic) {
  member.replace(257, magic.size(), magic);
  member.replace(148, 8, 8, ' ');  // the checksum counts its own bytes as blanks
  const int sum = std::accumulate(
      member.begin(), member.begin() + 512, 0,
      [](int total, char byte) { return total + static_cast<unsigned char>(byte); });
  member.replace(148, 7, fmt::format("{:06o}", sum) + '\0');
}

std::string tar_member(const std::string& name, const std::string& content, char type = '0',
                       std::string size = "") {
  std::string member(512, '\0');
  member.replace(0, name.size(), name);
  if (size.empty()) size = fmt::format("{:011o}", content.size());
  member.replace(124, size.size(), size);
  member[156] = type;
  set_magic(member, kPosixMagic);
  return member + content + std::string((512 - content.size() % 512) % 512, '\0');
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
                       "truncated or corrupt: Truncated"));
  EXPECT_TRUE(contains(message(tar_member("a/", "", '5')), "got none"));
  for (const std::size_t zeros : {0, 3}) {  // bytes of the size before those that are 0xff
    std::string size = "\x80";
    size.append(zeros, '\0').append(11 - zeros, '\xff');
    EXPECT_TRUE(contains(message(tar_member("a/b", "", '0', size) + std::string(4096, 'x')),
                         "a.tar.gz: truncated or corrupt: "));
  }
  EXPECT_TRUE(contains(message(tar_member("a/a.mtx", "x") + tar_member("b/b.mtx", "y")),
                       "expected one member NAME/NAME.mtx, got 'a/a.mtx' and 'b/b.mtx'"));
}

std::string xz_bytes(const std::string& text) {
  std::string out(text.size() + 1000, '\0');
  std::size_t size = 0;
  EXPECT_EQ(lzma_easy_buffer_encode(0, LZMA_CHECK_CRC64, nullptr,
                                    reinterpret_cast<const std::uint8_t*>(text.data()), text.size(),
                                    reinterpret_cast<std::uint8_t*>(out.data()), &size, out.size()),
            LZMA_OK);
  return out.substr(0, size);
}

std::string zstd_bytes(const std::string& text) {
  std::string out(ZSTD_compressBound(text.size()), '\0');
  return out.substr(0, ZSTD_compress(out.data(), out.size(), text.data(), text.size(), 1));
}

TEST(Archive, TextsAndArchivesAreUnpackedFromGzipXzAndZstd) {
  const ScratchFolder folder;
  const std::string text = some_text(50000), tar = tar_member("a/a.mtx", text);
  const std::pair<std::string, std::string> packed[] = {
      {gzip_bytes(folder, text), gzip_bytes(folder, tar)},
      {xz_bytes(text), xz_bytes(tar)},
      {zstd_bytes(text), zstd_bytes(tar)}};
  for (const auto& [of_text, of_tar] : packed) {
    EXPECT_EQ(unpack_matrix_text(folder.write("a", of_text)).text.view(), text);
    EXPECT_EQ(unpack_matrix_text(folder.write("a", of_tar)).text.view(), text);
    for (const std::string& whole : {of_text, of_tar}) {
      const std::string half = folder.write("a", whole.substr(0, whole.size() / 2));
      EXPECT_TRUE(contains(error_of([&] { unpack_matrix_text(half); }), "truncated"));
    }
  }
}

TEST(Archive, WhatIsNamedAnArchiveAndIsNoneIsToldAsSuch) {
  const ScratchFolder folder;
  std::string damaged = tar_member("a/a.mtx", some_text(100));
  damaged[0] = 'b';  // its checksum is wrong
  for (const std::string& content : {some_text(100), damaged, std::string(2000, 'x'),
                                     std::string("<html>log in first</html>\n"), std::string()})
    for (const auto& [name, bytes] :
         {std::pair("a.tar.gz", gzip_bytes(folder, content)),
          std::pair("a.tgz", gzip_bytes(folder, content)), std::pair("a.tar.xz", xz_bytes(content)),
          std::pair("a.tar.zst", zstd_bytes(content))}) {
      const std::string path = folder.write(name, bytes);
      const std::string message = error_of([&] { unpack_matrix_text(path); });
      EXPECT_TRUE(message.starts_with(path + ": expected an archive: ")) << message;
    }
}

std::string unpacked(const ScratchFolder& folder, const std::string& tar) {
  const std::string path = folder.write("a.tar.gz", gzip_bytes(folder, tar));
  return std::string(unpack_matrix_text(path).text.view());
}

// One record of a pax header, which begins with its own length.
std::string pax_record(const std::string& key, const std::string& value) {
  const std::size_t rest = key.size() + value.size() + 3;  // a blank, '=' and a line end
  std::size_t length = rest + 1;
  while (fmt::format("{}", length).size() + rest != length) ++length;
  return fmt::format("{} {}={}\n", length, key, value);
}

TEST(Archive, NamesAndSizesAreReadAsEveryTarWritesThem) {
  const ScratchFolder folder;
  const std::string text = some_text(5000);
  std::string old = tar_member("a/a.mtx", text, '\0');
  set_magic(old, std::string(8, '\0'));
  EXPECT_EQ(unpacked(folder, old), text) << "before POSIX";
  const auto gnu = [&](const std::string& name) {
    return tar_member("././@LongLink", name + '\0', 'L') + tar_member("a/b.mtx", text);
  };
  const auto pax = [&](const std::string& name) {
    const std::string records =
        pax_record("path", name) + pax_record("size", std::to_string(text.size()));
    return tar_member("PaxHeaders/a", records, 'x') +
           tar_member("a/b.mtx", text, '0', "00000000000");
  };
  for (const std::size_t length : {150, 900000}) {
    const std::string name = std::string(length, 'd') + "/a/a.mtx";
    EXPECT_EQ(unpacked(folder, gnu(name)), text);
    EXPECT_EQ(unpacked(folder, pax(name)), text);
    EXPECT_LT(unpack_matrix_text(folder.write("a", gzip_bytes(folder, gnu(name)))).name.size(),
              300U);
  }
}

TEST(Archive, OfTwoMembersOfOneNameTheLastIsTakenAndALinkIsFollowed) {
  const ScratchFolder folder;
  const auto link = [](const std::string& name, char type, const std::string& target) {
    std::string member = tar_member(name, "", type);
    member.replace(157, target.size(), target);
    set_magic(member, kPosixMagic);
    return member;
  };
  EXPECT_EQ(unpacked(folder, tar_member("a/a.mtx", "first") + tar_member("./a/a.mtx", "last")),
            "last");
  const std::string data = tar_member("data", "linked");
  EXPECT_EQ(unpacked(folder, data + link("a/a.mtx", '1', "data")), "linked");
  EXPECT_EQ(unpacked(folder, link("a/a.mtx", '2', "../data") + data), "linked");
  EXPECT_TRUE(contains(error_of([&] { unpacked(folder, link("a/a.mtx", '2', "x")); }),
                       "expected a member 'a/x', got 'a/a.mtx'"));
  EXPECT_TRUE(contains(error_of([&] { unpacked(folder, link("a/a.mtx", '2', "a.mtx")); }),
                       "'a/a.mtx' is a link to a link"));
}

TEST(Archive, ALineLongerThanAnyOfAMatrixEndsTheUnpacking) {
  const ScratchFolder folder;
  const std::string lines = some_text(100000), line(std::size_t{3} << 20, '0');
  const std::string message = error_of(
      [&] { unpack_matrix_text(folder.write("a.mtx.gz", gzip_bytes(folder, lines + line))); });
  EXPECT_TRUE(contains(message, "expected lines of at most 1048576 bytes, got a longer one"))
      << message;
}

}  // namespace
}  // namespace spmmbench::test
