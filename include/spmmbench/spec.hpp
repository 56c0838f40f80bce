#pragma once
// `name?key=value&key=value`: the one syntax for generators (after `gen:`), kernels, reorderings
// and formats.

#include <map>
#include <string>
#include <string_view>
#include <utility>

namespace spmmbench {

// Options as they were typed. They are read through their declarations (option.hpp).
class Options {
 public:
  Options() = default;
  explicit Options(std::map<std::string, std::string> values) : values_(std::move(values)) {}

  bool has(std::string_view key) const;
  std::string get(std::string_view key, std::string_view fallback) const;
  void set(std::string key, std::string value);
  const std::map<std::string, std::string>& values() const { return values_; }

 private:
  std::map<std::string, std::string> values_;
};

struct Spec {
  std::string name;
  Options options;

  static Spec parse(std::string_view text);  // throws Error on an empty name or a key without '='
  std::string to_string() const;             // canonical: keys ascending
};

// Shell-style match of '*' and '?' over the whole text. In a spec '?' begins the options, so
// callers that accept specs split them with Spec::parse first.
bool glob_match(std::string_view pattern, std::string_view text);

}  // namespace spmmbench
