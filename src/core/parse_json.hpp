#pragma once
// JSON from files and child processes. The library that reads it copies and prints values by
// recursion, so that text of many brackets would end the process.

#include <iosfwd>
#include <nlohmann/json.hpp>
#include <string>

namespace spmmbench {

using JsonCallback = nlohmann::ordered_json::parser_callback_t;

// Throws nlohmann::json::exception for what is no JSON or is nested deeper than 64 levels.
nlohmann::ordered_json parse_json(std::istream& text, const JsonCallback& callback = {});
nlohmann::ordered_json parse_json(const std::string& text);

// A discarded value, which has no type, where parse_json throws.
nlohmann::ordered_json parse_json_if_any(const std::string& text);

}  // namespace spmmbench
