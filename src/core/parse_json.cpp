#include "core/parse_json.hpp"

#include <istream>

namespace spmmbench {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kMostLevels = 64;

struct NestedTooDeep : nlohmann::json::exception {
  NestedTooDeep() : exception(0, "nested deeper than 64 levels") {}
};

template <class Text>
Json parse(Text& text, const JsonCallback& callback) {
  return Json::parse(text, [&](int depth, Json::parse_event_t event, Json& parsed) {
    if (depth >= kMostLevels &&
        (event == Json::parse_event_t::array_start || event == Json::parse_event_t::object_start))
      throw NestedTooDeep();
    return !callback || callback(depth, event, parsed);
  });
}

}  // namespace

Json parse_json(std::istream& text, const JsonCallback& callback) { return parse(text, callback); }

Json parse_json(const std::string& text) { return parse(text, {}); }

Json parse_json_if_any(const std::string& text) try {
  return parse_json(text);
} catch (const nlohmann::json::exception&) {
  return Json::value_t::discarded;
}

}  // namespace spmmbench
