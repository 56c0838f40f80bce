#include "spmmbench/printable.hpp"

#include <gtest/gtest.h>

namespace spmmbench {
namespace {

TEST(Printable, EscapesWhatATerminalActsOnAndKeepsLetters) {
  for (const char* const name : {"a b", "na\u00efve", "\u8868", "\u2014"})
    EXPECT_EQ(printable_message(name), name);
  EXPECT_EQ(printable_message("a\nb\x1b[2J"), "a\\x0ab\\x1b[2J");
  EXPECT_EQ(printable_message("a\xff"), "a\\xff");
}

TEST(Printable, EscapesWhatEndsALineOrTurnsTheDirectionOfTheText) {
  EXPECT_EQ(printable_message("a\u2028b"), "a\\xe2\\x80\\xa8b");
  EXPECT_EQ(printable_message("a\u202eb"), "a\\xe2\\x80\\xaeb");
  EXPECT_EQ(printable_message("a\u2069b"), "a\\xe2\\x81\\xa9b");
  for (const char* const name : {"\u2027", "\u202f", "\u2065", "\u206a"})
    EXPECT_EQ(printable_message(name), name);
  EXPECT_EQ(from_printable(to_printable("a\u202eb\\")), "a\u202eb\\");
}

}  // namespace
}  // namespace spmmbench
