#pragma once
// What the tests of src/select/cache.hpp's users share: a folder for the cache, and what a file in
// it that cannot be used must cost.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "io_fixtures.hpp"
#include "select/cache.hpp"

namespace spmmbench::test {

class CacheTest : public ::testing::Test {
 protected:
  void TearDown() override { set_cache_folder(""); }

  std::filesystem::path folder() const { return scratch_.path() / "cache"; }  // made when needed
  std::vector<std::filesystem::path> files() const {
    std::vector<std::filesystem::path> found;
    if (std::filesystem::is_directory(folder()))
      for (const auto& entry : std::filesystem::directory_iterator(folder()))
        found.push_back(entry.path());
    return found;
  }
  static std::string warnings(const std::function<void()>& work) {
    ::testing::internal::CaptureStderr();
    work();
    return ::testing::internal::GetCapturedStderr();
  }
  static void expect_one_line(const std::string& said) {
    EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1) << said;
  }

  struct Edit {
    std::string old, fresh;
  };
  // The only file of the cache, spoiled in every way that JSON can be and by each of `edits`, each
  // time in a folder of its own: `measures` must cost one warning, and write a file with which
  // `remembers` costs none.
  void expect_replaced(const std::vector<Edit>& edits, const std::function<void()>& measures,
                       const std::function<void()>& remembers) const {
    ASSERT_EQ(files().size(), 1U);
    const std::filesystem::path file = files().front();
    const std::string good = read_bytes(file);
    std::vector<std::string> bad = {"", "{", "[1]", good.substr(0, good.size() / 2)};
    for (const auto& [old, fresh] : edits) {
      ASSERT_NE(good.find(old), std::string::npos) << old;
      bad.push_back(std::string(good).replace(good.find(old), old.size(), fresh));
    }
    for (const std::string& text : bad) {
      SCOPED_TRACE(text);
      const std::string place = "spoiled_" + std::to_string(&text - bad.data());
      scratch_.write(place + "/" + file.filename().string(), text);
      set_cache_folder(scratch_.file(place));
      const std::string said = warnings(measures);
      expect_one_line(said);
      EXPECT_NE(said.find(file.filename().string()), std::string::npos) << said;
      EXPECT_EQ(warnings(remembers), "");
    }
  }

 private:
  ScratchFolder scratch_;
};

}  // namespace spmmbench::test
