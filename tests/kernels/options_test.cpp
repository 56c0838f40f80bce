// Every option of every kernel, format, reordering and generator, tried from its own declaration: a
// new one is tested with no edit here.

#include <gtest/gtest.h>

#include <functional>

#include "../host/matrices.hpp"
#include "../option_values.hpp"
#include "spmmbench/error.hpp"
#include "spmmbench/registry.hpp"

namespace spmmbench {
namespace {

struct Owner {
  std::string name;
  std::vector<OptionSpec> options;
  std::function<void(const Options&)> check;  // as a plan of cases checks them
};

template <class T>
void add_owners(std::vector<Owner>& owners) {
  for (const T* entry : Registry<T>::instance().sorted()) {
    const auto check = [entry](const Options& options) { check_options(*entry, options); };
    if constexpr (std::is_same_v<T, Kernel>)
      owners.push_back({entry->info().name, entry->info().options, check});
    else owners.push_back({entry->name(), entry->options(), check});
  }
}

std::vector<Owner> all_owners() {
  std::vector<Owner> owners;
  add_owners<Kernel>(owners);
  add_owners<Format>(owners);
  add_owners<Reordering>(owners);
  add_owners<Generator>(owners);
  return owners;
}

Options one(const std::string& name, const std::string& value) {
  Options options;
  options.set(name, value);
  return options;
}

Options one(const OptionSpec& option, const std::string& value) { return one(option.name, value); }

TEST(DeclaredOptions, TakeTheirDefaultAndBothBounds) {
  for (const Owner& owner : all_owners())
    for (const OptionSpec& option : owner.options)
      for (const std::string& value : test::allowed_values(option))
        EXPECT_NO_THROW(check_options(owner.options, one(option, value), owner.name))
            << owner.name << " " << option.name << "=" << value;
}

TEST(DeclaredOptions, RefuseWhatLiesJustOutsideOrHasAnotherTypeInTheSameWords) {
  for (const Owner& owner : all_owners())
    for (const OptionSpec& option : owner.options)
      for (const std::string& value : test::refused_values(option)) {
        const std::string expected = owner.name + ": option " + option.name + "=" + value +
                                     ": expected " + option.expected();
        try {
          owner.check(one(option, value));
          ADD_FAILURE() << expected;
        } catch (const Error& error) {
          EXPECT_NE(std::string(error.what()).find(expected), std::string::npos) << error.what();
        }
      }
}

TEST(DeclaredOptions, AreRefusedUnderAnotherName) {
  for (const Owner& owner : all_owners())
    EXPECT_THROW(owner.check(one("no_such_option", "1")), Error) << owner.name;
}

TEST(DeclaredOptions, SayWhatTheyMeanOnOneLine) {
  for (const Owner& owner : all_owners())
    for (const OptionSpec& option : owner.options) {
      EXPECT_FALSE(option.help.empty()) << owner.name << " " << option.name;
      EXPECT_EQ(option.help.find('\n'), std::string::npos) << owner.name << " " << option.name;
      EXPECT_FALSE(option.default_value.empty()) << owner.name << " " << option.name;
    }
}

// A reordering and a format work with every value that they declare.
TEST(DeclaredOptions, OfReorderingsGiveAPermutationAtEveryBound) {
  const CsrMatrix matrix = testing::random_matrix(300, 200, 6, 0, 3);
  for (const Reordering* reordering : Registry<Reordering>::instance().sorted())
    for (const OptionSpec& option : reordering->options())
      for (const std::string& value : test::allowed_values(option)) {
        const Options options = one(option, value);
        try {
          check_options(*reordering, options);
        } catch (const Error&) {
          continue;  // allowed alone, not beside the other defaults
        }
        EXPECT_NO_THROW(validate_permutation(reordering->compute(matrix, options), matrix.rows))
            << reordering->name() << " " << option.name << "=" << value;
      }
}

TEST(DeclaredOptions, OfFormatsStoreEveryNonzeroAtEveryBound) {
  const CsrMatrix matrix = testing::random_matrix(300, 200, 6, 0, 3);
  for (const Format* format : Registry<Format>::instance().sorted())
    for (const OptionSpec& option : format->options())
      for (const std::string& value : test::allowed_values(option))
        EXPECT_GE(format->analyze(matrix, one(option, value)).stored, matrix.nnz())
            << format->name() << " " << option.name << "=" << value;
}

TEST(Options, AMessageNamesTheOptionTheValueAndWhatIsAllowed) {
  const std::vector<OptionSpec> declared = {
      auto_integer_option("stages", 1, 8, "slots of the ring"),
      real_option("fill", "0.5", 0, 1, "share of nonzeros"),
      choice_option("rule", "best", {"best", "first"}, "which is taken"),
      flag_option("merge", true, "merge repeats"),
      text_option("bits", "01",
                  {"digits of 0 and 1",
                   [](const std::string& text) {
                     return text.find_first_not_of("01") == std::string::npos;
                   },
                   {"11"}},
                  "bits that are set")};
  const auto message = [&](const char* key, const char* value) -> std::string {
    try {
      check_options(declared, one(key, value), "kernel x");
    } catch (const Error& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_EQ(message("stages", "9"),
            "kernel x: option stages=9: expected an integer from 1 to 8, or auto");
  EXPECT_EQ(message("stages", "auto"), "accepted");
  EXPECT_EQ(message("fill", "nan"), "kernel x: option fill=nan: expected a number from 0 to 1");
  EXPECT_EQ(message("rule", "bets"), "kernel x: option rule=bets: expected one of best, first");
  EXPECT_EQ(message("merge", "maybe"), "kernel x: option merge=maybe: expected 0 or 1");
  EXPECT_EQ(message("bits", "012"), "kernel x: option bits=012: expected digits of 0 and 1");
  EXPECT_EQ(message("colour", "1"),
            "kernel x has no option 'colour'; it has: stages, fill, rule, merge, bits");
}

TEST(Options, AreReadThroughTheirDeclarations) {
  const auto stages = auto_integer_option("stages", 1, 8, "");
  const auto height = choice_option<int>("height", "16", {"8", "16"}, "");
  const auto merge = flag_option("merge", true, "");
  const auto fill = real_option("fill", "0.5", 0, 1, "");
  const Options none, given({{"stages", "3"}, {"height", "8"}, {"merge", "off"}, {"fill", "1"}});
  EXPECT_EQ(stages(none), std::nullopt);
  EXPECT_EQ(stages(given), 3);
  EXPECT_EQ(height(none), 16);
  EXPECT_EQ(height(given), 8);
  EXPECT_TRUE(merge(none));
  EXPECT_FALSE(merge(given));
  EXPECT_EQ(fill(none), 0.5);
  EXPECT_EQ(fill(given), 1.0);
  EXPECT_THROW(stages(one("stages", "9")), Error);
}

}  // namespace
}  // namespace spmmbench
