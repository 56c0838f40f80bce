#include <gtest/gtest.h>

#include "spmmbench/error.hpp"
#include "spmmbench/spec.hpp"

namespace spmmbench {
namespace {

TEST(Spec, ParsesNameAndOptionsAndPrintsThemSorted) {
  const Spec spec = Spec::parse("rsh?tau=4&alpha=0.5");
  EXPECT_EQ(spec.name, "rsh");
  EXPECT_EQ(spec.options.get("tau", ""), "4");
  EXPECT_EQ(spec.options.get("alpha", ""), "0.5");
  EXPECT_EQ(spec.to_string(), "rsh?alpha=0.5&tau=4");
  EXPECT_EQ(Spec::parse("qwen2.5-7b/ffn_gate").name, "qwen2.5-7b/ffn_gate");
}

TEST(Spec, RefusesWhatIsNotKeyValue) {
  EXPECT_THROW(Spec::parse(""), Error);
  EXPECT_THROW(Spec::parse("?a=1"), Error);
  EXPECT_THROW(Spec::parse("rsh?tau"), Error);
  EXPECT_THROW(Spec::parse("rsh?=4"), Error);
}

TEST(Glob, MatchesLikeAShell) {
  EXPECT_TRUE(glob_match("*", ""));
  EXPECT_TRUE(glob_match("cusparse*", "cusparse_csr_alg1"));
  EXPECT_TRUE(glob_match("*_csr_*1", "cusparse_csr_alg1"));
  EXPECT_TRUE(glob_match("a?c", "abc"));
  EXPECT_FALSE(glob_match("a?c", "ac"));
  EXPECT_FALSE(glob_match("rsh", "rsh2"));
  EXPECT_TRUE(glob_match("a*b*c", "axxbxxbxc"));
}

}  // namespace
}  // namespace spmmbench
