// What becomes of output files: links, modes, other writers, pipes, what is in the way.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "io/output.hpp"
#include "io_fixtures.hpp"

namespace spmmbench::test {
namespace {

namespace fs = std::filesystem;

TEST(OutputFile, AppearsWhenItIsCompleteAndItsFoldersWithIt) {
  const ScratchFolder folder;
  const std::string path = folder.file("new/deep/out");
  {
    OutputFile file(path);
    file.write("half");
  }
  EXPECT_FALSE(fs::exists(folder.file("new")));
  OutputFile file(path);
  file.write("whole");
  EXPECT_FALSE(fs::exists(path));
  file.commit();
  EXPECT_EQ(read_bytes(path), "whole");
  EXPECT_FALSE(fs::exists(path + ".part"));
}

TEST(OutputFile, ReplacesWhatALinkLeadsToAndKeepsItsMode) {
  const ScratchFolder folder;
  const std::string target = folder.write("data/target", "old"), link = folder.file("link");
  ::chmod(target.c_str(), 0640);
  fs::create_symlink("data/target", link);
  write_file(link, "new");
  EXPECT_TRUE(fs::is_symlink(link));
  EXPECT_EQ(read_bytes(target), "new");
  struct stat status {};
  ::stat(target.c_str(), &status);
  EXPECT_EQ(status.st_mode & 07777, 0640U);
  fs::create_symlink("data/none", folder.file("dangling"));
  write_file(folder.file("dangling"), "new");
  EXPECT_EQ(read_bytes(folder.file("data/none")), "new");
  fs::create_symlink("loop", folder.file("loop"));
  EXPECT_TRUE(contains(error_of([&] { write_file(folder.file("loop"), "x"); }), "symbolic links"));
}

TEST(OutputFile, IsNoFolderEvenWhereThereIsNoneYet) {
  const ScratchFolder folder;
  for (const char* name : {"", "new/", "new/.", "new/.."})
    EXPECT_TRUE(contains(error_of([&] { OutputFile file(folder.file(name)); }), "is a directory"))
        << name;
  EXPECT_TRUE(fs::is_empty(folder.path()));
}

TEST(OutputFile, DoesNotFollowALinkAtItsTemporaryName) {
  const ScratchFolder folder;
  const std::string victim = folder.write("victim", "precious"), path = folder.file("out");
  fs::create_symlink(victim, path + ".part");
  EXPECT_TRUE(contains(error_of([&] { write_file(path, "x"); }), "out.part: is in the way"));
  EXPECT_EQ(read_bytes(victim), "precious");
}

TEST(OutputFile, HasOneWriterAndTakesOverWhatAKilledOneLeft) {
  const ScratchFolder folder;
  const std::string path = folder.file("out");
  {
    const OutputFile first(path);
    EXPECT_TRUE(contains(error_of([&] { OutputFile second(path); }), "another run is writing it"));
  }
  for (const std::size_t bytes : {0, 1 << 20}) {
    const pid_t child = ::fork();
    if (child == 0) {
      OutputFile killed(path);
      killed.write(std::string(bytes, 'x'));
      ::_exit(0);
    }
    ASSERT_EQ(::waitpid(child, nullptr, 0), child);
    EXPECT_EQ(fs::file_size(path + ".part"), bytes);
    write_file(path, "whole");
    EXPECT_EQ(read_bytes(path), "whole");
    EXPECT_EQ(fs::status(path).permissions() & fs::perms::sticky_bit, fs::perms::none);
  }
}

TEST(OutputFile, KeepsAFileOfTheUserAtItsTemporaryName) {
  const ScratchFolder folder;
  const std::string path = folder.file("out"), mine = folder.write("out.part", "precious");
  EXPECT_EQ(error_of([&] { write_file(path, "x"); }),
            mine + ": is in the way, and no run has left it: move or remove it");
  EXPECT_EQ(read_bytes(mine), "precious");
  EXPECT_FALSE(fs::exists(path));
  folder.write("out.part", "");
  write_file(path, "x");  // an empty one has nothing to lose
}

TEST(OutputFile, IsWrittenAsItComesToADeviceOrAPipe) {
  const ScratchFolder folder;
  const std::string full = error_of([] { write_file("/dev/full", "x"); });
  EXPECT_EQ(full, "/dev/full: cannot be written: No space left on device");
  const std::string pipe = folder.file("pipe");
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_TRUE(is_stream(pipe));
  EXPECT_TRUE(contains(error_of([&] { OutputFile file(pipe); }), "nobody reads this pipe"));
  const int reader = ::open(pipe.c_str(), O_RDONLY | O_NONBLOCK);
  write_file(pipe, "text");
  char text[8] = {};
  EXPECT_EQ(::read(reader, text, sizeof text), 4);
  ::close(reader);
  EXPECT_TRUE(fs::is_fifo(pipe));
}

TEST(OutputFile, IsNoInput) {
  const ScratchFolder folder;
  const std::string a = folder.write("a", "x"), link = folder.file("link");
  fs::create_symlink(a, link);
  EXPECT_TRUE(contains(error_of([&] {
                         require_not_an_input(link, {"gen:x", a});
                       }),
                       "is the input"));
  require_not_an_input(folder.file("b"), {a});
  const std::string around = folder.file("new/../a");  // once the folder new is there
  EXPECT_TRUE(contains(error_of([&] { require_not_an_input(around, {a}); }), "is the input"));
  require_not_an_input("/dev/null", {"/dev/null"});
  const std::string part = folder.write("b.part", "x");
  EXPECT_TRUE(contains(error_of([&] { require_not_an_input(folder.file("b"), {part}); }),
                       "is first written as " + part + ", which is the input"));
}

TEST(OutputFile, OfACommandIsNoOtherOutputOfIt) {
  const ScratchFolder folder;
  const std::string c = folder.file("c");
  fs::create_symlink("c", folder.file("dangling"));
  for (const char* same : {"c", "new/deep/../../c", "dangling"})
    EXPECT_TRUE(contains(error_of([&] { require_two_files(c, folder.file(same)); }),
                         "expected two files to write, got one"))
        << same;
  EXPECT_TRUE(contains(error_of([&] { require_two_files(c, c + ".part"); }),
                       "got one: each is first written as NAME.part"));
  EXPECT_TRUE(contains(error_of([] { require_two_files("none_here", "./none_here"); }), "got one"));
  require_two_files(c, folder.file("new/c"));
  require_two_files("-", "-");
  require_two_files("", "");
}

}  // namespace
}  // namespace spmmbench::test
