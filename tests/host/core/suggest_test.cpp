#include <gtest/gtest.h>

#include "spmmbench/suggest.hpp"

namespace spmmbench {
namespace {

TEST(Suggest, ATypingErrorIsRecognisedAndAnotherWordIsNot) {
  const std::vector<std::string> known = {"run", "profile", "list", "show"};
  EXPECT_EQ(closest("rnu", known), "run");
  EXPECT_EQ(closest("profle", known), "profile");
  EXPECT_EQ(closest("shw", known), "show");
  EXPECT_EQ(closest("measure", known), "");
  EXPECT_EQ(did_you_mean("lits", known), " (did you mean 'list'?)");
  EXPECT_EQ(closest("--path", {"--batch"}), "");  // dashes are no letters that agree
  EXPECT_EQ(closest("--jsn", {"--json"}), "--json");
}

}  // namespace
}  // namespace spmmbench
