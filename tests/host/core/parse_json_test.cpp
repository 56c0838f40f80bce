#include "core/parse_json.hpp"

#include <gtest/gtest.h>

#include <sstream>

namespace spmmbench {
namespace {

std::string nested(int levels) { return std::string(levels, '[') + std::string(levels, ']'); }

TEST(ParseJson, NestsUpTo64Levels) {
  EXPECT_EQ(parse_json(nested(64)).size(), 1);
  for (const int levels : {65, 200'000}) {
    std::istringstream file(nested(levels));
    EXPECT_THROW(parse_json(file), nlohmann::json::exception);
    EXPECT_TRUE(parse_json_if_any(nested(levels)).is_discarded());
  }
  EXPECT_TRUE(parse_json_if_any("{").is_discarded());
}

TEST(ParseJson, ACallbackLeavesOutWhatItHasTaken) {
  std::istringstream file(R"({"a": [1, {"b": 2}]})");
  int objects = 0;
  const auto json = parse_json(file, [&](int depth, auto event, auto&) {
    const bool inner = depth == 2 && event == nlohmann::ordered_json::parse_event_t::object_end;
    objects += inner;
    return !inner;
  });
  EXPECT_EQ(objects, 1);
  EXPECT_EQ(json.dump(), R"({"a":[1]})");
}

}  // namespace
}  // namespace spmmbench
