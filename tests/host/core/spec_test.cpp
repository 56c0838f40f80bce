#include <gtest/gtest.h>

#include "spmmbench/error.hpp"
#include "spmmbench/option.hpp"
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

TEST(Spec, AKeyIsNotGivenTwice) {
  for (const char* text : {"rsh?tau=4&tau=5", "rsh?tau=4&alpha=1&tau=4"}) try {
      Spec::parse(text);
      ADD_FAILURE() << text;
    } catch (const Error& error) {
      EXPECT_EQ(error.what(), "'" + std::string(text) + "': tau is given twice");
    }
}

TEST(Spec, RefusesWhatIsNotKeyValue) {
  EXPECT_THROW(Spec::parse(""), Error);
  EXPECT_THROW(Spec::parse("?a=1"), Error);
  EXPECT_THROW(Spec::parse("rsh?tau"), Error);
  EXPECT_THROW(Spec::parse("rsh?=4"), Error);
  for (const char* text : {"rsh?", "rsh?tau=4&", "rsh?&tau=4"})
    EXPECT_THROW(Spec::parse(text), Error) << text << ", as with a shell variable that is not set";
}

TEST(Glob, MatchesLikeAShell) {
  EXPECT_TRUE(glob_match("*", ""));
  EXPECT_TRUE(glob_match("cusparse*", "cusparse_csr_alg1"));
  EXPECT_TRUE(glob_match("*_csr_*1", "cusparse_csr_alg1"));
  EXPECT_TRUE(glob_match("a?c", "abc"));
  EXPECT_FALSE(glob_match("a?c", "ac"));
  EXPECT_FALSE(glob_match("rsh", "rsh2"));
  EXPECT_TRUE(glob_match("a*b*c", "axxbxxbxc"));
  EXPECT_TRUE(glob_match("*", "*a")) << "a star in the text is a letter like others";
}

TEST(Options, ANumberIsReadToItsEndAndWithinItsBounds) {
  const OptionSpec integer{"n", IntegerRange{1, 8}, "1", ""}, real{"x", RealRange{0, 1}, "0", ""};
  for (const char* good : {"1", "8"}) EXPECT_NO_THROW(integer.check(good)) << good;
  for (const char* good : {"0", "1", "0.5", "1e-3"}) EXPECT_NO_THROW(real.check(good)) << good;
  for (const char* bad : {"", "0", "9", "4x", " 4", "4.5", "auto", "99999999999999999999"})
    EXPECT_THROW(integer.check(bad), Error) << bad;
  const OptionSpec automatic{"n", IntegerRange{1, 8}, "auto", "", true};
  EXPECT_NO_THROW(automatic.check("auto"));
  EXPECT_EQ(automatic.expected(), "an integer from 1 to 8, or auto");
  EXPECT_EQ(integer.expected(), "an integer from 1 to 8");
  for (const char* bad : {"", "-0.1", "1.1", "0.5 ", "nan", "inf", "auto"})
    EXPECT_THROW(real.check(bad), Error) << bad;
}

}  // namespace
}  // namespace spmmbench
